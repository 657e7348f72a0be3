"""``explain`` and ``report`` with the plan that runs today."""

from pathlib import Path

from milp_planner import read_plan
from milp_planner.features.moves.way import moves
from tests.milp_planner.cli.conftest import Cli
from tests.milp_planner.features.moves.test_way import best, today


def test_explain_and_report_take_todays_plan(cli: Cli, tmp_path: Path) -> None:
    """The terminal shows the curve, every step is a file, and the page has the section."""
    file, steps = best().save(tmp_path / "plan.json"), tmp_path / "steps"
    run = ["explain", str(file), "--today", str(today(tmp_path)), "--steps", str(steps)]
    done = cli(*run)
    assert done.code == 0 and "of the gain" in done.out, done.err
    written = sorted(steps.iterdir())
    assert read_plan(written[-1]).outcome.objective == best().outcome.objective
    done = cli(*run, "--step", "0")
    assert (done.code, done.out) == (2, "")
    assert "--step '0': allowed: all, or numbers from 1" in done.err
    page = tmp_path / "page.html"
    assert cli("report", str(file), "--today", str(today(tmp_path)), "-o", str(page)).code == 0
    assert "What the first moves gain" in page.read_text()


def test_a_better_plan_that_turns_up_is_written(cli: Cli, tmp_path: Path) -> None:
    """Asked about a plan half-way to the best one, explain finds the best and writes it."""
    half = moves(best(), today(tmp_path))[1][0]
    file = half.save(tmp_path / "half.json")
    done = cli("explain", str(file), "--ask", "why", "--time-limit", "10")
    assert "a better plan turned up; written: " in done.err and "half.better.json" in done.err
    found = read_plan(tmp_path / "half.better.json")
    assert found.outcome.objective < half.outcome.objective
    assert read_plan(file).outcome.objective == half.outcome.objective
