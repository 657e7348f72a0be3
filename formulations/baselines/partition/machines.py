"""Blocks bound to machines: the least loaded machines where every shard fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from formulations.baselines.partition.blocks import FreeBlock
from formulations.baselines.partition.state import RankHeap, Shard, State
from formulations.instance import Instance, Where


def place_on_machines(
    instance: Instance, state: State, block: FreeBlock, position: list[int]
) -> list[int] | None:
    """Place a ``ONE_MACHINE`` or ``ANY_RANK_OF_ONE_MACHINE`` block; None when it fits nowhere.

    Machines are tried by increasing load (ties in machine order). A block on several machines
    takes neighbours in that order, window after window, as TorchRec does for grid sharding; when
    it needs all of them (or more, where machines may repeat) there is one attempt, round robin.
    """
    machines = range(len(instance.machines)) if block.places is None else block.places
    order = sorted(machines, key=lambda m: sum(state.load[r] for r in instance.machines[m]))
    if block.where == Where.ANY_RANK_OF_ONE_MACHINE:
        return next((r for m in order if (r := _inside(instance, state, block, m, position))), None)
    for window in _windows(order, block):
        ranks = [r for m in window for r in instance.machines[m]]
        shards = _on_window(instance, block, window)
        if _put_all(state, shards, ranks):
            return ranks
    return None


def put_on(
    instance: Instance, state: State, block: FreeBlock, ranks: list[int]
) -> list[int] | None:
    """Place a block on given ranks (a pin); None when a shard does not fit there."""
    shards: Sequence[Shard] = block.shards
    if block.where == Where.ONE_MACHINE:
        machines = [int(instance.machine_of[r]) for r in ranks]
        times = {m: machines.count(m) // len(instance.machines[m]) for m in machines}
        window = [m for m, n in times.items() for _ in range(n)]
        ranks = [r for m in window for r in instance.machines[m]]
        shards = _on_window(instance, block, window)
    if len(shards) != len(ranks):
        return None
    return ranks if _put_all(state, shards, ranks) else None


def _windows(order: list[int], block: FreeBlock) -> Iterator[list[int]]:
    if block.count >= len(order):
        if block.count == len(order) or not block.distinct:
            yield [order[i % len(order)] for i in range(block.count)]
        return
    for start in range(len(order) - block.count + 1):
        yield order[start : start + block.count]


def _on_window(instance: Instance, block: FreeBlock, window: Sequence[int]) -> list[Shard]:
    if len(block.shards) > 1:
        return list(block.shards) * len(window)
    return [block.shards[0]] * sum(len(instance.machines[m]) for m in window)


def _put_all(state: State, shards: Sequence[Shard], ranks: Sequence[int]) -> bool:
    for done, (shard, rank) in enumerate(zip(shards, ranks, strict=True)):
        if not state.fits(shard, rank):
            for back in range(done):
                state.take_back(shards[back], ranks[back])
            return False
        state.put(shard, rank)
    return True


def _inside(
    instance: Instance, state: State, block: FreeBlock, machine: int, position: list[int]
) -> list[int] | None:
    heap = RankHeap(state, instance.machines[machine], position)
    ranks: list[int] = []
    for shard in block.shards:
        rank = heap.place(shard, set(ranks) if block.distinct else frozenset())
        if rank is None:
            for done, at in enumerate(ranks):
                state.take_back(block.shards[done], at)
            return None
        ranks.append(rank)
    return ranks
