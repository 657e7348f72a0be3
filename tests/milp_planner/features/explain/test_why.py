"""Alternatives against enumeration with the option pinned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from formulations import (
    Block,
    Instance,
    InstanceBuilder,
    Settings,
    Shard,
    Status,
    Where,
    solve,
)
from formulations.capacity.budget import Budget
from formulations.diagnose.questions import constraints_of, lift
from formulations.instance import Pin
from formulations.result.check import check
from milp_planner.errors import BadInput
from milp_planner.features.explain.swap import swap
from milp_planner.features.explain.why import MOST_TABLES, Alternative, why
from milp_planner.features.plan.tables import piles
from tests.formulations.brute_force import brute_force, table_placements
from tests.formulations.examples import two_modes
from tests.milp_planner.features.explain.quick import quick, small, truth

LIMITS = Settings(time_limit=30, workers=1)


def _pinned(instance: Instance, table: int, name: str) -> int | None:
    option = instance.option_index(table, name)
    return truth(replace(instance, pins=(Pin(table, option),))).objective


def _forbids(instance: Instance, table: int, other: Alternative) -> None:
    """The named constraints alone leave no plan with this option."""
    option = instance.option_index(table, other.option)
    left = replace(instance, pins=(Pin(table, option),))
    for name in constraints_of(left):
        if name not in (*other.forbidden_by, "pins"):
            left = lift(left, name)
    assert brute_force(left).objective is None


@settings(max_examples=12, deadline=None)
@given(instance=small())
def test_every_alternative_costs_what_enumeration_says(instance: Instance) -> None:
    """Cost, bound and impossibility are those of the instance with the option pinned."""
    plan = solve(instance, "cpsat", LIMITS)
    assume(plan.status == Status.OPTIMAL)
    info, _ = why(instance, plan, quick(), count=9)
    for index, row in enumerate(info.tables):
        assert len(row.alternatives) == row.options - 1
        for other in row.alternatives:
            best = _pinned(instance, index, other.option)
            assert other.cost == best
            assert (other.status == "infeasible") == (best is None)
            assert other.bound is None if best is None else other.bound == best
            assert best is None or best >= info.objective
            if best is None:
                _forbids(instance, index, other)


def test_no_time_leaves_certified_bounds() -> None:
    """Even without time to re-solve there are bounds, and they hold against enumeration."""
    bounds = []

    @settings(max_examples=6, deadline=None)
    @given(instance=small())
    def each(instance: Instance) -> None:
        plan = solve(instance, "cpsat", LIMITS)
        assume(plan.status == Status.OPTIMAL)
        budget = quick()
        budget.settings.stop.set()
        info, _ = why(instance, plan, budget, count=9)
        for index, row in enumerate(info.tables):
            for other in row.alternatives:
                best = _pinned(instance, index, other.option)
                if other.status == "infeasible":
                    assert best is None
                elif best is not None:
                    assert other.bound is None or other.bound <= best
                    assert other.cost is None or other.cost >= best
                    bounds.append(other.bound)

    each()
    assert any(bound is not None for bound in bounds)


def test_the_budget_that_forbids_is_named() -> None:
    """CACHING for both tables needs 20 of the 12 bytes of DDR: with b kept at CACHING, a lacks
    8."""
    instance = two_modes()
    plan = solve(instance, "cpsat", LIMITS)
    info, _ = why(instance, plan, quick(), count=1)
    hybrid = next(row for row in info.tables if row.option == "HYBRID")
    (other,) = hybrid.alternatives
    assert other.option == "CACHING"
    assert [(s.resource, s.short_by) for s in other.lacks] == [("ddr", 8)]
    assert other.beside is None
    assert other.cost == 12  # the other table leaves CACHING


def test_what_no_plan_can_have_names_its_conflict() -> None:
    """With hbm 8 only CACHING for both fits, so hbm alone forbids HYBRID."""
    instance = two_modes(hbm=8, ddr=20)
    plan = solve(instance, "cpsat", LIMITS)
    info, _ = why(instance, plan, quick(), tables=["a"])
    (other,) = info.tables[0].alternatives
    assert (other.status, other.cost, other.bound) == ("infeasible", None, None)
    assert other.forbidden_by == ("hbm",)


def test_what_fits_nowhere_names_its_tier() -> None:
    """HYBRID needs 8 of the 7 bytes of HBM; no solve is needed to see that."""
    instance = two_modes(hbm=8, ddr=20)
    tight = replace(
        instance, resources=(replace(instance.resources[0], capacity=instance.resources[0].capacity
                                     - 1), instance.resources[1]))  # fmt: skip
    plan = solve(instance, "cpsat", LIMITS)
    (other,) = why(tight, plan, quick(), tables=["a"])[0].tables[0].alternatives
    assert other.status == "infeasible"
    assert other.forbidden_by == ("hbm",)


def test_unknown_tables_and_empty_plans_are_refused() -> None:
    """One sentence each."""
    instance = two_modes()
    plan = solve(instance, "cpsat", LIMITS)
    with pytest.raises(BadInput, match="table 'c'"):
        why(instance, plan, quick(), tables=["c"])
    with pytest.raises(BadInput, match="places nothing"):
        why(instance, plan.with_(placement=None), quick())


@settings(max_examples=12, deadline=None)
@given(instance=small())
def test_a_swap_is_a_real_plan(instance: Instance) -> None:
    """A swap's objective is the check's; an option with a single shard gets the best place."""
    best = solve(instance, "cpsat", LIMITS).placement
    assume(best is not None)
    assert best is not None
    for option in range(instance.num_options):
        found = swap(instance, best, option)
        if found is None:  # too few places, so enumeration finds none either
            assert not list(table_placements(instance, option))
            continue
        verdict = check(instance, found.placement)
        assert verdict.objectives
        assert (found.objective is not None) == verdict.feasible
        assert bool(found.lacks or found.clashes) == (not verdict.feasible)
        blocks = [instance.block(b) for b in instance.blocks_of(option)]
        if len(blocks) == 1 and blocks[0].count == 1 and found.objective is None:
            table = int(instance.table_of[option])
            for ranks in table_placements(instance, option):
                there = list(found.placement.ranks)
                there[table] = [np.asarray(r, dtype=int) for r in ranks]
                assert not check(instance, replace(found.placement, ranks=there)).feasible


@settings(max_examples=60, deadline=None)
@given(instance=small(), data=st.data())
def test_a_swap_is_what_the_check_says_of_it(instance: Instance, data: st.DataObject) -> None:
    """A swap's objective and shortages, computed from partial loads, are those of the whole
    check."""
    best = solve(instance, "cpsat", LIMITS).placement
    assume(best is not None)
    option = data.draw(st.integers(0, instance.num_options - 1))
    found = swap(instance, best, option, piles(instance, best, range(instance.num_tables)))
    assume(found is not None)
    verdict = check(instance, found.placement)
    assert verdict.loads is not None
    assert found.objective == (
        verdict.objectives[instance.objective.value] if verdict.feasible else None
    )
    over = [
        (r.name, int((use - r.capacity).max()))
        for r, use in zip(instance.resources, verdict.loads.use, strict=True)
        if (use > r.capacity).any()
    ]
    assert [(each.resource, each.short_by) for each in found.lacks] == over


def test_of_many_tables_the_costliest_are_asked_about() -> None:
    """Above the limit, only the tables with most time on one rank are explained, costliest
    first."""
    builder = InstanceBuilder([[0, 1]], ["step"], [("hbm", "rank", 10**6)], "busiest_rank")
    for index in range(MOST_TABLES + 5):
        builder.add_table(f"t{index}")
        for name, cost in (("a", index + 1), ("b", index + 2)):
            builder.add_option(name, [Block(Where.ANY_RANK, [Shard(cost=(cost,))])])
    instance = builder.build()
    outcome = solve(instance, "greedy", Settings(time_limit=2))
    info, _ = why(instance, outcome, Budget(Settings(time_limit=0.5)), count=1)
    assert [t.table for t in info.tables] == [f"t{i}" for i in reversed(range(5, MOST_TABLES + 5))]
    assert info.left == 5
    named, _ = why(instance, outcome, Budget(Settings(time_limit=0.5)), ["t0"], count=1)
    assert [t.table for t in named.tables] == ["t0"]
