"""Multipliers carried to a similar instance: what they prove is true and near the optimum."""

from dataclasses import replace

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from formulations import Instance, Objective, Settings, solve
from formulations.evidence.verify import certifies
from formulations.proof.carry import carried
from formulations.proof.prove import prove
from formulations.reduce import NEVER, bounds_at
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import two_modes
from tests.formulations.strategies import instances


def grown(instance: Instance, factor: float) -> Instance:
    """The instance with every use and cost multiplied by a factor."""
    return replace(
        instance,
        shard_use=(instance.shard_use * factor).astype(np.int64),
        shard_cost=(instance.shard_cost * factor).astype(np.int64),
    )


@settings(max_examples=50, deadline=None)
@given(instances(constraints=False), st.sampled_from([0.5, 1.0, 1.5]))
def test_what_carried_multipliers_prove_is_true(instance: Instance, factor: float) -> None:
    """Carried to the same, a larger or a smaller instance, multipliers prove a true bound."""
    truth = brute_force(instance).objective
    assume(truth is not None and instance.num_tables)
    certificate = prove(instance, truth)
    assume(certificate is not None)
    after = grown(instance, factor)
    prices = carried(certificate, instance, after)
    if prices is None:
        return
    bound = bounds_at(after, after.allowed, prices).bound
    best = brute_force(after).objective
    if best is None:
        return
    assert bound <= best
    assert certifies(after, replace(prices, target=bound))


@settings(max_examples=30, deadline=None)
@given(instances([*Objective][1:], constraints=False))
def test_a_solve_with_prices_ends_as_without(instance: Instance) -> None:
    """A solve that starts from carried multipliers finds the optimum and certifies no more."""
    truth = brute_force(instance).objective
    assume(truth is not None and instance.num_tables)
    certificate = prove(instance, truth)
    assume(certificate is not None)
    prices = carried(certificate, instance, instance)
    asked = Settings(time_limit=None, work_limit=20.0, workers=1, prices=prices, polish=False)
    outcome = solve(instance, "auto", asked)
    assert outcome.objective == truth
    assert outcome.certified_bound is None or outcome.certified_bound <= truth


def test_rows_that_are_gone_fall_away() -> None:
    """A table and a resource that the other instance lacks have no multiplier there, and neither
    has a row of functions, whose bins are the first one's."""
    before = two_modes()
    certificate = prove(before, brute_force(before).objective)
    assert certificate is not None
    rows = [{"row": "capacity", "of": "gone", "times": 3},
            {"row": "largest_cost", "of": before.phases[0], "table": 0, "times": 2},
            {"row": "functions", "first": [], "second": [], "bins": [], "each": [],
             "functions": [], "times": 4},
            {"row": "cost", "of": before.phases[0], "at": 0, "times": 5}]  # fmt: skip
    other = replace(before, table_names=("renamed", *before.table_names[1:]))
    gone = replace(before.resources[0], name="gone")
    prices = carried(
        replace(certificate, vectors=(rows,), nodes=({"use": [0]},)),
        replace(before, resources=(gone, *before.resources)), other,
    )  # fmt: skip
    assert prices is not None
    assert prices.vectors == (
        [{"row": "cost", "of": before.phases[0], "times": 5 // before.num_ranks}],
    )
    assert bounds_at(other, other.allowed, prices).bound < NEVER
