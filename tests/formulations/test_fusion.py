"""Plans that mix levels in a fusion group, and what the runtime makes of them."""

import numpy as np
from hypothesis import given, settings

from formulations import Block, Instance, InstanceBuilder, Placement, Shard, Where, check
from formulations.fusion import mixed_groups, respread, respreads, without_fusion
from tests.formulations.brute_force import brute_force
from tests.formulations.strategies import instances

GRID = 10


def grouped(sizes: list[int], overhead: int = 7, group: str = "dyn") -> Instance:
    """Tables of one group on two ranks: fast bytes = overhead + size × level / 10, cost falls."""
    builder = InstanceBuilder([[0, 1]], ["p"], [("hbm", "rank", 10**6), ("ddr", "machine", 10**6)])
    for index, size in enumerate(sizes):
        builder.add_table(f"t{index}")
        for level in range(GRID + 1):
            use = {"hbm": overhead + size * level // GRID, "ddr": size * (GRID - level) // GRID}
            shard = Shard(use, (100 - level,))
            builder.add_option(f"x{level}", [Block(Where.EVERY_RANK, [shard])], (group, level))
    return builder.build()


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
    builder = InstanceBuilder([[0]], ["p"], [("hbm", "rank", 999)])
    for index, group in enumerate(["f", "f", "g", "g"]):
        builder.add_table(f"t{index}")
        for level in (0, 1, 2):
            shard = Shard({"hbm": 10 * level}, (9 - level,))
            builder.add_option(f"x{level}", [Block(Where.EVERY_RANK, [shard])], (group, level))
    instance = builder.build()
    placement = Placement(np.asarray([0, 5, 7, 10]), [[np.arange(1)]] * 4)
    spread = respread(instance, placement)
    assert spread is not None
    assert spread.options.tolist() == [1, 4, 7, 10]


def test_no_common_level_gives_nothing() -> None:
    """Tables that offer no level in common cannot be spread."""
    builder = InstanceBuilder([[0]], ["p"], [("hbm", "rank", 99)])
    for table, level in (("a", 1), ("b", 2)):
        builder.add_table(table)
        builder.add_option("o", [Block(Where.EVERY_RANK, [Shard({}, (1,))])], ("f", level))
    placement = Placement(np.asarray([0, 1]), [[np.arange(1)], [np.arange(1)]])
    assert respread(builder.build(), placement) is None


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
    plain = InstanceBuilder([[0]], ["p"], []).build()
    assert without_fusion(plain) is plain
