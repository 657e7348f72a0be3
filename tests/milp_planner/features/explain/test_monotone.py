"""Sweeps over random budgets with a solver that is often poor: more is never dearer, nor fits
less."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from math import inf

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from formulations import Instance, Objective, Outcome, Placement, Settings
from formulations.capacity.budget import Budget
from formulations.capacity.curve import Answer, Curve
from formulations.result.certificate import Certificate
from formulations.result.check import check
from formulations.result.outcome import BoundSource, StoppedBy, found, infeasible, nothing
from milp_planner.features.explain.axes import Memory, memories_of, with_more
from milp_planner.features.explain.frontier import frontier, least_of
from milp_planner.features.moves.limits import limited, trade_off
from tests.formulations.brute_force import brute_force
from tests.milp_planner.features.explain.quick import as_plan, in_production, small, truth


class Poor(Budget):
    """At random: the optimum, proved; a poor plan with a poor bound; no answer; infeasible."""

    def __init__(self, seed: int) -> None:
        super().__init__(Settings(time_limit=None))
        self._chance = random.Random(seed)

    def no_longer_than(self, seconds: float) -> Budget:
        """Itself."""
        return self

    def certifying(self, gap: float = 0.0) -> Budget:
        """Itself."""
        return self

    def deciding(self, target: int | None) -> Budget:
        """Itself."""
        return self

    def solve(
        self, instance: Instance, share: float = 1.0,
        hint: Placement | None = None, prices: Certificate | None = None,
    ) -> Outcome:  # fmt: skip
        """One of these."""
        best, luck = truth(instance), self._chance.random()
        if luck < 0.3:
            return nothing("poor", StoppedBy.TIME_LIMIT)
        if best.placement is None:
            return infeasible("poor", BoundSource("poor", exact=True))
        assert best.objective is not None
        placement, bound = best.placement, best.objective
        if luck < 0.6:
            dear = replace(
                instance, shard_cost=-np.abs(instance.shard_cost), objective=Objective.TOTAL
            )
            worst = brute_force(dear).placement
            assert worst is not None
            placement, bound = worst, best.objective - self._chance.randrange(3)
        source = BoundSource("poor", exact=True)
        return found(instance, "poor", placement, StoppedBy.TIME_LIMIT, bound, source)


def check_curve(make: Callable[[int], Instance], answers: Mapping[int, Answer]) -> None:
    """Objectives and bounds never rise with the budget, and hold at every point."""
    for point, answer in answers.items():
        there, best = make(point), truth(make(point)).objective
        if answer.placement is not None:
            judged = check(there, answer.placement)
            assert judged.feasible
            assert judged.objectives[there.objective.value] == answer.objective
            assert best is not None and answer.objective is not None and best <= answer.objective
        assert not answer.infeasible or best is None
        assert answer.bound is None or best is None or answer.bound <= best
    for (_, less), (_, more) in pairwise(sorted(answers.items())):
        assert (inf if more.objective is None else more.objective) <= (
            inf if less.objective is None else less.objective
        )
        assert less.infeasible or not more.infeasible
        assert less.infeasible or (less.bound if less.bound is not None else -inf) >= (
            -inf if more.bound is None else more.bound
        )


@settings(max_examples=60, deadline=None)
@given(small(), st.lists(st.integers(-20, 20), min_size=1, max_size=6), st.data())
def test_more_memory(instance: Instance, extras: list[int], data: st.DataObject) -> None:
    """A sweep, then single points beside it, of any tier."""
    axis = Memory(data.draw(st.sampled_from(sorted(memories_of(instance)))), as_plan(instance))
    curve = Curve(axis.instance, axis.need, Poor(data.draw(st.integers(0, 99))))
    curve.sweep(sorted({*extras}))
    for extra in data.draw(st.lists(st.integers(-20, 20), max_size=3)):
        curve.solve(extra)
    points = range(-20, 21)
    check_curve(curve.make, {point: curve.at(point) for point in points})


@settings(max_examples=40, deadline=None)
@given(small(), st.lists(st.integers(0, 12), min_size=1, max_size=5), st.data())
def test_more_moves(instance: Instance, limits: list[int], data: st.DataObject) -> None:
    """Limits on tables or bytes, from a plan in production."""
    best = truth(instance).placement
    assume(best is not None)
    assert best is not None
    instance = in_production(instance, best)
    by = data.draw(st.sampled_from(["tables", "bytes"]))
    answers = trade_off(instance, by, sorted({*limits}), Poor(data.draw(st.integers(0, 99))))
    check_curve(lambda limit: limited(instance, by, limit), answers)


@settings(max_examples=30, deadline=None)
@given(small(), st.integers(0, 99), st.data())
def test_frontier_and_least_memory(instance: Instance, seed: int, data: st.DataObject) -> None:
    """What is told of them is true, however poor the solves are."""
    first = instance.resources[data.draw(st.integers(0, len(instance.resources) - 1))]
    resources = (replace(r, name="p") if r is first else r for r in instance.resources)
    instance = replace(instance, resources=tuple(resources))  # a name of no file
    now = as_plan(instance, Poor(seed).solve(instance))
    here = int(first.capacity.min())
    info, _ = frontier(now, "p", [max(0, here + e) for e in (-5, -2, 3, 9)], Poor(seed + 1))
    for point in info.points:
        assert isinstance(point.budget, int)
        best = truth(with_more(instance, "p", point.budget - here)).objective
        assert point.status != "infeasible" or best is None
        assert point.objective is None or (best is not None and best <= point.objective)
        assert point.certified is None or best is None or point.certified <= best
    values = [inf if p.objective is None else p.objective for p in info.points]
    assert values == sorted(values, reverse=True)
    least = least_of(now, "p", Poor(seed + 2), grain=1).least
    assert least is not None
    assert least.least is None or least.too_small is None or least.too_small < least.least


def test_machines_are_on_their_own() -> None:
    """Without a least point that a plan needs, a plan or bound holds at its own point alone."""
    curve = Curve(lambda _: None, None, Poor(1))  # type: ignore[arg-type, return-value]
    curve.known.take_plan(3, 7, None)  # type: ignore[arg-type]
    curve.known.take_bound(3, 5)
    curve.known.take_impossible(4)
    assert (curve.at(3).objective, curve.at(3).bound) == (7, 5)
    assert curve.at(4) == Answer(infeasible=True) and curve.at(5) == Answer()


def test_what_an_answer_shows() -> None:
    """A target of 10 is reached, refuted, or open."""
    for answer, reached in (
        (Answer(infeasible=True), False), (Answer(9, bound=5), True), (Answer(12, bound=5), None),
        (Answer(12, bound=11), False), (Answer(), None), (Answer(bound=0), None),
    ):  # fmt: skip
        assert answer.reaches(10) is reached
