"""The frontier against enumeration of every capacity."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from formulations import Block, Instance, InstanceBuilder, Objective, Shard, Where
from milp_planner.features.explain.memory import capped, grid_frontier, tiers_of
from tests.formulations.examples import two_modes
from tests.milp_planner.features.explain.quick import first_of_each, quick, truth


def _enumerated(instance: Instance, tiers: tuple[str, ...]) -> set[tuple[int, ...]]:
    """Efficient (limits…, objective) over all whole limits from 0 to the capacities."""
    tops = [max(int(instance.resources[tiers_of(instance)[t][0]].capacity.max()), 0) for t in tiers]
    found = []
    for caps in product(*(range(top + 1) for top in tops)):
        best = truth(capped(instance, dict(zip(tiers, caps, strict=True)))).objective
        if best is not None:
            found.append((*caps, best))
    return {
        a for a in found
        if not any(b != a and all(x <= y for x, y in zip(b, a, strict=True)) for b in found)
    }  # fmt: skip


@st.composite
def two_tiers(draw: st.DrawFn) -> Instance:
    """One machine of one or two ranks; two tables of up to three options, each on one rank."""
    ranks = draw(st.integers(1, 2))
    capacity = [draw(st.integers(0, 5)) for _ in range(ranks)]
    builder = InstanceBuilder(
        [list(range(ranks))], ["step"],
        [("hbm", "rank", capacity), ("ddr", "machine", draw(st.integers(0, 5)))],
        Objective.STEP_TIME,
    )  # fmt: skip
    amount = st.integers(0, 3)
    for table in ("a", "b"):
        builder.add_table(table)
        for option in range(draw(st.integers(1, 3))):
            use = {"hbm": draw(amount), "ddr": draw(amount)}
            cost = (draw(st.integers(0, 9)),)
            builder.add_option(f"o{option}", [Block(Where.ANY_RANK, [Shard(use, cost)])])
    return builder.build()


@settings(max_examples=15, deadline=None)
@given(instance=two_tiers())
def test_hbm_against_ddr_is_all_there_is(instance: Instance) -> None:
    """On a grid of every pair of limits it is what enumerating them finds."""
    info = grid_frontier(instance, {"hbm": range(6), "ddr": range(6)}, quick())
    got = {(*p.used, p.objective) for p in info.points if p.efficient and p.used is not None}
    assert got == _enumerated(instance, ("hbm", "ddr"))


@settings(max_examples=10, deadline=None)
@given(instance=two_tiers())
def test_a_grid_of_both_tiers_is_proved_everywhere(instance: Instance) -> None:
    """Each point is the optimum, or proved to have none; efficient ones are beaten by no other."""
    axes = {"hbm": [1, 3, 5], "ddr": [0, 2, 5]}
    info = grid_frontier(instance, axes, quick())
    assert len(info.points) == 9
    reached: list[tuple[int, ...]] = []
    for point in info.points:
        best = truth(capped(instance, dict(zip(info.tiers, point.caps, strict=True)))).objective
        assert (point.objective, point.status == "infeasible") == (best, best is None)
        reached += [] if point.used is None or best is None else [(*point.used, best)]
    assert {p.used for p in info.points if p.efficient} == {
        own[:-1] for own in reached
        if not any(o != own and all(x <= y for x, y in zip(o, own, strict=True)) for o in reached)
    }  # fmt: skip


def test_the_grid_is_the_optimum_at_each_of_its_points() -> None:
    """Every point of the grid has the optimum within its limits; plans stand beside it."""
    instance = two_modes(hbm=20, ddr=20)
    plan = first_of_each(instance)
    assert plan is not None
    axes = {"hbm": [8, 12, 16], "ddr": [4, 12, 20]}
    info = grid_frontier(instance, axes, quick(), {"chosen": plan})
    for point in info.points:
        caps = dict(zip(info.tiers, point.caps, strict=True))
        assert point.objective == truth(capped(instance, caps)).objective
    assert info.plans[0].label == "chosen"
    assert info.plans[0].fits
    efficient = {(*p.used, p.objective) for p in info.points if p.efficient and p.used}
    assert efficient == {(16, 4, 18), (12, 12, 12), (8, 20, 6)}
