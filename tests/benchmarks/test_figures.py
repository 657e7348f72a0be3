"""`make figures` runs the pages that are not done yet, in order, and notes date and commit."""

import json
import subprocess
from datetime import date
from pathlib import Path

import pytest

from benchmarks import figures
from benchmarks.figures import Figures, Step
from milp_planner.features.calibrate.machine import processor

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkout with two pages; the second fails until a file named ready exists."""
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "figures.yaml").write_text("""
- {page: a.md, needs: [[formulations], [scenarios]], minutes: 2, run: ["sh -c 'echo a >> log'"]}
- {page: b.md, needs: [[formulations]], run: ["sh -c 'echo b >> log'", "test -e ready"]}
""")
    return tmp_path


def measured(root: Path, commit: str) -> list[int]:
    """Exit codes of both pages."""
    found = Figures(root, commit)
    return [found.measure(step, step.commands({}) or []) for step in found.steps]


def test_a_failure_ends_it_and_the_next_run_goes_on_there(root: Path) -> None:
    """A page that is done is not run again at the same commit, but is at another one."""
    assert measured(root, "one") == [0, 1]
    assert set(Figures(root, "one").known) == {"a.md"}
    (root / "ready").touch()
    assert measured(root, "one") == [0, 0]
    assert (root / "log").read_text() == "a\nb\n"
    assert measured(root, "two") == [0, 0]
    assert (root / "log").read_text() == "a\nb\na\nb\n"


def test_a_command_of_two_pages_runs_for_both(root: Path) -> None:
    """The first page's run has not seen what the second one measures."""
    found, draw = Figures(root, "one"), "sh -c 'cat measured >> drawn'"
    for page in ("a", "b"):
        step = Step(f"{page}.md", (f"sh -c 'echo {page} > measured'", draw))
        assert found.measure(step, list(step.run)) == 0
    assert (root / "drawn").read_text() == "a\nb\n"


def test_stored_results_are_removed_once(root: Path) -> None:
    """Before the first command of a page, not where it resumes; a folder goes with its files."""
    patterns = ("old-*.json", "folder", "{today}.json")
    step = Step("c.md", ("test -e ready", "test ! -e folder"), None, patterns)
    (root / "folder" / "within").mkdir(parents=True)
    today = f"{date.today()}.json"
    for name in ("old-1.json", "old-2.json", today, "other.json", "folder/within/old-3.json"):
        (root / name).touch()
    assert Figures(root, "one").measure(step, list(step.run)) == 1
    assert [path.name for path in root.glob("*.json")] == ["other.json"]
    (root / "old-1.json").touch()
    (root / "ready").touch()
    assert Figures(root, "one").measure(step, list(step.run)) == 0
    assert (root / "old-1.json").exists()


def test_date_commit_and_duration_are_kept(root: Path) -> None:
    """They and the machine are stored for a page that is done, and said at its end."""
    measured(root, "one")
    found = Figures(root, "two")
    assert found.known["a.md"]["commit"] == "one" and found.known["a.md"]["seconds"] >= 0
    day, machine = found.known["a.md"]["date"], found.known["a.md"]["machine"]
    assert machine.endswith(f" cores, {processor()}")
    page = root / "a.md"
    page.write_text(f"text\n\n<!-- {found.steps[0].block} -->\nold\n<!-- end -->\n")
    assert found.sign(found.steps[0], check=True) == 1 and found.sign(found.steps[0]) == 0
    said = page.read_text().splitlines()[3]
    assert said.startswith(f"Measured {day}, commit one, {machine}. Again: `sh -c")
    assert said.endswith("(0.0 min).")
    assert Figures(root, "x").takes(Step("c.md", (), 2)) == "about 2 min"


def test_what_is_not_given_is_left_out() -> None:
    """A page whose placeholder has no value is left out; a given value is filled in."""
    step = Step("a.md", ("run {today}", "read {printout}"))
    assert step.commands({"today": "now", "printout": None}) is None
    assert step.commands({"today": "now", "printout": "p"}) == ["run now", "read p"]


def commit(root: Path, name: str, text: str | None = None) -> str:
    """Write a file of a checkout, or change it, and commit it; the commit."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text or (path.read_text() + "x" if path.exists() else ""))
    identity = ["-c", "user.name=n", "-c", "user.email=e@x"]
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", name]):
        subprocess.run(["git", *command], cwd=root, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True)
    return head.stdout.strip()


def test_pages_that_a_change_touched_are_named(root: Path) -> None:
    """A page stays current over commits to what its figures do not need, but not over others; nor
    is it if its own commit is not in the history."""
    first = commit(root, "formulations/solve.py")
    found = Figures(root, first)
    found.known = {page: {"date": "today", "commit": first} for page in ("a.md", "b.md")}
    for name in ("docs/a.md", "scenarios/models/README.md", "milp_planner/x.py"):
        commit(root, name)
    assert found.apart("HEAD") == {}
    commit(root, "scenarios/models/small.yaml")
    assert found.apart("HEAD") == {"a.md": f"measured today at {first}; files that differ: 1"}
    commit(root, "formulations/solve.py")
    assert set(found.apart("HEAD")) == {"a.md", "b.md"}
    found.known = {"b.md": {"date": "today", "commit": "0123456"}}
    assert found.apart("HEAD") == {
        "a.md": "never measured", "b.md": "measured at 0123456, which this history does not have",
    }  # fmt: skip


def test_what_pages_need_is_there() -> None:
    """A folder that is renamed would leave a page current for ever."""
    found = figures.steps(ROOT / "benchmarks" / "figures.yaml")
    assert all(step.needs for step in found)
    assert [n for step in found for n in step.needs if not (ROOT / n).exists()] == []


def test_documentation_makes_no_page_behind(root: Path) -> None:
    """Docstrings and comments may change; code, also of a file that comes or goes, may not."""
    code_of = ["formulations"]
    name, code = "formulations/solve.py", "def ask():\n    {}\n    return {}\n"
    first = commit(root, name, code.format("'An answer'", 1))
    second = commit(root, name, code.format("'The answer.'  # as asked", 1))
    assert figures.changes(root, first, second, code_of) == []
    third = commit(root, name, code.format("'The answer.'", 2))
    assert figures.changes(root, second, third, code_of) == [name]
    fourth = commit(root, "formulations/other.py", "'Another.'\n")
    assert figures.changes(root, third, fourth, code_of) == ["formulations/other.py"]
    assert figures.changes(root, fourth, third, code_of) == ["formulations/other.py"]


def test_list_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """It shows the commands of the requested pages and how long they take."""
    assert figures.main(["--list", "--only", "README"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("== README.md (") and " min)" in lines[0]
    assert lines[1] == "   python benchmarks/demo/run.py --time-limit 30"


def test_a_page_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """Also beside one that is; nothing runs, and the answer names all pages."""
    with pytest.raises(SystemExit) as end:
        figures.main(["--list", "--only", "README", "docs/sclae"])
    said = capsys.readouterr()
    assert end.value.code == 2 and not said.out
    pages = [step.name for step in figures.steps(ROOT / "benchmarks" / "figures.yaml")]
    assert f"--only docs/sclae: no page is called so; pages: {', '.join(pages)}\n" in said.err


def test_every_page_and_script_is_there_and_has_a_state() -> None:
    """Pages and scripts of figures.yaml exist, and every part has a date and a commit, which stand
    below its figures; README says them in its tables."""
    known = json.loads((ROOT / "benchmarks" / "figures.json").read_text())
    found = figures.Figures(ROOT, "x")
    assert {step.name for step in found.steps} == set(known)
    assert [
        s.name for s in found.steps if s.page != "README.md" and found.sign(s, check=True)
    ] == []
    for step in figures.steps(ROOT / "benchmarks" / "figures.yaml"):
        assert (ROOT / step.page).exists(), step.page
        assert {"date", "commit"} <= known[step.name].keys(), step.name
        for command in step.run:
            script = command.split()[1]
            assert not script.endswith(".py") or (ROOT / script).exists(), command


def test_a_script_that_resumes_has_its_results_removed_first() -> None:
    """Else a second measurement of a day would measure nothing, and date what it finds anew."""
    resuming = [
        step for step in figures.steps(ROOT / "benchmarks" / "figures.yaml")
        for command in step.run if (path := ROOT / command.split()[1]).suffix == ".py"
        and "output.exists()" in (text := path.read_text(encoding="utf-8"))
        and "--resume" not in text
    ]  # fmt: skip
    assert len(resuming) >= 4
    assert [step.name for step in resuming if not step.fresh] == []


def test_every_page_with_a_block_is_measured() -> None:
    """Left out are fields of the code."""
    pages = {step.page for step in figures.steps(ROOT / "benchmarks" / "figures.yaml")}
    blocks = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "README.md", *ROOT.glob("docs/**/*.md"))
        if "<!-- end -->" in path.read_text(encoding="utf-8")
    }
    assert blocks - pages == {"docs/inputs.md"}
