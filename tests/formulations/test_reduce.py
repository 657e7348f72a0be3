"""Bounds of every option, and solving by cores, against the oracle."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from formulations.clock import Clock
from formulations.instance import Instance, Objective, Where
from formulations.methods import exact as cpsat
from formulations.presolve import presolve
from formulations.reduce import NEVER, option_bounds, places_are_fixed
from formulations.result.check import check
from formulations.result.outcome import Status
from formulations.settings import Settings
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import EVERY, at, built
from tests.formulations.strategies import instances

QUIET = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
FIXED = (Where.EVERY_RANK, Where.LIST, Where.CLUSTER)


@QUIET
@given(instances(max_combinations=3000))
def test_no_plan_with_an_option_is_cheaper_than_its_bound(instance: Instance) -> None:
    """Pin each option in turn: the optimum is at least the option's bound, and the overall one."""
    kept = presolve(instance).kept
    if not instance.num_tables or presolve(instance).empty_table(instance) is not None:
        return
    bounds = option_bounds(instance, kept)
    if bounds is None:
        assert brute_force(instance).objective is None
        return
    for option in np.flatnonzero(kept):
        value = _best_with(instance, int(option))
        if value is not None:
            assert value >= bounds.of_option[option] >= bounds.bound


def _best_with(instance: Instance, option: int) -> int | None:
    """The oracle's optimum among plans that use an option."""
    from dataclasses import replace

    table = int(instance.table_of[option])
    others = [(table, o) for o in instance.options_of(table) if o != option]
    only = replace(instance, forbidden=(*instance.forbidden, *others))
    return brute_force(only).objective


@QUIET
@given(instances(wheres=FIXED, max_tables=6, max_combinations=10**5))
def test_cores_equal_brute_force(instance: Instance) -> None:
    """Cores that grow from one option beyond the least end at the oracle's optimum and bound."""
    truth = brute_force(instance)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("formulations.methods.exact.CORES_FROM", 0)
        patch.setattr("formulations.methods.exact.FIRST", 1)
        wishes = Settings(workers=1, time_limit=60, polish=False)
        outcome = cpsat.solve(instance, wishes, Clock(wishes))
    if truth.objective is None:
        assert outcome.status == Status.INFEASIBLE
        return
    assert outcome.status == Status.OPTIMAL
    assert outcome.objective == outcome.bound == truth.objective
    assert outcome.placement is not None
    assert check(instance, outcome.placement).feasible


@QUIET
@given(instances(objectives=[Objective.TOTAL]))
def test_places_are_fixed_means_what_it_says(instance: Instance) -> None:
    """Places are fixed exactly when no kept option has a block that chooses its place."""
    kept = presolve(instance).kept
    chooses = any(
        instance.block(b).where not in FIXED
        for o in np.flatnonzero(kept)
        for b in instance.blocks_of(int(o))
    )
    assert places_are_fixed(instance, kept) is not chooses


def test_removed_options_are_never_in_a_core() -> None:
    """An option that presolve removed has the bound NEVER."""
    table = {"fits": at(EVERY, 3, hbm=5), "too large": at(EVERY, 1, hbm=6)}
    instance = built([table], "total", [[0]], hbm=5)
    bounds = option_bounds(instance, presolve(instance).kept)
    assert bounds is not None
    assert bounds.of_option.tolist() == [3, NEVER]
    assert bounds.cheapest(instance, 5).tolist() == [True, False]
