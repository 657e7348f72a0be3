"""Ctrl-C keeps the best plan and exits with code 130."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import milp_planner
from formulations import registry
from milp_planner.plans.plan_file import read_plan
from tests.milp_planner.cli.conftest import Cli

MODULES = ["milp_planner", "milp_planner.__main__", "milp_planner.version"]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A formulation that presses Ctrl-C itself and then waits."""
    waits = registry.Formulation("patient", "tests.milp_planner.cli.patient", False, "waits")
    monkeypatch.setitem(registry.FORMULATIONS, "patient", waits)


@pytest.mark.usefixtures("patient")
def test_the_best_plan_is_kept(cli: Cli, tmp_path: Path) -> None:
    """Interrupted during a search, plan.json holds the best plan so far."""
    done = cli("plan", "model.yaml", "cluster.yaml", "-f", "patient", "--time-limit", "60")
    assert done.code == 130, done.err
    assert "FEASIBLE" in done.out and "interrupted" in done.out
    outcome = read_plan(tmp_path / "plan.json").outcome
    assert outcome.placement is not None and outcome.stopped_by == "interrupted"


def test_interrupted_while_importing(tmp_path: Path) -> None:
    """Ctrl-C before the program has loaded: one line and code 130, whatever the import does."""
    (tmp_path / "typer.py").write_text(
        "import os, signal, time\n"
        "try:\n    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(20)\n"
        "except KeyboardInterrupt:\n    raise ImportError('swallowed')\n"
    )
    program = (
        f"import signal, sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # may be ignored: inherited\n"
        "import milp_planner.__main__ as m"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{program}; m.main()"],
        capture_output=True, text=True, check=False, timeout=50,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "milp-planner: interrupted\n")


def test_nothing_is_imported_before_the_program_listens() -> None:
    """What the program imports before it hears Ctrl-C are three files of its own: Python would
    answer with a traceback."""
    root = str(Path(milp_planner.__file__).parents[1])
    program = (
        f"import os, sys; sys.path.insert(0, {root!r}); before = {{*sys.modules}}\n"
        "import milp_planner.__main__\n"
        "print(*sorted({*sys.modules} - before - {'__future__'}))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == MODULES


def test_an_abandoned_solver_leaves_cleanly(tmp_path: Path) -> None:
    """A second Ctrl-C exits with 130, however deep the solver is in native code."""
    program = """
import os, signal, sys, threading, time
import milp_planner.cli.main as main
from milp_planner.cli.console import Work

def job():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)

def run():
    try:
        Work("job").run(job)
    except KeyboardInterrupt as error:
        return main.failures.report(error)

main.run = run
main.main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          check=False, timeout=50)  # fmt: skip
    assert done.returncode == 130 and done.stderr == "milp-planner: interrupted\n"


def test_interrupted_while_pricing(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no plan to keep yet: one line, code 130, no file."""
    from milp_planner.features.plan import call

    def priced(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)

    monkeypatch.setattr(call, "compile_for", priced)
    done = cli("plan", "model.yaml", "cluster.yaml")
    assert (done.code, done.err) == (130, "milp-planner: interrupted\n")
    assert not (tmp_path / "plan.json").exists()


def test_interrupted_while_writing(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan that was found is written and shown, and the exit code tells of the interruption."""
    from milp_planner.plans import plan_file

    write = plan_file.write_json

    def interrupted(path: Path, document: object) -> Path:
        os.kill(os.getpid(), signal.SIGINT)
        return write(path, document)

    monkeypatch.setattr(plan_file, "write_json", interrupted)
    done = cli("plan", "model.yaml", "cluster.yaml", "-f", "greedy")
    assert done.code == 130 and "written: plan.json" in done.out
    assert read_plan(tmp_path / "plan.json").tables


@pytest.mark.parametrize("formulation", ["auto", "cpsat", "scale"])
def test_a_real_search_keeps_its_plan(tmp_path: Path, formulation: str) -> None:
    """A separate process with real solver threads is interrupted once it has a plan."""
    program = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from milp_planner.features.plan.watch import Newest
note, pressed = Newest.__call__, []
def noted(self, point):
    note(self, point)
    if point.objective is not None and not pressed:
        pressed.append(point)
        os.kill(os.getpid(), signal.SIGINT)
Newest.__call__ = noted
from milp_planner.cli.main import main
main()
"""
    model = "generated:tables=60,seed=3,kind=torchrec"
    done = subprocess.run(
        [sys.executable, "-c", program, "plan", model, "8xh100", "-f", formulation,
         "--time-limit", "90", "--workers", "1"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == 130 and "Traceback" not in done.stderr, done.stderr
    outcome = read_plan(tmp_path / "plan.json").outcome
    assert outcome.placement is not None and outcome.stopped_by == "interrupted"
    assert outcome.seconds < 80


@pytest.mark.usefixtures("patient")
def test_an_interrupted_audit_keeps_the_better_plan(cli: Cli, tmp_path: Path) -> None:
    """Code 130; -o holds the best plan so far, which beats the audited one."""
    rows = [f"{name},HBM_ONLY,table_wise,0" for name in ("users", "items", "ads")]
    (tmp_path / "today.csv").write_text("\n".join(["table,mode,sharding_type,ranks", *rows]))
    run = ("audit", "today.csv", "model.yaml", "cluster.yaml", "-f", "patient", "-o", "better.json")
    done = cli(*run, "--json")
    assert done.code == 130, done.err
    kept = read_plan(tmp_path / "better.json").outcome
    assert kept.stopped_by == "interrupted"
    assert (kept.objective or 0) < done.json["objective"]
