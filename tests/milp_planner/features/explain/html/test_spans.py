"""Drawings that compare scenarios: lengths and positions follow the figures."""

from __future__ import annotations

import re

import pytest

from milp_planner.drawing.charts import Drawing
from milp_planner.features.explain.page import draw_regrets
from milp_planner.features.explain.perturb import Parameter
from milp_planner.features.explain.sensitivity import SensitivityInfo, Side, Single
from milp_planner.features.explain.trial import Trial


def _numbers(drawing: Drawing | None, pattern: str) -> list[float]:
    assert drawing is not None
    return [float(value) for value in re.findall(pattern, drawing.render())]


def _rows(style: str, what: str = "width") -> str:
    return rf'{what}="([\d.]+)"[^>]*class="{style}"'


def _side(name: str, least: float, most: float | None) -> Side:
    return Side(Trial({name: 0.8}, "feasible", 10, 9, 8, (least, most), "open", None))


def _sensitivity(singles: tuple[Single, ...]) -> SensitivityInfo:
    return SensitivityInfo(
        objective_kind="step_time", time_unit="1", now=10, bound=8, better=None, assumed=0.2,
        seed=0, asked=0, singles=singles, untried=(), draws=(),
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
