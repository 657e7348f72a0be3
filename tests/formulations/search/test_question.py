"""Bounds from aggregate integer programs never exceed brute force.

The state: read as one frozen snapshot, in which everything fits together.
"""

import threading
from dataclasses import FrozenInstanceError, replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from formulations.clock import Clock, Limits
from formulations.evidence.verify import certifies
from formulations.instance import Instance, Objective
from formulations.instance.facts import own_cost
from formulations.model import partition
from formulations.presolve import usable
from formulations.proof.prove import prove, symmetric_lp
from formulations.result.check import check
from formulations.result.outcome import BoundSource
from formulations.search.question import APART, POOLED, Question, ask
from formulations.search.state import State
from formulations.settings import Settings
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import ANY, MACHINES, at, built
from tests.formulations.search.searches import on, three_on_two
from tests.formulations.search.test_fitting import whole_or_halves
from tests.formulations.strategies import instances

LOOSE = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@LOOSE
@given(instances())
def test_pooled_and_machine_bounds(instance: Instance) -> None:
    """Pooled and by machine: both at or below the optimum. Lists that tell no ranks apart leave
    bounds true: of integer programs, and certified ones."""
    truth = brute_force(instance).objective
    if truth is None:
        return

    def bounded(question: Question) -> None:
        result = ask(question, instance, Limits(seconds=10))
        assert not result.infeasible
        assert result.bound is None or result.bound <= truth

    bounded(POOLED)
    bounded(APART)
    with patch.object(partition, "MOST_LISTED", 0), patch.object(partition, "FEW_LISTS", 1.0):
        bounded(POOLED)
        certificate = prove(replace(instance), truth)
    assert certificate is None or certificate.target is None or certificate.target <= truth
    assert certificate is None or certifies(instance, certificate)


@LOOSE
@given(instances())
def test_no_option_of_the_best_plan_is_ruled_out(instance: Instance) -> None:
    """The optimum uses usable options only, costs at least what each costs by itself, and below its
    cost plus one all of them are left."""
    truth = brute_force(instance)
    if truth.placement is None or truth.objective is None:
        return
    assert usable(instance)[truth.placement.options].all()
    if instance.objective != Objective.TOTAL and instance.num_tables:
        assert own_cost(instance)[truth.placement.options].max() <= truth.objective
    assert opened(instance).left_below(truth.objective + 1)[truth.placement.options].all()


def test_machines_apart_tells_machines() -> None:
    """Two tables that fill a machine each go to different ones; one on both is told none."""
    second = replace(at(ANY, 5, ddr=10), among=[2, 3])
    tables = [second, at(ANY, 5, ddr=10), at(ANY, 5, ddr=2, count=2), at([0], 1)]
    machines = ask(APART, built(tables, machines=MACHINES, ddr=12), Limits(seconds=10)).machines
    assert machines is not None
    assert machines.tolist() == [1, 0, -1, -1]


SOURCE = BoundSource("lp", exact=True)


def opened(instance: Instance) -> State:
    """Nothing known yet."""
    return State(instance, Clock(Settings()), np.ones(instance.num_options, dtype=bool))


def test_a_snapshot_does_not_change() -> None:
    """What was read stays as it was, and nobody can write into it."""
    state = opened(three_on_two())
    before = state.known
    assert state.offer(on(0, 1, 1), "x")
    state.rule_out(np.asarray([True, True, False]))
    assert (before.best, before.objective) == (None, None) and before.keep.all()
    assert state.known.objective == 6 and state.known.keep.tolist() == [True, True, False]
    with pytest.raises(ValueError, match="read-only"):
        state.known.keep[0] = False
    with pytest.raises(FrozenInstanceError):
        state.known.bound = 3  # type: ignore[misc]


def test_what_is_ruled_out_stays_so() -> None:
    """Two parts that rule out at the same time, each from what it had read."""
    state = opened(three_on_two())
    state.rule_out(np.asarray([True, False, True]))
    state.rule_out(np.asarray([True, True, False]))
    assert state.known.keep.tolist() == [True, False, False]


def test_plan_and_objective_are_of_one_moment() -> None:
    """Readers beside writers: a plan is never read with another one's cost."""
    instance = three_on_two()
    state, over = opened(instance), threading.Event()

    def write() -> None:
        for bound, ranks in enumerate(((0, 0, 0), (0, 0, 1), (0, 1, 1))):
            state.lift(bound, SOURCE)
            state.offer(on(*ranks), "x")
        over.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = 0
    while not (over.is_set() and seen):
        known = state.known
        if known.best is not None:
            seen += 1
            assert check(instance, known.best).objectives["busiest_rank"] == known.objective
    writer.join()
    assert state.known.objective == 6


def test_options_are_priced_by_the_higher_target() -> None:
    """A weaker certificate does not replace a better one."""
    lp = symmetric_lp(three_on_two(), targets=False)
    assert lp is not None
    state = opened(three_on_two())
    state.price(lp.certificate)
    state.price(type(lp.certificate)("bound", 0, (), ()))
    assert state.known.certificate is lp.certificate


def test_what_comes_after_the_end_is_ignored() -> None:
    """Neither a plan nor a bound."""
    state = opened(three_on_two())
    state.close()
    state.lift(5, SOURCE)
    assert not state.offer(on(0, 1, 1), "x")
    assert (state.known.objective, state.known.bound) == (None, None)


def test_an_option_must_fit_beside_what_every_rank_carries() -> None:
    """60 on every rank and 50 more are no plan below 110, so that the table is halved; below 90
    nothing is left of it. Its own costs, 50 and 30, would rule out neither."""
    state = opened(whole_or_halves())
    assert state.left_below(111).tolist() == [True, True, True]
    assert state.left_below(110).tolist() == [True, False, True]
    assert not state.left_below(90)[1:].any()
