"""Drawings that compare scenarios: lengths and positions follow the figures."""

from __future__ import annotations

import re

import pytest

from milp_planner.drawing.charts import Drawing
from milp_planner.features.explain.page_what_if import draw_machines, draw_regrets, draw_robust
from milp_planner.features.explain.perturb import Parameter
from milp_planner.features.explain.price_search import Side, Single
from milp_planner.features.explain.robust import RobustInfo, ScenarioRow
from milp_planner.features.explain.sensitivity import SensitivityInfo
from milp_planner.features.explain.smallest import MachinesInfo, MachineTry
from milp_planner.features.explain.trial import Trial


def _numbers(drawing: Drawing | None, pattern: str) -> list[float]:
    assert drawing is not None
    return [float(value) for value in re.findall(pattern, drawing.render())]


def _rows(style: str, what: str = "width") -> str:
    return rf'{what}="([\d.]+)"[^>]*class="{style}"'


def test_the_common_plan_stands_right_of_each_scenarios_own() -> None:
    """Twice the time is twice as far from the axis; without a common plan nothing is drawn."""
    row = ScenarioRow("a@b", 1, 50, 40, 100, 1.0)
    info = RobustInfo("worst", "step_time", "1", "feasible", 100, 90, (row,), {})
    own = _numbers(draw_robust(info), _rows("mark objective", "cx"))[0]
    common = _numbers(draw_robust(info), _rows("mark common", "x"))[0] + 4.5
    axis = 210
    assert (common - axis) / (own - axis) == pytest.approx(2, rel=0.01)
    none = ScenarioRow("a@b", 1, 50, 40, None, None)
    assert (
        draw_robust(RobustInfo("worst", "step_time", "1", "unknown", None, 90, (none,), {})) is None
    )


def test_machines_are_drawn_from_two_on() -> None:
    """Each with its plan and bound, the target as a line across; one alone is no curve."""
    tries = (
        MachineTry(1, "infeasible", None, None, False),
        MachineTry(2, "feasible", 80, 60, False),
        MachineTry(3, "optimal", 40, 40, True),
    )
    info = MachinesInfo("step_time", "1", 50, 3, True, tries)
    assert len(_numbers(draw_machines(info), _rows("mark objective", "cx"))) == 2
    assert len(_numbers(draw_machines(info), _rows("mark bound", "cx"))) == 2
    assert draw_machines(MachinesInfo("step_time", "1", 50, None, False, tries[:2])) is None


def _side(name: str, least: float, most: float | None) -> Side:
    return Side(Trial({name: 0.8}, "feasible", 10, 9, 8, (least, most), "open", None))


def _sensitivity(singles: tuple[Single, ...]) -> SensitivityInfo:
    return SensitivityInfo(
        objective_kind="step_time", time_unit="1", now=10, bound=8, better=None, assumed=0.2,
        seed=0, asked=0, singles=singles, untried=(), draws=(), common=None,
    )  # fmt: skip


def test_regrets_are_as_long_as_they_are_large() -> None:
    """At least 1% and at most 4% where lower, 2% for sure where higher; nothing for none."""
    one = Single(Parameter("hbm", 0.2, False), _side("hbm", 0.01, 0.04), _side("hbm", 0.02, 0.02))
    drawing = draw_regrets(_sensitivity((one,)))
    sure, may = (_numbers(drawing, _rows(f"span {word}")) for word in ("sure", "may"))
    assert [sure[1] / sure[0], may[0] / sure[0]] == pytest.approx([2, 4], rel=0.01)
    assert may[1] == sure[1]
    none = Single(Parameter("ddr", 0.2, False), _side("ddr", 0.0, 0.0), None)
    assert draw_regrets(_sensitivity((none,))) is None
