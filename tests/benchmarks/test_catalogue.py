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


def run(objective: int | None, bound: int, fingerprint: str = "f", name: str = "m_c") -> Any:
    """One run, certified to half of its bound."""
    return {
        "instance": name, "fingerprint": fingerprint, "tables": 1000, "ranks": 8,
        "objective": objective, "bound": bound, "certified_bound": bound // 2,
        "status": "optimal" if objective == bound else "feasible", "time_limit": 60.0,
    }  # fmt: skip


def test_medians_of_the_runs_of_an_instance(table: Any) -> None:
    """Plans of 2, 4 and 5 ms at a bound of 2 ms: gaps of 0, 50% and 60%, certified 50%, 75%, 80%;
    before: 25% and 62.5%."""
    after = {"date": "D", "machine": "M", "rows": [run(p * 10**9, 2 * 10**9) for p in (5, 2, 4)]}
    before = {"date": "B", "rows": [run(8 * 10**9, 6 * 10**9)]}
    text = table.table(after, before, {"m_c": "unseen"})
    assert text.splitlines()[-1] == (
        "| m × c * | 1,000, 8 | 4 | 50.00% | 75.00% | 1 of 3 | 8 | 25.00% | 62.50% |"
    )


def test_other_prices_are_another_instance(table: Any) -> None:
    """A run of an instance with another fingerprint is not shown beside it, and a run without a
    plan has a gap of 100%."""
    after = {"date": "D", "machine": "M", "rows": [run(None, 2 * 10**9)]}
    before = {"date": "B", "rows": [run(8 * 10**9, 6 * 10**9, "other")]}
    last = table.table(after, before, {}).splitlines()[-1]
    assert last == "| m × c | 1,000, 8 | none | 100.00% | 100.00% | 0 of 1 |  |  |  |"
