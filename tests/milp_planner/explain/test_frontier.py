"""The frontier against enumeration of every capacity."""

from __future__ import annotations

from itertools import product

from hypothesis import given, settings

from formulations import Instance
from milp_planner.explain.frontier import exact_frontier, grid_frontier
from milp_planner.explain.tiers import capped, tiers_of
from tests.formulations.examples import two_modes
from tests.milp_planner.explain.quick import first_of_each, quick, small, truth


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


@settings(max_examples=4, deadline=None)
@given(instance=small(max_tables=2))
def test_the_exact_frontier_is_all_there_is(instance: Instance) -> None:
    """The efficient points are exactly those of enumerating every capacity."""
    tier = instance.resources[0].name
    info = exact_frontier(instance, (tier,), quick())
    assert info.exact
    got = {(*p.used, p.objective) for p in info.points if p.efficient and p.used is not None}
    assert got == _enumerated(instance, (tier,))


def test_two_tiers_by_hand() -> None:
    """HYBRID twice, one of each, CACHING twice: the three efficient mixes."""
    instance = two_modes(hbm=20, ddr=20)
    info = exact_frontier(instance, ("hbm", "ddr"), quick())
    got = {(*p.used, p.objective) for p in info.points if p.efficient and p.used is not None}
    assert info.exact
    assert got == {(16, 4, 18), (12, 12, 12), (8, 20, 6)}


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
    assert not info.exact
    assert info.plans[0].label == "chosen"
    assert info.plans[0].fits
    efficient = {(*p.used, p.objective) for p in info.points if p.efficient and p.used}
    assert efficient == {(16, 4, 18), (12, 12, 12), (8, 20, 6)}


def test_a_cut_search_does_not_call_itself_exact() -> None:
    """With one solve allowed where three points exist, ``exact`` is False."""
    info = exact_frontier(two_modes(20, 20), ("hbm", "ddr"), quick(), most=1)
    assert not info.exact
