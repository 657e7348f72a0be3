"""The claims of benchmarks/dp-vs-exact hold on a small version of its experiment."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks" / "dp-vs-exact"


@pytest.fixture(scope="module")
def experiment() -> ModuleType:
    """The benchmark's script as a module."""
    sys.path.insert(0, str(FOLDER))
    try:
        spec = importlib.util.spec_from_file_location("dp_vs_exact_run", FOLDER / "run.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(FOLDER))


def test_small_version(experiment: ModuleType) -> None:
    """The exact plan is proved and never beaten, and under loose budgets the heuristics match it;
    rows with fusion also hold the fusion-aware DP."""
    cases = [case for case in experiment.small() if case.seed < 2]
    rows = [experiment.measure(case, 60.0, 60.0) for case in cases]
    assert len(rows) == 10
    for row in rows:
        exact = row["exact"]
        assert exact["status"] == "optimal", row["case"]
        heuristics = {name: row[name] for name in [*experiment.DPS, "greedy"] if name in row}
        for name, found in heuristics.items():
            if found["objective"] is not None:
                assert found["objective"] >= exact["objective"], (row["case"], name)
        if row["group"] == "loose":
            assert all(f["objective"] == exact["objective"] for f in heuristics.values())
        assert ("fusion-aware 100x25" in row) == row["fusion"]


def test_cases_have_their_size_and_fusion(experiment: ModuleType) -> None:
    """Every case becomes an instance of its size, with fusion groups if it asks for them."""
    for case in experiment.small():
        instance = experiment.make(case)
        assert instance is not None
        assert instance.num_tables == case.tables
        assert instance.num_ranks == case.machines * case.local
        assert bool((instance.option_group >= 0).any()) == case.fusion


def test_the_page_shows_the_stored_results(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every generated block of docs/dp-vs-exact.md agrees with the stored rows."""
    monkeypatch.syspath_prepend(str(FOLDER))
    page = importlib.import_module("page")
    assert page.main(["--check"]) == 0
    assert page.PAGE.read_text().count(": page.py -->") == len(page.blocks())
