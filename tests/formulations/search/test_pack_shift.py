"""Packing and shifting: well formed placements at the options asked for, balanced by shifting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formulations.instance import Instance, Objective, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.result.check import check
from formulations.search.pack import Packer
from formulations.search.shift import shift
from formulations.search.state import load_of, objective_of, overflow, peak_costs
from tests.formulations.strategies import instances

LOOSE = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))


@LOOSE
@given(st.data(), instances(constraints=False))
def test_loads_agree_with_the_check(data: st.DataObject, instance: Instance) -> None:
    """Objective and overflow of a packed placement are what the check computes from scratch."""
    options = [
        data.draw(st.sampled_from(list(instance.options_of(t)))) for t in range(instance.num_tables)
    ]
    costs = peak_costs(instance)
    target = [10.0] * costs.shape[1]
    placement = Packer(instance, costs).pack(options, target, noise=np.random.default_rng(1))
    placement = shift(instance, costs, placement, target, lambda steps: steps >= 20)
    assert placement.options.tolist() == options
    verdict = check(instance, placement)
    if verdict.loads is None:  # distinct shards on too few ranks: nothing could be placed well
        assert instance.block_distinct.any()
        return
    load = load_of(instance, costs, placement, range(instance.num_tables))
    assert objective_of(instance, load) == verdict.objectives[instance.objective.value]
    broken = any("too much" in sentence for sentence in verdict.violations)
    assert (overflow(instance, load) > 0) == broken


def shards(sizes: list[int], ranks: int, capacity: int) -> Instance:
    """One table per size, cost = use = size, anywhere on one machine."""
    builder = InstanceBuilder(
        [list(range(ranks))], ["p"], [("hbm", "rank", capacity)], Objective.BUSIEST_RANK
    )
    for index, size in enumerate(sizes):
        builder.add_table(f"t{index}")
        builder.add_option("o", [Block(Where.ANY_RANK, [Shard({"hbm": size}, [size])])])
    return builder.build()


@pytest.mark.parametrize(
    ("sizes", "best"), [([7, 5, 4, 4, 3, 1], 12), ([9, 8, 2, 2, 2, 1], 12), ([4, 4, 6, 6, 4], 12)]
)
def test_shifting_balances(sizes: list[int], best: int) -> None:
    """From everything on one rank, moves and swaps reach the even split."""
    instance = shards(sizes, 2, 100)
    costs = peak_costs(instance)
    placement = Packer(instance, costs).pack(range(len(sizes)), [100.0])
    for table in range(len(sizes)):
        placement.ranks[table][0][:] = 0
    moved = shift(instance, costs, placement, [best * 1.0], lambda steps: steps > 100)
    load = load_of(instance, costs, moved, range(len(sizes)))
    assert objective_of(instance, load) == best
    assert placement.ranks[0][0].tolist() == [0]


def test_packing_is_longest_first() -> None:
    """Sizes 6, 5, 4, 3 on two ranks of 9: the largest part, and all fit."""
    instance = shards([6, 5, 4, 3], 2, 9)
    placement = Packer(instance, peak_costs(instance)).pack(range(4), [9.0])
    assert check(instance, placement).feasible
