"""Given ranks of an option's blocks, read as the format means them: each block a multiset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from formulations.instance.instance import BlockView, Instance, Where

Ranks = tuple[tuple[int, ...], ...]


def pinned_ranks(instance: Instance) -> dict[int, Ranks | None]:
    """Ranks of every option pinned to some, in position order; None where it cannot sit so."""
    named = [(p.option, p.ranks) for p in instance.pins if p.ranks is not None]
    return {option: seated(instance, option, ranks) for option, ranks in named}


def seated(instance: Instance, option: int, ranks: Sequence[Sequence[int]]) -> Ranks | None:
    """Given ranks of an option's blocks in position order.

    Shards of ``any_rank`` kinds may sit on them in any order: they come sorted.

    Parameters
    ----------
    instance : Instance
    option : int
        Global index; -1, an option that is no more, sits nowhere.
    ranks : sequence of sequences of int
        A multiset a block.

    Returns
    -------
    tuple of tuples of int, or None
        None when the option's blocks cannot sit on these ranks.
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
    if block.where in (Where.EVERY_RANK, Where.LIST, Where.CLUSTER):
        every = range(instance.num_ranks) if block.where == Where.EVERY_RANK else ()
        own = tuple(every if block.places is None else block.places)
        return own if tuple(sorted(own)) == ranks else None
    if any(not 0 <= rank < instance.num_ranks for rank in ranks):
        return None
    if block.where == Where.ONE_MACHINE:
        return _machines(instance, block, ranks)
    places = set(ranks)
    if block.where == Where.ANY_RANK_OF_ONE_MACHINE:
        places = {int(instance.machine_of[rank]) for rank in ranks}
        if len(places) != 1:
            return None
    allowed = block.places is None or places <= set(block.places)
    parted = not block.distinct or len(set(ranks)) == len(ranks)
    return ranks if allowed and parted and len(ranks) == block.count else None


def _machines(
    instance: Instance, block: BlockView, ranks: tuple[int, ...]
) -> tuple[int, ...] | None:
    """Whole machines, each as often as its ranks are named."""
    times = Counter(ranks)
    taken = [m for m, own in enumerate(instance.machines) for _ in range(times[own[0]])]
    placed = tuple(rank for m in taken for rank in instance.machines[m])
    whole = tuple(sorted(placed)) == ranks and len(taken) == block.count
    allowed = block.places is None or set(taken) <= set(block.places)
    parted = not block.distinct or len(set(taken)) == len(taken)
    return placed if whole and allowed and parted else None
