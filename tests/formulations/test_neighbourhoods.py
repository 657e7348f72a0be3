"""Which part of a plan is opened, and that parts lead to a better plan."""

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings

from formulations import Instance, Objective, Settings, StoppedBy, neighbourhoods
from formulations.clock import Clock
from formulations.cpsat import Found
from formulations.goals.model import Task, by_model, by_neighbourhoods
from formulations.goals.problem import Problem
from formulations.model.partition import by_rank
from formulations.model.parts import Parts
from formulations.model.placements import decode
from formulations.neighbourhoods import Neighbourhoods, Size, Sought
from formulations.presolve import usable
from formulations.result.check import check, value_of
from formulations.result.outcome import found
from formulations.settings import Goals
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import ANY, MACHINE, at, built, placed
from tests.formulations.model.solved import solved
from tests.formulations.strategies import instances


def search(instance: Instance, causes: list[int]) -> Neighbourhoods:
    """A search for a cheaper plan."""
    sought = Sought(
        lambda plan: value_of(instance, plan) or 0,
        lambda model: model.loads.everything(instance.shard_cost.sum(axis=1)),
        lambda plan: causes,
    )
    return Neighbourhoods(instance, sought, lambda _: usable(instance))


def test_what_lies_on_open_ranks_alone_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of five ranks open, one of them that of the table named: with it whatever lies on these
    two alone; the table on all four of a machine stays."""
    monkeypatch.setattr(neighbourhoods, "COLUMNS", 10)
    instance = built([at(MACHINE, 3), *[at(ANY, 5)] * 4], machines=[range(4), [4]])
    placement = placed(range(5), range(4), [0], [1], [2], [3])
    for seed in range(20):
        near = search(instance, [2])._drawn(placement, 100, 0.25, Random(seed))
        assert near.tables is not None and not near.whole
        open_ = near.ranks.nonzero()[0].tolist()
        assert len(open_) == 2 and 1 in open_
        assert near.tables.tolist() == sorted(1 + rank for rank in open_ if rank < 4)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(instances())
def test_a_part_keeps_the_plan_feasible(instance: Instance) -> None:
    """Any part that is drawn gives a feasible plan that is no worse."""
    truth = brute_force(instance)
    assume(truth.placement is not None and instance.num_tables > 0)
    assert truth.placement is not None and truth.objective is not None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbourhoods, "COLUMNS", 4)
        near = search(instance, [])._drawn(truth.placement, 1, 0.1, Random(4))
    limit = None if instance.objective == Objective.TOTAL else truth.objective
    parts = Parts(keep=near.keep, limit=limit, base=truth.placement, tables=near.tables, cuts=False)
    model, answer = solved(instance, by_rank(instance, near.ranks), parts)
    assert answer.status == Found.OPTIMAL and answer.values is not None
    verdict = check(instance, decode(model, answer.values))
    assert verdict.feasible, verdict.violations
    assert verdict.objectives[instance.objective.value] == truth.objective


@pytest.mark.parametrize("goal", ["even_memory", "hbm", "total"])
def test_parts_come_to_what_the_whole_finds(goal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty tables on five ranks, all on the first two: memory is as even, or the total as low, as
    the whole model finds it within the objective."""
    draw = Random(3)
    tables = [
        {"small": at(ANY, draw.randrange(1, 9), hbm=size), "large": at(ANY, 9, hbm=2 * size)}
        for size in (draw.randrange(3, 40) for _ in range(20))
    ]
    instance = built(tables, machines=[range(5)], hbm=1000)
    plan = placed([2 * t + 1 for t in range(20)], *[[t % 2] for t in range(20)])
    problem = Problem(instance, Goals((goal,), enough=0.0, step=0.001))
    before = found(instance, "auto", plan, StoppedBy.EXHAUSTED)
    assert before.objective is not None
    options = problem.presolved(before.objective, None)
    task = Task(problem, 0, (problem.values(plan)[0],), before.objective, lambda: options, plan)
    asked = Settings(work_limit=100, workers=1)
    whole, bound = by_model(task, 20, asked, Clock(asked))
    monkeypatch.setattr(neighbourhoods, "COLUMNS", 60)
    target = bound if bound is not None else 0
    near = by_neighbourhoods(task, target, 50, asked, Clock(asked))
    values = [problem.values(each)[0] for each in (plan, near, whole)]
    assert values[0] > 1.5 * values[1] and values[1] <= 1.1 * values[2], values
    assert (value_of(instance, near) or 0) <= before.objective


def test_parts_that_find_nothing_end_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tables on two ranks cannot be cheaper, and proofs that count no work do not go on for
    ever: so many parts in a row, and it is over."""
    monkeypatch.setattr(neighbourhoods, "COLUMNS", 1)
    instance, asked = (
        built([at(ANY, 5)] * 2, machines=[range(2)]),
        Settings(work_limit=1, workers=1),
    )
    parts, drawn = search(instance, [0]), list[float]()
    draw = parts._drawn

    def counted(*some: Any) -> Any:
        drawn.append(some[2])
        assert len(drawn) < 50
        return draw(*some)

    monkeypatch.setattr(parts, "_drawn", counted)
    clock = Clock(asked)
    monkeypatch.setattr(clock, "spend", lambda work: None)
    plan = placed(range(2), [0], [1])
    assert parts.least(plan, 0, asked, clock, 1.0) is plan
    assert len(drawn) == Size().patience
