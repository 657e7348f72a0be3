"""The table of simulated plans."""

from benchmarks.pages import stored, update
from benchmarks.simulator.table import HERE, PAGE, blocks, ends, plans_table


def test_the_page_shows_the_newest_result() -> None:
    """The table is generated from the stored plans."""
    result = stored(HERE / "results", "*-plans.json")
    assert update(PAGE, blocks(result), check=True) == 0, (
        "run: python benchmarks/simulator/table.py"
    )


def test_seeds_that_differ_show_both_ends() -> None:
    """Both ends are shown if seeds differ, and one number if all agree."""
    assert ends({"predicted": 2.0, "simulated": [3.0, 1.0, 2.0]}) == "2.000 → 1.000 … 3.000"
    assert ends({"predicted": 2, "simulated": [2, 2.0001]}) == "2.000 → 2.000"


def test_a_plan_without_caches_has_dashes() -> None:
    """A plan's missing figures are dashes, not zeros."""
    case = {
        "model": "m", "cluster": "c", "skew": None, "hit": {"tables": 0},
        "hot": {"predicted": 1, "simulated": [1, 1]},
    }  # fmt: skip
    table = plans_table(
        {"date": "2026-01-02", "limit": 1, "batches": 2, "seeds": 2, "cases": [case]}
    )
    assert "| m, c | – | – | 1.000 → 1.000 |" in table.splitlines()
