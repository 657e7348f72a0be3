"""The simulator's benchmark pages: two kinds of stored results, and the table of plans."""

from __future__ import annotations

from benchmarks.pages import stored, update
from benchmarks.simulator.table import HERE, PAGE, blocks, ends, plans_table


def test_the_page_shows_the_newest_results() -> None:
    """Each kind has its own newest file; a stored plan is not taken for a stored timing."""
    result = stored(HERE / "results", "*-[0-9][0-9].json")
    assert {"rows", "gather_ratio"} <= set(result["cases"][0])
    assert update(PAGE, blocks(result), check=True) == 0, (
        "run: python benchmarks/simulator/table.py"
    )


def test_seeds_that_differ_show_both_ends() -> None:
    """Both ends are shown if seeds differ, and one number if all agree."""
    assert ends({"predicted": 2.0, "simulated": [3.0, 1.0, 2.0]}, 1, 1) == "2.0 → 1.0 … 3.0"
    assert ends({"predicted": 2048, "simulated": [2048, 2050]}, 1024, 1) == "2.0 → 2.0"


def test_a_plan_without_caches_or_host_rows_has_dashes() -> None:
    """A plan's missing figures are dashes, not zeros."""
    same = {"predicted": 1 << 30, "simulated": [1 << 30]}
    case = {
        "model": "m", "cluster": "c", "skew": None, "hit": {"tables": 0}, "exchange": same,
        "hot": {"predicted": 1, "simulated": [1, 1]},
        "hbm": {"predicted": 1 << 30, "simulated": 1 << 29}, "ddr": {"predicted": 0},
    }  # fmt: skip
    table = plans_table(
        {"date": "2026-01-02", "limit": 1, "batches": 2, "seeds": 2, "cases": [case]}
    )
    row = "| m, c | – | – | 1,024.0 → 1,024.0 | 1.000 → 1.000 | 1.00 → 0.50 | – |"
    assert row in table.splitlines()
