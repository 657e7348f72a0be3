"""Options ruled out are never needed by a plan better than the best known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formulations.bounds.own import usable
from formulations.clock import Clock
from formulations.instance import Instance, Objective
from formulations.model.build import Parts
from formulations.proof.prove import symmetric_lp
from formulations.search.context import Context
from formulations.search.filter import by_price, by_probing, core
from formulations.settings import Settings
from tests.formulations.brute_force import brute_force
from tests.formulations.strategies import instances

LOOSE = settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))


def without(instance: Instance, keep: np.ndarray) -> Instance:
    """The instance with the other options forbidden."""
    dropped = [(int(instance.table_of[o]), int(o)) for o in np.flatnonzero(~keep)]
    return replace(instance, forbidden=(*instance.forbidden, *dropped))


@LOOSE
@given(instances())
def test_reduced_costs_keep_better_plans(instance: Instance) -> None:
    """With an upper limit one above the optimum, the optimum survives the filter by price."""
    truth = brute_force(instance).objective
    lp = symmetric_lp(instance)
    if truth is None or lp is None:
        return
    keep = by_price(instance, lp.certificate, usable(instance), truth + 1)
    assert brute_force(without(instance, keep)).objective == truth


@LOOSE
@given(instances(objectives=[Objective.BUSIEST_RANK, Objective.STEP_TIME]))
def test_probing_keeps_better_plans(instance: Instance) -> None:
    """With a best plan one above the optimum, the optimum survives probing."""
    truth = brute_force(instance).objective
    if truth is None or not instance.num_tables:
        return
    asked = Settings(time_limit=10, workers=1)
    context = Context(instance, asked, Clock(asked), usable(instance))
    context.objective = truth + 1
    dropped = by_probing(context, 5.0, Parts())
    assert dropped == int(usable(instance).sum() - context.keep.sum())
    assert brute_force(without(instance, context.keep)).objective == truth


@LOOSE
@given(instances(), st.integers(1, 12))
def test_a_core_has_an_option_for_every_table(instance: Instance, size: int) -> None:
    """A core keeps to the options in the game, leaves no table without one, and grows with size."""
    lp = symmetric_lp(instance)
    keep = usable(instance)
    if lp is None or set(instance.table_of[keep]) != set(range(instance.num_tables)):
        return
    chosen = core(instance, lp.certificate, keep, size)
    assert not (chosen & ~keep).any()
    assert set(instance.table_of[chosen]) == set(range(instance.num_tables))
    assert not (chosen & ~core(instance, lp.certificate, keep, size + 1)).any()
    assert (core(instance, lp.certificate, keep, instance.num_options) == keep).all()
