"""Whether given ranks suit an option's blocks, and which shard position gets which rank.

What kinds of place there are, and where their shards may lie, only this package knows; others ask
it. Two independent copies check it: :mod:`formulations.mip_model` and the checker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from formulations.instance.instance import BlockView, Instance, IntArray, Where

Ranks = tuple[tuple[int, ...], ...]


def pinned_ranks(instance: Instance) -> dict[int, Ranks | None]:
    """Ranks, in position order, of every option pinned to ranks; None where it cannot lie on
    them."""
    named = [(p.option, p.ranks) for p in instance.pins if p.ranks is not None]
    return {option: assigned(instance, option, ranks) for option, ranks in named}


def assigned(instance: Instance, option: int, ranks: Sequence[Sequence[int]]) -> Ranks | None:
    """Put the ranks given for an option's blocks into position order.

    The ranks of ``any_rank`` kinds, whose shards may lie on them in any order, are sorted.

    Parameters
    ----------
    instance : Instance
    option : int
        Global index; -1, for an option that no longer exists, gives None.
    ranks : sequence of sequences of int
        One multiset of ranks for each block.

    Returns
    -------
    tuple of tuples of int, or None
        None when the option's blocks cannot lie on these ranks.
    """
    blocks = instance.blocks_of(option) if option >= 0 else range(0)
    if option < 0 or len(blocks) != len(ranks):
        return None
    found = []
    for index, wanted in zip(blocks, ranks, strict=True):
        placed = _block(instance, instance.block(index), tuple(sorted(map(int, wanted))))
        if placed is None:
            return None
        found.append(placed)
    return tuple(found)


def _block(instance: Instance, block: BlockView, ranks: tuple[int, ...]) -> tuple[int, ...] | None:
    """Sorted ranks in position order."""
    placed = ranks
    if block.where == Where.EVERY_RANK:
        placed = tuple(range(instance.num_ranks))
    elif block.where in (Where.LIST, Where.CLUSTER):
        placed = tuple(block.places or ())
    elif block.where == Where.ONE_MACHINE:
        times = Counter(ranks)
        placed = tuple(r for own in instance.machines for _ in range(times[own[0]]) for r in own)
    same = tuple(sorted(placed)) == ranks
    fits = same and misplaced(instance, block, np.asarray(placed, dtype=np.int64)) is None
    return placed if fits else None


def misplaced(instance: Instance, block: BlockView, ranks: IntArray) -> str | None:
    """The first mistake in the ranks of a block, given in position order, as part of a sentence."""
    if len(ranks) and (ranks.min() < 0 or ranks.max() >= instance.num_ranks):
        return f"ranks {ranks.tolist()} are not all in 0…{instance.num_ranks - 1}"
    if block.where == Where.EVERY_RANK:
        fits = np.array_equal(ranks, np.arange(instance.num_ranks))
        return None if fits else "an every_rank block must list all ranks in order"
    if block.where == Where.LIST:
        return None if ranks.tolist() == list(block.places or ()) else "ranks differ from its list"
    if block.where == Where.CLUSTER:
        return None if len(ranks) == 0 else "a cluster block has no ranks"
    if block.where == Where.ONE_MACHINE:
        return _bad_machines(instance, block, ranks)
    if len(ranks) != block.count:
        return f"{len(ranks)} ranks for {block.count} shards"
    if block.distinct and len(set(ranks.tolist())) != len(ranks):
        return f"shards must lie on different ranks, found {ranks.tolist()}"
    return _bad_any(instance, block, ranks)


def _bad_any(instance: Instance, block: BlockView, ranks: IntArray) -> str | None:
    places = ranks
    if block.where == Where.ANY_RANK_OF_ONE_MACHINE:
        places = np.unique(instance.machine_of[ranks])
        if len(places) != 1:
            return f"shards must lie on one machine, found machines {places.tolist()}"
    if block.places is not None and not np.isin(places, block.places).all():
        return f"places {places.tolist()} are not all among {list(block.places)}"
    return None


def _bad_machines(instance: Instance, block: BlockView, ranks: IntArray) -> str | None:
    machines: list[int] = []
    start = 0
    while start < len(ranks):
        machine = int(instance.machine_of[ranks[start]])
        size = len(instance.machines[machine])
        if ranks[start : start + size].tolist() != list(instance.machines[machine]):
            return f"ranks must list whole machines in order, found {ranks.tolist()}"
        machines.append(machine)
        start += size
    if len(machines) != block.count:
        return f"{len(machines)} machines where {block.count} are needed"
    if block.distinct and len(set(machines)) != len(machines):
        return f"machines must differ, found {machines}"
    if block.places is not None and not set(machines) <= set(block.places):
        return f"machines {machines} are not all among {list(block.places)}"
    return None
