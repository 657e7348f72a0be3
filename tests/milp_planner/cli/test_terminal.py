"""Terminal output: names appear unchanged, and a sentence says if a terminal cannot show them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from milp_planner.cli import failures
from milp_planner.errors import printable
from tests.milp_planner.cli.conftest import CLUSTER, Cli

MODEL = """\
name: "m[bold]x[/red]"
workload: {batch_per_rank: 512}
tables:
  - {name: "emb[user]", rows: 1M, dim: 64}
  - {name: "x[/b]", rows: 2M, dim: 64}
  - {name: "<script>alert(1)</script>:apple:", rows: 10k, dim: 32}
"""


def milp_planner(
    folder: Path, *arguments: str, stdout: int | None = subprocess.PIPE, **environment: str
) -> subprocess.CompletedProcess[str]:
    """The program as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "milp_planner", *arguments],
        cwd=folder, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, timeout=100,
        env={**os.environ, **environment},
    )  # fmt: skip


def test_names_are_no_markup(cli: Cli, tmp_path: Path) -> None:
    """Brackets and colons in names are printed literally, in tables, titles and pages."""
    (tmp_path / "odd.yaml").write_text(MODEL)
    done = cli("plan", "odd.yaml", "cluster.yaml", "-f", "greedy", "--set", "proposers=uniform")
    for name in ("m[bold]x[/red]", "emb[user]", "x[/b]", "<script>alert(1)</script>:apple:"):
        assert name in done.out, done
    quick = ("-f", "greedy", "--time-limit", "2")
    for name, *more in (
        ("verify",), ("explain", *quick), ("audit", "odd.yaml", "cluster.yaml", *quick),
    ):  # fmt: skip
        shown = cli(name, "plan.json", *more)
        assert shown.code == 0, shown
        assert name == "verify" or "emb[user]" in shown.out or "x[/b]" in shown.out, shown
    assert cli("report", "plan.json", "-o", "page.html").code == 0
    page = (tmp_path / "page.html").read_text()
    assert "<script>alert(1)" not in page and "&lt;script&gt;alert(1)" in page


@pytest.mark.parametrize("name", ["a\\0b", "a\\x1b[2K", "a\\u202eb", "a\\nb"])
def test_names_with_control_characters_are_refused(cli: Cli, tmp_path: Path, name: str) -> None:
    """They are refused in one sentence, which itself cannot steer the terminal."""
    (tmp_path / "odd.yaml").write_text(MODEL.replace("emb[user]", name))
    done = cli("plan", "odd.yaml", "cluster.yaml")
    assert done.code == 2 and "control characters" in done.err and done.err.count("\n") == 1
    assert not {"\0", "\x1b", "\u202e"} & set(done.err)


def test_control_characters_get_pictures() -> None:
    """ESC becomes its picture; line breaks and letters of any script stay."""
    assert printable("a\x1b[2K\r\n\0é中") == "a␛[2K␍\n␀é中"
    assert printable("\u202e\x9b\u2028") == "\ufffd" * 3


def test_error_sentences_are_printable(capsys: pytest.CaptureFixture[str]) -> None:
    """File names and settings in error sentences are printable."""
    failures.say("no file \x1b[31mred")
    assert capsys.readouterr().err == "milp-planner: no file ␛[31mred\n"


def test_an_ascii_terminal(tmp_path: Path) -> None:
    """Characters that the encoding lacks become the nearest ASCII; the exit code is the plan's."""
    (tmp_path / "model.yaml").write_text(MODEL.replace("x[/b]", "größe"))
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    done = milp_planner(
        tmp_path, "plan", "model.yaml", "cluster.yaml", "-f", "greedy", PYTHONIOENCODING="ascii"
    )
    assert done.returncode == 0 and done.stderr == "" and done.stdout.isascii()
    assert "gr??e" in done.stdout and " us" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    ("asked", "unbuffered"),
    [("list models", ""), ("list models", "1"), ("list models --json", ""), ("--help", "")],
)
def test_a_full_disk_behind_stdout(tmp_path: Path, asked: str, unbuffered: str) -> None:
    """One sentence and code 2, whether the print, the last flush or both fail."""
    with open("/dev/full", "w") as full:
        done = milp_planner(
            tmp_path, *asked.split(), stdout=full.fileno(), PYTHONUNBUFFERED=unbuffered
        )
    assert done.returncode == 2
    told = "standard output: No space left on device"
    if "--json" in asked:
        assert json.loads(done.stderr)["error"]["message"] == told
    else:
        assert done.stderr == f"milp-planner: {told}\n"


@pytest.mark.parametrize(
    ("asked", "code", "unbuffered"),
    [
        ("plan model.yaml none.yaml -f greedy --json", 3, ""),
        ("plan model.yaml cluster.yaml -f greedy", 0, "1"),
        ("check model.yaml wrong.yaml", 2, ""),
        ("list models --json", 0, ""),
        ("list formulations", 0, "1"),
        ("plan --help", 0, ""),
    ],
)
def test_a_reader_that_leaves_early(tmp_path: Path, asked: str, code: int, unbuffered: str) -> None:
    """The command does all its work and ends with its own code, without a word about the pipe."""
    (tmp_path / "model.yaml").write_text(MODEL)
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "none.yaml").write_text(CLUSTER.replace("2GiB", "1MiB").replace("4GiB", "1MiB"))
    (tmp_path / "wrong.yaml").write_text(CLUSTER.replace("hbm:", "hmb:"))
    ours, theirs = os.pipe()
    os.close(ours)
    try:
        done = milp_planner(tmp_path, *asked.split(), stdout=theirs, PYTHONUNBUFFERED=unbuffered)
    finally:
        os.close(theirs)
    assert (done.returncode, done.stderr) == (code, "")
    assert (tmp_path / "plan.json").exists() == ("plan model" in asked and "--json" not in asked)


def test_no_stdout_at_all(tmp_path: Path) -> None:
    """With `>&-` the answer goes nowhere, and not into a file that happens to be opened next."""
    (tmp_path / "model.yaml").write_text(MODEL)
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    command = f"{sys.executable} -m milp_planner plan model.yaml cluster.yaml -f greedy >&-"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, check=False, timeout=100)
    assert done.returncode == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cluster.yaml", "model.yaml", "plan.json"]
    assert (tmp_path / "plan.json").read_text().startswith("{\n")


def test_names_no_system_takes(cli: Cli) -> None:
    """File names that no system accepts are bad input, in one line."""
    for asked in (
        "verify LONG", "report LONG", "explain LONG", "solve LONG", "plan LONG cluster.yaml",
        "plan model.yaml cluster.yaml -o LONG", "plan model.yaml cluster.yaml --profile LONG.yaml",
        "audit LONG.csv model.yaml cluster.yaml", "init LONG",
        "import-plan LONG model.yaml --from torchrec", "batch LONG -o out",
        "calibrate --raw LONG.csv", "verify NUL", "report NUL",
        "plan model.yaml cluster.yaml -o NUL",
    ):  # fmt: skip
        done = cli(*asked.replace("LONG", "a" * 300).replace("NUL", "a\0b").split(" "))
        assert done.code == 2 and done.out == "" and done.err.count("\n") == 1, (asked, done)


def test_the_longest_name_a_system_takes(cli: Cli, tmp_path: Path) -> None:
    """It works, since the temporary file beside it has a name of its own."""
    name = "b" * 255
    done = cli("plan", "model.yaml", "cluster.yaml", "-f", "greedy", "-o", name)
    assert done.code == 0 and (tmp_path / name).exists(), done


def test_pipes_are_refused(cli: Cli, tmp_path: Path) -> None:
    """A pipe that nobody writes would block the program for ever."""
    for kind in ("pipe", "pipe.csv", "pipe.yaml"):
        os.mkfifo(tmp_path / kind)
    for command in (
        "verify pipe", "report pipe", "explain pipe", "solve pipe", "calibrate --raw pipe.csv",
        "batch -o out pipe.yaml", "plan pipe.yaml cluster.yaml", "plan model.yaml pipe.yaml",
    ):  # fmt: skip
        done = cli(*command.split())
        assert done.code == 2 and done.err.count("\n") == 1, (command, done)
        assert "- reads standard input" in done.err or "pipe.csv" in command, (command, done)


def test_memory_that_runs_out_inside_a_command(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    """If a command's own thread runs out of memory, the exit code is 3 and a sentence says so."""
    from milp_planner.features import plan as feature

    def exhausted(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(feature.call, "compile_for", exhausted)
    done = cli("plan", "model.yaml", "cluster.yaml")
    assert done.code == 3 and "out of memory" in done.err and done.err.count("\n") == 1
