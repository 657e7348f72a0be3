"""The table of gaps of the catalogue."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "catalogue"


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script, whose module name others have too."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, "table", raising=False)
    return import_module("table")


def run(objective: int | None, bound: int) -> Any:
    """One run, certified to half of its bound."""
    return {
        "instance": "m_c", "tables": 1000, "ranks": 8,
        "objective": objective, "bound": bound, "certified_bound": bound // 2,
        "status": "optimal" if objective == bound else "feasible",
    }  # fmt: skip


def test_medians_of_the_runs_of_an_instance(table: Any) -> None:
    """Plans of 2, 4 and 5 ms at a bound of 2 ms: gaps of 0, 50% and 60%, certified 50%, 75%,
    80%."""
    found = {"rows": [run(plan * 10**9, 2 * 10**9) for plan in (5, 2, 4)]}
    text = table.table(found, {"m_c": "unseen"})
    assert text.splitlines()[-1] == "| m × c * | 1,000, 8 | 4 | 50.00% | 75.00% | 1 of 3 |"


def test_no_plan_is_a_gap_of_all(table: Any) -> None:
    """A run without a plan has a gap of 100%."""
    last = table.table({"rows": [run(None, 2 * 10**9)]}, {}).splitlines()[-1]
    assert last == "| m × c | 1,000, 8 | none | 100.00% | 100.00% | 0 of 1 |"
