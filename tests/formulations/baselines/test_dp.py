"""The dynamic-programming baseline: what it finds, what it must miss, what it refuses."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations import (
    Block,
    Instance,
    InstanceBuilder,
    InstanceError,
    Objective,
    Outcome,
    Settings,
    Shard,
    Status,
    StoppedBy,
    UnsupportedInstance,
    Where,
    check,
    solve,
)
from formulations.baselines.dp.programme import (
    OPTIONS,
    Programme,
    make_axes,
    make_grid,
    make_problem,
    read_settings,
)
from formulations.fusion import mixed_groups, without_fusion
from formulations.instance import Pin
from formulations.instance.facts import option_facts
from formulations.settings import OwnSettings
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import ANY, EVERY, at, built, every_kind, two_modes
from tests.formulations.strategies import instances

EXACT = {"variant": "first", "axis_cap": 0}


def dp(instance: Instance, time_limit: float | None = 20, **options: Any) -> Outcome:
    """Solve with the DP and no certificate."""
    return solve(
        instance, "dp", Settings(time_limit=time_limit, certificate=False, options=options)
    )


def names(instance: Instance, outcome: Outcome) -> list[str]:
    """Chosen option names, table by table."""
    assert outcome.placement is not None
    return [instance.option_names[o] for o in outcome.placement.options]


@pytest.mark.parametrize("variant", ["first", "merged"])
def test_headline_case(variant: str) -> None:
    """Two HYBRID tables overflow HBM, two CACHING ones DDR: one of each has a byte to spare."""
    instance = two_modes(13, 13)
    outcome = dp(instance, variant=variant)
    assert sorted(names(instance, outcome)) == ["CACHING", "HYBRID"]
    assert outcome.status == Status.FEASIBLE
    assert outcome.bound is None


@pytest.mark.parametrize(("hbm", "ddr", "expected"), [
    (100, 100, ["CACHING", "CACHING"]), (100, 5, ["HYBRID", "HYBRID"])])  # fmt: skip
def test_generous_and_tight_host_memory(hbm: int, ddr: int, expected: list[str]) -> None:
    """With ample DDR both tables are CACHING, with little DDR both are HYBRID."""
    instance = two_modes(hbm, ddr)
    assert names(instance, dp(instance)) == expected


@pytest.mark.parametrize("variant", ["first", "merged"])
def test_a_budget_met_to_the_byte_is_refused(variant: str) -> None:
    """One of each mode uses exactly 12 and 12, which the published strict comparison refuses."""
    instance = two_modes(12, 12)
    assert brute_force(instance).objective == 12
    outcome = dp(instance, variant=variant)
    assert outcome.status == Status.UNKNOWN
    assert outcome.stopped_by == StoppedBy.EXHAUSTED
    assert "proves nothing" in outcome.note


def test_empty_model_and_one_table() -> None:
    """No table: the empty plan at no cost. One table: its cheapest option that fits."""
    empty = dp(built([], machines=[[0]], hbm=10, ddr=10))
    assert (empty.status, empty.objective) == (Status.FEASIBLE, 0)
    table = {"big": at(EVERY, 1, hbm=11), "mid": at(EVERY, 5, hbm=9), "small": at(EVERY, 9, hbm=1)}
    instance = built([table], machines=[[0]], hbm=10, ddr=10)
    assert names(instance, dp(instance)) == ["mid"]


@settings(max_examples=120, deadline=None)
@given(instances(constraints=True), st.sampled_from(["first", "merged"]), st.booleans())
def test_never_better_than_exact(instance: Instance, variant: str, fusion_aware: bool) -> None:
    """Every plan of the DP passes the check and costs at least the brute-force optimum."""
    axes = [r.name for r in instance.resources]
    if not 1 <= len(axes) <= 2:
        return
    outcome = dp(instance, variant=variant, axes=axes, fusion_aware=fusion_aware,
                 hbm_bins_per_device=7, ddr_bins_per_device=3)  # fmt: skip
    assert outcome.status in (Status.FEASIBLE, Status.UNKNOWN)
    if outcome.placement is not None:
        truth = brute_force(instance).objective
        assert truth is not None
        assert outcome.objective is not None
        assert outcome.objective >= truth


@st.composite
def pooled(draw: st.DrawFn) -> Instance:
    """An instance with one place for each budget, objective total, with or without fusion."""
    budgets = draw(st.tuples(st.integers(1, 20), st.integers(1, 12)))
    builder = InstanceBuilder(
        [[0]], ["p"], [("hbm", "cluster", budgets[0]), ("ddr", "cluster", budgets[1])],
        Objective.TOTAL,
    )  # fmt: skip
    fused = draw(st.booleans())
    for table in range(draw(st.integers(1, 4))):
        builder.add_table(f"t{table}")
        for option in range(draw(st.integers(1, 3))):
            use = {"hbm": draw(st.integers(0, 9)), "ddr": draw(st.integers(0, 6))}
            cost, where = draw(st.integers(-5, 20)), draw(st.sampled_from([Where.CLUSTER, EVERY]))
            group = draw(st.sampled_from([None, ("f", option), ("g", option)])) if fused else None
            builder.add_option(f"o{option}", [at(where, cost, **use)], group)
    return builder.build()


@settings(max_examples=150, deadline=None)
@given(pooled())
def test_equals_exact_strictly_inside_pooled_budgets(instance: Instance) -> None:
    """With one bin per byte, the DP finds the optimum for pooled budgets that are one byte less."""
    hbm, ddr = (int(r.capacity[0]) for r in instance.resources)
    inside = replace(
        instance,
        resources=tuple(replace(r, capacity=r.capacity - 1) for r in instance.resources),
    )
    options = dict(EXACT, hbm_bins_per_device=hbm, ddr_bins_per_device=ddr)
    free = brute_force(without_fusion(inside)).objective
    outcome = dp(without_fusion(instance), **options)
    if outcome.objective != free:
        # Only the proposal of the smallest options skips the bins, so only it may use up a budget.
        assert outcome.objective is not None
        assert outcome.objective < (free if free is not None else outcome.objective + 1)
        assert outcome.placement is not None
        assert set(outcome.placement.options) == set(_smallest(instance))
        use = instance.shard_use[outcome.placement.options].sum(axis=0).tolist()
        assert use[0] == hbm or use[1] == ddr
    fused = brute_force(inside).objective
    aware = dp(instance, fusion_aware=True, **options)
    if fused is not None:
        assert aware.objective is not None
        assert aware.objective <= fused
        assert aware.objective >= (brute_force(instance).objective or aware.objective)


def _smallest(instance: Instance) -> list[int]:
    """Each table's option with the least total memory, the first one in a tie."""
    memory = instance.shard_use.sum(axis=1)
    return [min(instance.options_of(t), key=lambda o: memory[o]) for t in
            range(instance.num_tables)]  # fmt: skip


def two_budgets(uses: list[list[tuple[int, int, int]]], ranks: int = 1, **sizes: int) -> Instance:
    """Tables whose options each put one shard of (hbm, ddr, cost) on every rank."""
    tables = [{f"o{i}": at(EVERY, cost, hbm=hbm, ddr=ddr) for i, (hbm, ddr, cost) in enumerate(use)}
              for use in uses]  # fmt: skip
    return built(tables, machines=[range(ranks)], **{"hbm": 100, "ddr": 100, **sizes})


@pytest.mark.parametrize(("options", "bins"), [
    ({"variant": "merged"}, [400, 100]),
    ({"variant": "first"}, [400, 200]),
    ({"variant": "merged", "mem_bins_per_device": 10, "hbm_bins_per_device": 99}, [40, 100]),
    ({"variant": "first", "hbm_bins_per_device": 300}, [1024, 200]),
    ({"variant": "merged", "hbm_bins_per_device": 300, "ddr_bins_per_device": 1}, [1200, 4]),
    ({"variant": "merged", "axis_cap": 64}, [64, 64]),
])  # fmt: skip
def test_published_bins(options: dict[str, Any], bins: list[int]) -> None:
    """An axis has bins per device × devices; the first variant caps it, and the old name wins."""
    outcome = dp(two_budgets([[(1, 1, 1)]], ranks=4), **options)
    assert outcome.detail["bins"] == [bins]


def test_memory_limit_coarsens_the_grid() -> None:
    """Under a small memory limit both axes have fewer bins, and the outcome says how many."""
    instance = two_budgets([[(1, 1, 1)]], ranks=8)
    [[hbm, ddr]] = dp(instance, memory_limit_mb=1).detail["bins"]  # type: ignore[misc]
    assert hbm * ddr * 100 <= 2**20 / 2
    assert hbm / ddr == pytest.approx(4, rel=0.1)


def test_rated_by_another_objective() -> None:
    """rank_by decides between proposals; the outcome still shows the instance's own objective."""
    table = {"rw": at(EVERY, 6, hbm=40), "tw": at(ANY, 10, hbm=70)}
    instance = built([table], hbm=100, ddr=100)
    assert names(instance, dp(instance)) == ["rw"]
    by_total = dp(instance, rank_by="total")
    assert names(instance, by_total) == ["tw"]
    assert by_total.objective == 10


def test_cheapest_takes_the_first_that_can_be_placed() -> None:
    """The proposal of least summed cost does not fit the ranks, so the next one is returned."""
    table = {"tw": at(ANY, 2, hbm=6), "rw": at(EVERY, 2, hbm=1)}
    instance = built([table] * 3, hbm=10, ddr=99)
    outcome = dp(instance, select="cheapest", hbm_bins_per_device=40)
    assert outcome.detail["accepted"] == 1
    assert sorted(names(instance, outcome)) == ["rw", "tw", "tw"]
    assert outcome.objective == brute_force(instance).objective == 4


def test_as_published_the_plan_breaks_its_fusion_group() -> None:
    """A group with mixed ratios is returned at the runtime's single ratio, and the note says so."""
    instance = mixed_ratios()
    outcome = dp(instance)
    unfused: Any = outcome.detail["unfused"]
    assert unfused["mixed"] == {"dyn": [0, 10]}
    planned = unfused["objectives"]["busiest_rank"]
    assert outcome.objective is not None
    assert outcome.objective > planned
    assert str(planned) in outcome.note
    assert outcome.placement is not None
    assert mixed_groups(instance, outcome.placement) == {}
    aware = dp(instance, fusion_aware=True)
    assert aware.objective == brute_force(instance).objective
    assert aware.objective <= outcome.objective
    assert "unfused" not in aware.detail


def mixed_ratios() -> Instance:
    """A hot small table and a cold large one in one group; HBM has room for the small one."""

    def option(size: int, gain: int, level: int) -> tuple[Block, tuple[str, int]]:
        fast = size * level // 10
        return at(EVERY, 100 - gain * level // 10, hbm=fast, ddr=size - fast), ("dyn", level)

    tables = {name: {f"x{level}": option(size, gain, level) for level in range(11)}
              for name, size, gain in (("hot", 40, 90), ("cold", 160, 20))}  # fmt: skip
    return built(tables, machines=[[0]], hbm=45, ddr=500)


def test_a_respread_plan_that_does_not_fit_is_not_returned() -> None:
    """When the runtime's ratio breaks memory, the outcome is unknown and names the place."""
    tables = [{f"x{level}": (at(EVERY, cost, hbm=hbm, ddr=60 - 60 * level), ("dyn", level))
               for level, hbm, cost in levels}
              for levels in (((0, 0, 9), (1, 10, 1)), ((0, 0, 1), (1, 90, 1)))]  # fmt: skip
    outcome = dp(built(tables, machines=[[0]], hbm=11, ddr=99))
    assert outcome.status == Status.UNKNOWN
    assert "as the runtime would run it breaks" in outcome.note
    assert "of machine 0" in outcome.note or "of rank 0" in outcome.note


def test_refined_bins_find_what_coarse_ones_miss() -> None:
    """One bin keeps one state; refined bins also keep the smaller one that the best plan needs."""
    tight = two_budgets([[(60, 0, 9), (70, 0, 3)], [(39, 0, 4), (29, 0, 5)]])
    coarse = dp(tight, hbm_bins_per_device=1, ddr_bins_per_device=1)
    refined = dp(tight, hbm_bins_per_device=1, ddr_bins_per_device=1, refine=True,
                 memory_limit_mb=1)  # fmt: skip
    assert refined.objective == brute_force(tight).objective == 8
    assert coarse.objective == 13
    assert len(refined.detail["bins"]) > 3  # type: ignore[arg-type]


def test_other_shapes_are_refused_in_a_sentence() -> None:
    """A third resource, wrong axes and wrong options are each refused by name."""
    with pytest.raises(UnsupportedInstance, match="also limits links"):
        dp(every_kind())
    with pytest.raises(UnsupportedInstance, match="also limits hbm"):
        dp(two_modes(), axes=["ddr", "ssd"])
    with pytest.raises(UnsupportedInstance, match="one or two axes"):
        dp(two_modes(), axes=["hbm", "ddr", "x"])
    with pytest.raises(InstanceError, match="'variants'; did you mean 'variant'"):
        dp(two_modes(), variants="first")
    with pytest.raises(InstanceError, match="'refine' goes with select 'best'"):
        dp(two_modes(), refine=True, select="cheapest")


def test_pins_and_forbidden_options_are_kept() -> None:
    """The DP chooses only among the options that pins and forbidden options leave."""
    base = two_modes(100, 100)
    pinned = replace(base, pins=(Pin(0, 0),), forbidden=((1, 3),))
    assert names(base, dp(base)) == ["CACHING", "CACHING"]
    assert names(pinned, dp(pinned)) == ["HYBRID", "HYBRID"]
    none_left = replace(base, forbidden=((1, 2), (1, 3)))
    assert dp(none_left).status == Status.UNKNOWN


def test_a_shard_larger_than_every_place_is_pruned() -> None:
    """An option that fits the summed budget but no single rank is pruned before it is proposed."""
    builder = InstanceBuilder(
        [[0, 1]], ["p"], [("hbm", "rank", [10, 14]), ("ddr", "rank", [5, 5])], Objective.TOTAL
    )
    builder.add_table("t")
    for name, use, cost in (
        ("too_big", {"hbm": 15}, 1),
        ("fits_one", {"hbm": 14}, 3),
        ("host", {"ddr": 9}, 2),
    ):
        builder.add_option(name, [Block(Where.ANY_RANK, [Shard(use, (cost,))])])
    instance = builder.build()
    hbm, ddr = make_axes(instance, option_facts(instance), ("hbm", "ddr"))
    assert hbm.fits().tolist() == [False, True, True]
    # As published, DDR given per rank is compared with the machine's sum: "host" is kept, although
    # no rank has room for it.
    assert ddr.fits().tolist() == [True, True, True]
    assert (hbm.total, hbm.largest, ddr.total, ddr.largest) == (24, 14, 10, 10)
    outcome = dp(instance)
    assert names(instance, outcome) == ["fits_one"]
    assert check(instance, outcome.placement).feasible  # type: ignore[arg-type]


@pytest.mark.parametrize("variant", ["first", "merged"])
def test_a_table_whose_options_are_all_pruned_ends_the_search(variant: str) -> None:
    """Only the first published proposal, the smallest options, is tried: no plan, no bound."""
    instance = two_budgets([[(200, 1, 1), (1, 200, 2)], [(1, 1, 1)]])
    outcome = dp(instance, variant=variant)
    assert (outcome.status, outcome.placement, outcome.bound) == (Status.UNKNOWN, None, None)
    assert (outcome.detail["proposed"], outcome.detail["placed"]) == (1, 0)
    alone = dp(two_budgets([[(1, 1, 1)]]), variant=variant)
    assert alone.status == Status.FEASIBLE  # without that table there is a plan


def test_proposals_in_published_order() -> None:
    """The first variant proposes every cell by decreasing memory, the merged one the cheapest of
    each HBM bin by decreasing HBM."""
    instance = two_budgets([[(10, 30, 5), (40, 0, 4), (40, 40, 3), (70, 10, 2)]])
    found = {}
    for variant in ("first", "merged"):
        options = {"variant": variant, "hbm_bins_per_device": 10, "ddr_bins_per_device": 10}
        chosen = read_settings(instance, OwnSettings("dp", options, OPTIONS))
        facts = option_facts(instance)
        axes = make_axes(instance, facts, chosen.axes)
        problem = make_problem(instance, facts, axes, chosen)
        assert problem.smallest.tolist() == [[0]]  # 10 + 30 before 40 + 0: a tie, in order
        programme = Programme(problem, make_grid(problem), lambda: False)
        keep_all = programme.proposals(lambda end, states: np.zeros(len(states), dtype=bool))
        found[variant] = np.concatenate(list(keep_all))[:, 0].tolist()
    assert found == {"first": [3, 2, 1, 0], "merged": [3, 2, 0]}


def test_no_hbm_and_no_ddr() -> None:
    """An axis without a budget has one bin, and options that need it are dropped."""
    table = {"fast": at(EVERY, 1, hbm=1), "host": at(EVERY, 8, ddr=9)}
    instance = built([table], "step_time", [[0]], hbm=0, ddr=50)
    outcome = dp(instance)
    assert names(instance, outcome) == ["host"]
    assert outcome.detail["bins"] == [[1, 25]]
