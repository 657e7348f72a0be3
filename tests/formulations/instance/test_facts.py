"""Sums and largest shards of options."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from formulations import Instance, Where
from formulations.instance.facts import option_facts
from tests.formulations.brute_force import table_placements
from tests.formulations.examples import every_kind
from tests.formulations.strategies import instances


def _by_hand(instance: Instance, option: int, ranks: tuple[tuple[int, ...], ...]) -> dict:
    """The same numbers, shard by shard in Python."""
    shards, on_rank = [], []
    for index, placed in zip(instance.blocks_of(option), ranks, strict=True):
        block = instance.block(index)
        off = block.where == Where.CLUSTER
        for position in range(block.count if off else len(placed)):
            local = position % len(block.entries)
            shards.append(int(block.entries[local]))
            on_rank.append(not off)
    cost = [int(instance.shard_cost[s].sum()) for s in shards]
    hides = instance.hidden or [0] * len(instance.phases)
    bare = [p for p, hidden in enumerate(hides) if not hidden]
    shows = [int(instance.shard_cost[s, bare].sum()) for s in shards]
    use = instance.shard_use[shards].reshape(len(shards), -1)
    placed_costs = [c for c, on in zip(shows, on_rank, strict=True) if on]
    return {
        "cost": sum(cost),
        "placed_cost": sum(placed_costs),
        "depth": max(placed_costs + [0] * (len(placed_costs) < len(cost)), default=0),
        "use": use.sum(axis=0).tolist(),
        "peak": use.max(axis=0, initial=0).tolist(),
    }


@settings(max_examples=150, deadline=None)
@given(instances())
def test_facts_equal_a_sum_over_shards(instance: Instance) -> None:
    """Every fact is the sum, or the largest, of a placed option's shards, taken one by one."""
    facts = option_facts(instance)
    for option in range(instance.num_options):
        ranks = next(table_placements(instance, option), None)
        if ranks is None or not facts.exact:
            continue
        hand = _by_hand(instance, option, ranks)
        # In an option of several blocks, those off the ranks count 0 in depth.
        assert int(facts.cost[option]) == hand["cost"]
        assert int(facts.placed_cost[option]) == hand["placed_cost"]
        assert int(facts.depth[option]) == hand["depth"]
        assert facts.use[option].tolist() == hand["use"]
        assert facts.peak[option].tolist() == hand["peak"]


def test_facts_of_every_kind_by_hand() -> None:
    """The example of every kind of place, added up on paper."""
    facts = option_facts(every_kind())
    assert facts.cost.tolist() == [11, 14, 11, 4, 15, 200]
    assert facts.placed_cost.tolist() == [11, 14, 11, 4, 15, 0]
    assert facts.depth.tolist() == [3, 7, 6, 2, 8, 0]
    assert facts.use.tolist() == [[34, 15, 0], [40, 0, 0], [3, 110, 0], [14, 0, 0], [3, 0, 0],
                                  [0, 0, 8]]  # fmt: skip
    assert np.array_equal(facts.peak[0], [10, 5, 0])
    assert facts.exact


def test_unequal_machines_make_sums_inexact() -> None:
    """Where a block may take machines of different size, the facts say that they are not exact."""
    from formulations import Block, InstanceBuilder, Shard

    builder = InstanceBuilder([[0], [1, 2]], ["p"], [])
    builder.add_table("t")
    builder.add_option("o", [Block(Where.ONE_MACHINE, [Shard({}, (1,))])])
    assert not option_facts(builder.build()).exact
