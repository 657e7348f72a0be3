"""One plan for several scenarios, against enumeration of all plans."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from formulations import Instance, Placement
from formulations.result.check import check
from milp_planner.errors import BadInput
from milp_planner.features.explain.robust import combine, robust
from tests.formulations.brute_force import table_placements
from tests.formulations.examples import two_modes
from tests.milp_planner.features.explain.quick import quick, small


def _all_values(scenarios: dict[str, Instance]) -> list[list[int]]:
    """The objective in every scenario, of every plan that is feasible in all of them."""
    first = next(iter(scenarios.values()))
    per_table = [
        [(o, ranks) for o in first.options_of(t) for ranks in table_placements(first, o)]
        for t in range(first.num_tables)
    ]
    found = []
    for chosen in itertools.product(*per_table):
        plan = Placement(
            np.asarray([o for o, _ in chosen], dtype=np.int64),
            [[np.asarray(r, dtype=np.int64) for r in ranks] for _, ranks in chosen],
        )
        verdicts = [check(i, plan) for i in scenarios.values()]
        if all(v.feasible for v in verdicts):
            kinds = [i.objective.value for i in scenarios.values()]
            found.append([v.objectives[k] for v, k in zip(verdicts, kinds, strict=True)])
    return found


@settings(max_examples=6, deadline=None)
@given(instance=small(max_tables=2), data=st.data())
def test_the_weighted_plan_is_the_best_of_all(instance: Instance, data: st.DataObject) -> None:
    """Costs redrawn and memory changed in the second scenario; weights 2 and 3."""
    seed = data.draw(st.integers(0, 99))
    rng = np.random.default_rng(seed)
    cost = rng.integers(0, 9, instance.shard_cost.shape)
    resources = tuple(replace(r, capacity=r.capacity + 1) for r in instance.resources)
    scenarios = {"a": instance, "b": replace(instance, shard_cost=cost, resources=resources)}
    values = _all_values(scenarios)
    info, combined, plan = robust(scenarios, quick(), {"a": 2, "b": 3})
    assert info.objective == min((2 * a + 3 * b for a, b in values), default=None)
    assert info.status == ("optimal" if values else "infeasible")
    assume(values)
    assert plan is not None
    assert check(combined, plan).feasible
    assert [row.value for row in info.scenarios] in values
    for row, column in zip(info.scenarios, zip(*values, strict=True), strict=True):
        assert row.own is not None
        assert row.own <= min(column)


@settings(max_examples=4, deadline=None)
@given(instance=small(max_tables=2), seed=st.integers(0, 99))
def test_the_worst_case_is_bracketed(instance: Instance, seed: int) -> None:
    """Bound ≤ the true minimax ≤ the plan's worst, and the plan's worst is a plan's."""
    cost = np.random.default_rng(seed).integers(0, 9, instance.shard_cost.shape)
    scenarios = {"a": instance, "b": replace(instance, shard_cost=cost)}
    values = _all_values(scenarios)
    info, _, _ = robust(scenarios, quick(), aim="worst", rounds=4)
    if not values:
        assert info.objective is None
        return
    best = min(max(pair) for pair in values)
    assert info.objective is not None
    assert info.bound is not None
    assert info.bound <= best <= info.objective
    assert info.objective in [max(pair) for pair in values]


def test_the_bracket_by_hand() -> None:
    """HYBRID costs 9 and 1, CACHING 3 and 7: (18, 2), (12, 8), (6, 14), so 12 is the best worst.

    All three have the same sum, so no weights single out the middle one: a gap remains and is told.
    """
    first = replace(two_modes(hbm=20, ddr=20))
    cost = np.asarray([[1], [7], [1], [7]])
    scenarios = {"day": first, "night": replace(first, shard_cost=cost)}
    info, _, _ = robust(scenarios, quick(), aim="worst")
    assert info.objective in (12, 14)
    assert info.bound is not None
    assert 10 <= info.bound <= 12
    assert (info.status == "optimal") == (info.objective == info.bound)
    assert {row.name: row.own for row in info.scenarios} == {"day": 6, "night": 2}


def test_scenarios_must_be_about_the_same_tables() -> None:
    """One sentence each."""
    one = two_modes()
    with pytest.raises(BadInput, match="two scenarios"):
        combine({"a": one}, {"a": 1})
    other = replace(one, table_names=("a", "c"))
    with pytest.raises(BadInput, match="tables differ"):
        combine({"a": one, "b": other}, {"a": 1, "b": 1})


def test_a_poor_search_for_one_scenario_makes_no_negative_regret() -> None:
    """The common plan is a plan for each scenario: what is known of it alone is no worse."""
    scenarios = {"a": two_modes(20, 20), "b": two_modes(20, 20)}
    poor: dict[str, tuple[int | None, int | None]] = {"a": (10**6, None), "b": (10**6, None)}
    info, _, _ = robust(scenarios, quick(), own=poor)
    assert [(row.own, row.regret) for row in info.scenarios] == [
        (row.value, 0.0) for row in info.scenarios
    ]
