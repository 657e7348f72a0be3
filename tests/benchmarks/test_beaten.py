"""Counting rows that another plan for the same inputs beats (benchmarks/suites/beaten.py)."""

import importlib.util
from pathlib import Path
from types import ModuleType

from scenarios.batch.curves import rows_of
from tests.scenarios.batch.records import record

ROOT = Path(__file__).resolve().parents[2]


def load() -> ModuleType:
    """The benchmark."""
    spec = importlib.util.spec_from_file_location("beaten", ROOT / "benchmarks/suites/beaten.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_rows_are_beaten_by_plans_for_another_objective() -> None:
    """A step-time plan whose total is 8 beats auto's and greedy's total of 9; a plan for other
    inputs, or one that is equally good, beats nothing."""
    plan = {"objective": 5, "objectives": {"total": 8, "step_time": 5}}
    rows = rows_of(
        [
            record(formulation="auto", objective=9, objectives={"total": 9}),
            record(formulation="auto", objective_kind="step_time", **plan),
            record(formulation="greedy", objective=11, objectives={"total": 11}),
            record(formulation="auto", objective=9, objectives={"total": 9}, model="other"),
            record(formulation="cpsat", objective=8, objectives={"total": 8}),
        ]
    )
    found = load()
    counts = {"rows": 5, "with a plan": 5, "failed": 0}
    assert found.counted(rows) == counts | {"beaten": 1, "baselines above the best": 1}
    (row,) = found.beaten(rows, proving=True)
    assert found.said(row).endswith("auto has 9, a plan of the same inputs 8")
