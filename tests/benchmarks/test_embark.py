"""Published table lists beside other planners: what counts as a loss, and a short run of all
cases."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.embark import lists, page, run
from formulations import Settings, read_instance, solve
from formulations.instance import Where
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import two_modes


def row(case: str, ours: int, certified: int, **others: int | None) -> dict[str, Any]:
    """A stored case with the other planners' plans; None where a planner found none."""
    auto = {"objective": ours, "bound": certified, "certified": certified, "status": "feasible",
            "seconds": 1.0}  # fmt: skip
    found = {name.replace("_", "-"): {"objective": value, "bound": None, "status": "feasible"}
             for name, value in others.items()}  # fmt: skip
    return {"case": case, "tables": 2, "ranks": 8, "time_limit": 1.0, "trivial": 1, "options": 4,
            "busy_cores": 2.0, "planners": {"auto": auto, **found}}  # fmt: skip


def test_losses_are_named_and_counted() -> None:
    """Another planner's cheaper plan is a loss, named with its size; a dearer or missing plan is
    counted."""
    rows = [
        row("a_1x8", 100, 100, CP_SAT=90, HiGHS=110),
        row("b_1x8", 100, 95, CP_SAT=100, HiGHS=None),
    ]
    said = page.overview({"date": "2026-01-01", "cores": 2}, rows)
    assert "cheaper than `auto`'s: a_1x8 (CP-SAT, 10%)." in said
    assert "| CP-SAT | 2 | 0 | 1 | 1 | 0 | -5% |" in said
    assert "| HiGHS | 2 | 1 | 0 | 0 | 1 | 10% |" in said
    assert "More than 1% open: b_1x8 5%." in said and "1 of 2 closed" in said


def test_a_higher_bound_of_a_solver_is_named() -> None:
    """A solver's bound above auto's is named even if both have the same plan."""
    one = row("a_1x8", 100, 90, CP_SAT=100)
    one["planners"]["CP-SAT"]["bound"] = 99
    said = page.overview({"date": "2026-01-01", "cores": 2}, [one])
    assert "a solver's bound is above `auto`'s: a_1x8 (CP-SAT, 10%)." in said


def test_the_trivial_bound_is_one() -> None:
    """The mean of the cheapest options, or the largest shard, never exceeds the optimum."""
    instance = two_modes()
    best = brute_force(instance).objective
    found = solve(instance, "auto", Settings(time_limit=10))
    assert best == found.objective and run.trivial(instance) <= best


@pytest.mark.parametrize("name", lists.PUBLISHED)
def test_a_published_instance_is_made_from_its_list(shared_data: Path, name: str) -> None:
    """Every option of the instance that NVIDIA's planner solved, with its cost and place."""
    theirs = read_instance(shared_data / "embark" / f"{name}.json.gz")
    ours = lists.instance_of(shared_data, lists.PUBLISHED[name], theirs.num_ranks)
    for table in range(theirs.num_tables):
        assert lists.facts(ours, table) == lists.facts(theirs, table)


def test_cost_and_bytes_by_hand(tmp_path: Path) -> None:
    """A table of 100 rows × 64, 2 ids a sample, in fp32 under SGD, cut into 4 × 2 parts.

    32 columns a part: lookups 65,536 · 4 · 2 · 32 / 4, exchange 65,536 · 60 · 32, 25 rows.
    """
    (tmp_path / "table-lists").mkdir()
    (tmp_path / "table-lists" / "embark_one.csv").write_text(
        "name,rows,dim,pooling,count,inputs\na,100,64,2,1,one\n"
    )
    made = lists.instance_of(tmp_path, "embark_one", 8)
    assert made.option_names[-1] == "r4c2"
    assert made.shard_cost[-1].tolist() == [4_194_304, 125_829_120]
    assert made.shard_use[-1].tolist() == [25 * 32 * 4]
    assert made.block(made.num_options - 1).where is Where.EVERY_RANK


@pytest.mark.slow
def test_the_short_form_runs(shared_data: Path) -> None:
    """The short form prints a line for every small case and stores nothing."""
    script = Path(run.__file__)
    before = sorted(page.RESULTS.iterdir())
    done = subprocess.run(
        [sys.executable, str(script), str(shared_data), "--quick", "--only", "criteo", "7table"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "7table_470B_hotness20_8x8", "criteo_1tb_threshold15_1x8",
        "criteo_1tb_unthresholded_1x8", "embark_7table_470B_hotness20_1x8",
    ]  # fmt: skip
    assert "optimal 1744830464" in lines[1] and "infeasible" in lines[3]
    assert sorted(page.RESULTS.iterdir()) == before
