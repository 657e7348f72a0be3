"""The entry point: help without heavy imports, one sentence and one exit code per failure.

Parsers of options that a request does not have.

No output of a command replaces an input of it, or a file of another kind.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from formulations.errors import InstanceError, InternalError, MissingSolver
from milp_planner.cli import failures
from milp_planner.cli.main import COMMANDS, GONE, run
from milp_planner.cli.options import positive, whole
from milp_planner.cli.readers import parse_formulations
from milp_planner.errors import BadInput, MissingExtra, PlannerError
from milp_planner.version import __version__
from tests.milp_planner.cli.conftest import Cli

# (Typer itself loads pydantic where a command has parameters.)
HEAVY = {"numpy", "ortools", "highspy", "pulp", "torch", "matplotlib", "networkx", "yaml", "ray",
         "numba", "jinja2", "rich"}  # fmt: skip


def test_help_imports_nothing_heavy() -> None:
    """--help is fast because the program, and every command, leaves out heavy imports."""
    asked = [["--help"], *([c.name, "--help"] for c in COMMANDS)]
    program = (
        "import sys; from milp_planner.cli.main import run\n"
        f"for asked in {asked!r}:\n"
        f"    assert run(asked) == 0 and not {HEAVY!r} & {{*sys.modules}}, asked"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Usage") == len(asked)


def test_every_command_has_help() -> None:
    """A command without a docstring would be a blank line in the list."""
    assert all((command.load().__doc__ or "").strip() for command in COMMANDS)


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (BadInput("a sentence"), "bad_input", 2),
        (MissingExtra("a sentence"), "bad_input", 2),
        (InstanceError("a sentence"), "bad_input", 2),
        (MissingSolver("a sentence"), "bad_input", 2),
        (typer.BadParameter("a sentence"), "bad_input", 2),
        (OSError(28, "a sentence"), "bad_input", 2),
        (OSError(5, "a sentence", "x.json"), "bad_input", 2),
        (MemoryError(), "no_plan", 3),
        (InternalError("a sentence"), "internal_error", 70),
        (PlannerError("a sentence"), "internal_error", 70),
        (ZeroDivisionError("a sentence"), "internal_error", 70),
        (KeyboardInterrupt(), "interrupted", 130),
        (typer.Exit(3), "", 3),
    ],
)
def test_exit_codes(
    error: BaseException, kind: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each kind of failure has its code; stdout stays empty. With --json, stderr is one object of
    kind, message and code; for a bug, the traceback."""
    assert failures.report(error) == code
    shown = capsys.readouterr()
    assert shown.out == "" and ("a sentence" in shown.err) == ("a sentence" in str(error))
    assert (
        not isinstance(error, OSError) or f"{error.filename or 'standard output'}: a s" in shown.err
    )
    assert failures.report(error, as_json=True) == code
    shown = capsys.readouterr()
    told = json.loads(shown.err)["error"] if kind else {"kind": "", "exit_code": code}
    assert shown.out == "" and (told["kind"], told["exit_code"]) == (kind, code)
    assert "\n" not in told.get("message", "")
    assert ("traceback" in told) == isinstance(error, ZeroDivisionError)


def test_json_asked_for_answers_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong name and a wrong option get JSON; after -- the word --json is not an option."""
    for arguments in (["plan", "absent", "8xh100"], ["plan", "--nonsense"]):
        assert run([*arguments, "--json"]) == 2
        shown = capsys.readouterr()
        assert shown.out == "" and json.loads(shown.err)["error"]["kind"] == "bad_input"
    assert run(["verify", "--", "--json"]) == 2
    assert capsys.readouterr().err.startswith("milp-planner: ")


def test_a_bug_keeps_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """An unforeseen error is shown in full, with a request to report it."""
    try:
        _ = 1 // int("0")
    except ZeroDivisionError as error:
        assert failures.report(error) == 70
    shown = capsys.readouterr()
    assert shown.out == "" and "Traceback" in shown.err and "please report it" in shown.err


def test_a_misspelt_command_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    """Typing errors get one line."""
    assert run(["slove", "x"]) == 2
    shown = capsys.readouterr().err
    assert "did you mean 'solve'" in shown.lower() and shown.count("\n") == 1


@pytest.mark.parametrize("name", GONE)
def test_a_command_of_before_says_what_replaced_it(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Scripts written for an earlier version learn what to call now."""
    assert run([name, "loads.csv"]) == 2
    assert f"the command {name} is gone; " in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """The version is the package's, even if it runs from a checkout."""
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"milp-planner {__version__}\n"


def test_limits_must_be_positive_numbers() -> None:
    """A limit that is not a positive finite number is quoted and refused; so are numbers outside 1
    to 3 where these are allowed."""
    for limit in ("0", "-1", "nan", "inf", "soon", ""):
        with pytest.raises(typer.BadParameter, match=f"found {limit}; allowed: a positive number"):
            positive(limit)
    for found in ("0", "4", "1.5", "x", "", "-1", "1" * 30, "٣"):
        with pytest.raises(typer.BadParameter, match="allowed: a whole number, 1 to 3"):
            whole(1, 3)(found)
    assert whole(1, 3)("3") == 3 and whole(0, 5)(0) == 0


def test_formulations_are_checked_by_name() -> None:
    """Blanks are ignored; unknown and repeated names are refused."""
    assert parse_formulations(" dp, cpsat ") == ("dp", "cpsat")
    with pytest.raises(InstanceError, match="did you mean 'cpsat'"):
        parse_formulations("dp,cpsta")
    with pytest.raises(BadInput, match="listed twice"):
        parse_formulations("dp,dp")
    with pytest.raises(BadInput, match="at least one"):
        parse_formulations(",")


_TWO = ("model.yaml", "cluster.yaml")


@pytest.mark.parametrize("target", ["model.yaml", "cluster.yaml", "plan.json", "other.yaml"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", *_TWO, "--from", "plan.json", "-o"),
        ("compare", *_TWO, "-o"),
        ("solve", "instance.json", "-o"),
        ("report", "plan.json", "-o"),
        ("export", "plan.json", "--to", "torchrec", "-o"),
        ("export", "plan.json", "--to", "tzrec", "-o"),
        ("audit", "plan.json", *_TWO, "--page"),
        ("audit", "plan.json", *_TWO, "-o"),
        ("import-plan", "exported.json", "model.yaml", "--from", "torchrec", "-o"),
        ("explain", "plan.json", "--ask", "replan", "-o"),
        ("explain", "plan.json", "--ask", "frontier", "--budgets", "2", "--csv"),
        ("calibrate", "--raw", "sweep.csv", "-o"),
    ],
)
def test_no_output_replaces_an_input_or_another_kind(
    cli: Cli, planned: Path, tmp_path: Path, arguments: tuple[str, ...], target: str
) -> None:
    """One sentence and code 2; every file is as it was, and no other has come."""
    assert cli("export", planned, "--to", "torchrec", "-o", "exported.json").code == 0
    (tmp_path / "other.yaml").write_text("name: notes\n")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    done = cli(*arguments, target)
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert done.code == 2 and done.err.count("\n") == 1, (done.out, done.err)
    assert "cannot write" in done.err or "calibrate" in arguments, done.err
    assert after == before
