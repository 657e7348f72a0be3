"""Presolve removes only what no best plan needs.

Plans that mix levels in a fusion group, and what the runtime makes of them.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from formulations.fusion import mixed_groups, respread, respreads, without_fusion
from formulations.instance import Current, Instance, Where
from formulations.instance.build import Block
from formulations.presolve import placement_variables, presolve
from formulations.result.check import check
from formulations.result.placement import Placement
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import (
    ANY,
    EVERY,
    INSIDE,
    MACHINE,
    MACHINES,
    at,
    built,
    placed,
)
from tests.formulations.strategies import instances


def one_table(*options: Any, **constraints: Any) -> Instance:
    """One table with these options, HBM of 10 a rank and DDR of 30 for both."""
    table = {f"o{index}": option for index, option in enumerate(options)}
    return built([table], "step_time", hbm=10, ddr=30, **constraints)


def test_too_large_for_a_rank_or_a_machine() -> None:
    """11 on a rank of 10 and 16 a rank on a machine of 30 for two ranks do not fit; 15 does."""
    instance = one_table(at(EVERY, 1, hbm=11), at(EVERY, 1, ddr=16), at(EVERY, 9, ddr=15))
    assert presolve(instance).kept.tolist() == [False, False, True]


def test_dominated_options_point_to_what_replaces_them() -> None:
    """Dearer and larger goes; cheaper but larger stays; of two equal ones the first stays."""
    found = presolve(one_table(*(at(EVERY, c, hbm=h) for c, h in ((5, 5), (6, 6), (4, 6), (5, 5)))))
    assert found.kept.tolist() == [True, False, True, False]
    assert found.replacement.tolist() == [0, 0, 2, 0]


def test_fusion_protects_a_dearer_option() -> None:
    """A group may need a dearer option at another level; one without a group replaces any."""
    cheap, dear = at(EVERY, 1), (at(EVERY, 2), ("g", 1))
    assert presolve(one_table((cheap, ("g", 0)), dear)).kept.all()
    assert presolve(one_table(cheap, dear)).kept.tolist() == [True, False]


def test_the_current_option_stays_where_moves_are_limited() -> None:
    """A dominated option may be the one that avoids a move."""
    options, now = (at(EVERY, 1), at(EVERY, 2)), [Current(0, 1, ((0, 1),))]
    assert presolve(one_table(*options, current=now, max_moved_tables=0)).kept.all()
    assert not presolve(one_table(*options, current=now)).kept.all()


def test_a_single_machine_is_every_rank() -> None:
    """A shard a rank of the only machine is a shard on every rank; with two machines it is not."""
    for machines, kept in ([[0, 1]], [True, False]), ([[0], [1]], [True, True]):
        table = {"every": at(EVERY, 1), "machine": at(MACHINE, 1)}
        assert presolve(built([table], "step_time", machines)).kept.tolist() == kept


def test_any_rank_replaces_any_rank_of_one_machine() -> None:
    """At the same price the looser kind of place stays; dearer, it does not push the other out."""
    for loose, kept in (2, [False, True]), (3, [True, True]):
        table = {"inside": at(INSIDE, 2, count=2), "any": at(ANY, loose, count=2)}
        assert presolve(built([table], "step_time", MACHINES)).kept.tolist() == kept


def test_one_machine_is_no_bar_to_a_dearer_option() -> None:
    """Two shards bound to one machine never replace dearer ones that may part."""
    table = {"inside": at(INSIDE, 2, count=2), "any": at(ANY, 3, count=2)}
    assert presolve(built([table], "step_time", [[0], [1]])).kept.all()


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(instances())
def test_the_optimum_survives(instance: Instance) -> None:
    """Forbidding what presolve removed leaves the oracle's optimum as it is; an optimal plan with
    its options replaced, on the same ranks, is feasible and optimal."""
    found, truth = presolve(instance), brute_force(instance)
    gone = [(int(instance.table_of[o]), int(o)) for o in np.flatnonzero(~found.kept)]
    reduced = replace(instance, forbidden=(*instance.forbidden, *gone))
    assert brute_force(reduced).objective == truth.objective
    if truth.placement is None:
        return
    options = found.replacement[truth.placement.options]
    assert (options >= 0).all()
    verdict = check(instance, Placement(options, truth.placement.ranks))
    assert verdict.feasible, verdict.violations
    assert verdict.objectives[instance.objective.value] == truth.objective


@pytest.mark.parametrize(
    ("where", "places"), [(Where.EVERY_RANK, 0), (Where.ANY_RANK, 4), (Where.ONE_MACHINE, 2)]
)
def test_counts_places_of_options_worth_keeping(where: Where, places: int) -> None:
    """Three tables with one undominated option each: 4 ranks, or 2 machines, to choose from."""
    table = {"o": at(where, 5, hbm=1), "worse": at(where, 6, hbm=1)}
    assert placement_variables(built([table] * 3, machines=MACHINES, hbm=10)) == 3 * places


GRID = 10


def grouped(sizes: list[int], overhead: int = 7, group: str = "dyn") -> Instance:
    """Tables of one group on two ranks: fast bytes = overhead + size × level / 10, cost falls."""

    def option(size: int, level: int) -> tuple[Block, tuple[str, int]]:
        use = {"hbm": overhead + size * level // GRID, "ddr": size * (GRID - level) // GRID}
        return at(EVERY, 100 - level, **use), (group, level)

    tables = [{f"x{level}": option(size, level) for level in range(GRID + 1)} for size in sizes]
    return built(tables, "step_time", hbm=10**6, ddr=10**6)


def choose(instance: Instance, levels: list[int]) -> Placement:
    """Every table at a level, on every rank."""
    options = np.asarray([t * (GRID + 1) + level for t, level in enumerate(levels)])
    return Placement(options, [[np.arange(2)] for _ in levels])


def test_one_level_stays_as_it_is() -> None:
    """A plan that respects its groups comes back unchanged."""
    instance = grouped([100, 300])
    placement = choose(instance, [4, 4])
    assert mixed_groups(instance, placement) == {}
    assert respread(instance, placement) is placement


def test_common_ratio_is_weighted_by_bytes() -> None:
    """A table of 100 at 1.0 and one of 300 at 0.2: s = 160/400 = 0.4, whatever the overhead."""
    for overhead in (0, 7, 90):
        instance = grouped([100, 300], overhead)
        spread = respread(instance, choose(instance, [10, 2]))
        assert spread is not None
        assert instance.option_level[spread.options].tolist() == [4, 4]
        assert check(instance, spread).feasible


def test_ratio_between_levels_gives_both_neighbours_nearest_first() -> None:
    """s = (100·1.0 + 300·0.1)/400 = 0.325: level 3 is nearer, level 4 comes second."""
    instance = grouped([100, 300])
    found = [instance.option_level[p.options].tolist() for p in
             respreads(instance, choose(instance, [10, 1]))]  # fmt: skip
    assert found == [[3, 3], [4, 4]]


def test_groups_are_spread_apart() -> None:
    """Only the group that mixes levels changes."""
    tables = [{f"x{level}": (at(EVERY, 9 - level, hbm=10 * level), (group, level))
               for level in (0, 1, 2)} for group in "ffgg"]  # fmt: skip
    instance = built(tables, "step_time", [[0]], hbm=999)
    spread = respread(instance, placed([0, 5, 7, 10], *[[0]] * 4))
    assert spread is not None
    assert spread.options.tolist() == [1, 4, 7, 10]


def test_no_common_level_gives_nothing() -> None:
    """Tables that offer no level in common cannot be spread."""
    instance = built([(at(EVERY, 1), ("f", 1)), (at(EVERY, 1), ("f", 2))], machines=[[0]])
    assert respread(instance, placed([0, 1], [0], [0])) is None


@settings(max_examples=100, deadline=None)
@given(instances(constraints=False))
def test_spread_plans_respect_their_groups(instance: Instance) -> None:
    """Whatever the optimum without fusion mixes, respread plans mix nothing and are well formed."""
    placement = brute_force(without_fusion(instance)).placement
    if placement is None:
        return
    for spread in respreads(instance, placement):
        assert mixed_groups(instance, spread) == {}
        broken = [v for v in check(instance, spread).violations if "used" not in v]
        assert broken == []


def test_without_fusion_keeps_everything_else() -> None:
    """Only groups disappear; an instance without groups is returned itself."""
    instance = grouped([100])
    free = without_fusion(instance)
    assert (free.option_group == -1).all()
    assert free.option_names == instance.option_names
    plain = built([], machines=[[0]])
    assert without_fusion(plain) is plain
