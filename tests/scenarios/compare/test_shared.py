"""What the solves of a comparison share: each formulation its own plans, all formulations the
bounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from formulations import BoundSource, Instance, Objective, Outcome, Settings
from formulations.instance import Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.result.outcome import StoppedBy, found
from formulations.result.placement import Placement
from formulations.settings import News
from milp_planner import compare
from milp_planner.features.plan import call
from scenarios.compare import shared
from scenarios.compare.shared import ENDED, Shared, ended
from tests.milp_planner.features.small import MODEL, cluster


def two_phases() -> Instance:
    """One table of cost 3 + 4 on one of two ranks."""
    builder = InstanceBuilder([[0, 1]], ["p", "q"], [("hbm", "rank", 9)], "busiest_rank")
    builder.add_table("t")
    builder.add_option("o", [Block(Where.ANY_RANK, [Shard({"hbm": 5}, [3, 4])])])
    return builder.build()


def outcome(instance: Instance, bound: int, exact: bool = True) -> Outcome:
    """The instance's only plan with a bound."""
    plan = Placement(np.asarray([0]), [[np.asarray([1])]])
    source = BoundSource("cpsat", exact)
    return found(instance, "cpsat", plan, StoppedBy.TIME_LIMIT, bound, source)


def test_a_formulation_starts_from_its_own_plans_only() -> None:
    """cpsat gets its plan for another objective as a hint; other formulations do not."""
    instance, known = two_phases(), Shared()
    known.take("cpsat", instance, outcome(instance, 5))
    step = replace(instance, objective=Objective.STEP_TIME)
    hint = known.settings("cpsat", step, Settings()).hint
    assert hint is not None and hint.ranks[0][0].tolist() == [1]
    assert known.settings("scale", step, Settings()).hint is None


def test_bounds_are_everybodys_where_they_hold() -> None:
    """busiest_rank's bound also holds for step_time, but not for total; floating-point bounds are
    not shared."""
    instance, known = two_phases(), Shared()
    known.take("mip", instance, outcome(instance, 7, exact=False))
    assert known.bound("busiest_rank") is None
    known.take("cpsat", instance, outcome(instance, 6))
    assert (known.bound("busiest_rank"), known.bound("step_time")) == (6, 6)
    assert known.bound("total") is None


def test_a_plan_that_meets_a_bound_ends_its_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not earlier, and only after a while in which the solve may prove the same itself."""
    instance, known, told = two_phases(), Shared(), []
    known.take("cpsat", instance, outcome(instance, 6))
    settings = known.settings("scale", instance, Settings(on_progress=told.append))
    assert settings.on_progress is not None
    settings.on_progress(News(0.0, 7, None, "x"))
    monkeypatch.setattr(shared.time, "monotonic", lambda: 100.0)
    assert not settings.stop.is_set()
    settings.on_progress(News(0.0, 6, None, "x"))
    assert not settings.stop.is_set() and len(told) == 2
    monkeypatch.setattr(shared.time, "monotonic", lambda: 102.5)
    assert settings.stop.is_set()
    stopped = outcome(instance, 5).with_(stopped_by=StoppedBy.INTERRUPTED)
    assert ended(stopped, stopped=False).note == ENDED
    assert ended(stopped, stopped=True) == stopped or ended(stopped, stopped=True).note == ""


def test_auto_is_compared_and_costs_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """By default auto has a row; scale is the same search here and has the same figures without a
    solve."""
    asked: list[str] = []
    solve = call.solve

    def counted(instance: Instance, name: str, settings: Settings) -> Outcome:
        asked.append(name)
        return solve(instance, name, settings)

    monkeypatch.setattr(call, "solve", counted)
    result = compare(MODEL, cluster(), objectives=["total"], settings=Settings(time_limit=10))
    labels = [row.label for row in result.rows]
    assert "auto" in labels and {"auto", "cpsat", "scale"} - set(asked)
    assert len(asked) == len(set(asked)) + ("dp, fusion-aware" in labels)
    twins = [row for row in result.rows if "the same solve as auto's" in row.note]
    assert len(twins) == 1 and twins[0].objectives == result.rows[0].objectives
