"""TorchRec's partitioners on an Instance: chosen options in, ranks out.

The order and the rules are those of ``GreedyPerfPartitioner`` and ``MemoryBalancedPartitioner``
(TorchRec 1.8.0, ``torchrec/distributed/planner/partitioners.py``). Greedy: blocks without a choice
first, then the other tables by decreasing storage (or cost), each shard to the least loaded rank
where it fits, blocks bound to a machine to the least loaded machine where all their shards fit.
Balanced: place by cost, then bisect the HBM a rank may use for the least at which the rating is at
most 2 % worse.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from formulations.baselines.partition.state import (
    Blocks,
    FreeBlock,
    RankHeap,
    Shard,
    State,
    places,
    positions_on_machine,
)
from formulations.errors import UnsupportedInstance
from formulations.instance import Instance, IntArray, Scope
from formulations.instance.assigning import pinned_ranks
from formulations.instance.facts import OptionFacts, option_facts
from formulations.result.check import compute_loads
from formulations.result.placement import Placement


class SortBy(StrEnum):
    """What decides which table is placed first."""

    STORAGE = "storage"
    PERF = "perf"


@dataclass(frozen=True, eq=False)
class Partition:
    """Options with ranks; :meth:`placement` makes a Placement of them where it is needed.

    Attributes
    ----------
    options : int64 array [tables]
    free : dict of block index to list of int
        Ranks of every block whose place was a choice.
    load : list [ranks] of int
        Cost each rank carries, all phases.
    """

    options: IntArray
    free: dict[int, list[int]]
    load: list[int]

    def placement(self, instance: Instance) -> Placement:
        """Spell out the ranks of every block."""
        ranks = []
        for option in self.options.tolist():
            blocks = []
            for index in instance.blocks_of(option):
                fixed = instance.settled_ranks(index)
                blocks.append(np.asarray(self.free[index]) if fixed is None else fixed)
            ranks.append(blocks)
        return Placement(self.options.copy(), ranks)


class Partitioner:
    """Place proposals of one instance, one after another.

    Parameters
    ----------
    instance : Instance
    sort_by : SortBy
        Order in which tables are placed: by storage (resources compared in the instance's order,
        as TorchRec compares HBM, then DDR) or by cost, decreasing; ties in table order.
    """

    def __init__(self, instance: Instance, sort_by: SortBy | str = SortBy.STORAGE) -> None:
        self.instance = instance
        self.facts: OptionFacts = option_facts(instance)
        self._sort_by = SortBy(sort_by)
        self._blocks = Blocks(instance)
        self._places = places(instance)
        self._position = positions_on_machine(instance)
        self._pinned = pinned_ranks(instance)
        self._astray = [option for option, ranks in self._pinned.items() if ranks is None]

    def partition(self, options: IntArray, within: Instance | None = None) -> Partition | None:
        """Place one option per table; None when a shard finds no rank, or a pin names wrong ones.

        Parameters
        ----------
        options : int64 array [tables]
        within : Instance, optional
            The same instance with other capacities, which then apply.
        """
        load, use, off = self._blocks.base(options)
        state = State(within or self.instance, self._places, load, use, off)
        if state.overfull or np.isin(options, self._astray).any():
            return None
        free: dict[int, list[int]] = {}
        heap: RankHeap | None = None
        for table in self._order(options):
            pinned = self._pinned.get(int(options[table]))
            for number, index in enumerate(self.instance.blocks_of(int(options[table]))):
                block = self._blocks.free(index)
                if block is None:
                    continue
                if pinned is None and not block.by_machine and block.places is None:
                    heap = heap or RankHeap(state, range(len(load)), self._position)
                    ranks = _place(heap, block)
                else:
                    heap = None  # loads change behind its back
                    ranks = self._special(state, block, None if pinned is None else pinned[number])
                if ranks is None:
                    return None
                free[index] = ranks
        return Partition(options, free, state.load)

    def _order(self, options: IntArray) -> list[int]:
        tables = np.flatnonzero(self._blocks.has_free(options))
        chosen = options[tables]
        if self._sort_by == SortBy.PERF:
            keys = [-self.facts.cost[chosen]]
        else:
            keys = [-column for column in self.facts.use[chosen].T][::-1] or [tables]
        return tables[np.lexsort(keys)].tolist()

    def _special(
        self, state: State, block: FreeBlock, pinned: tuple[int, ...] | None
    ) -> list[int] | None:
        if pinned is not None:
            return _put_on(self.instance, state, block, list(pinned))
        if not block.by_machine:
            return _place(RankHeap(state, block.places or (), self._position), block)
        return _place_on_machines(self.instance, state, block, self._position)


def _place(heap: RankHeap, block: FreeBlock) -> list[int] | None:
    """Put each shard on the least loaded rank where it fits; None, with nothing placed, if a shard
    fits nowhere."""
    ranks: list[int] = []
    for shard in block.shards:
        rank = heap.place(shard, set(ranks) if block.distinct else frozenset())
        if rank is None:
            for done, at in zip(block.shards, ranks, strict=False):
                heap.state.take_back(done, at)
            return None
        ranks.append(rank)
    return ranks


def _place_on_machines(
    instance: Instance, state: State, block: FreeBlock, position: list[int]
) -> list[int] | None:
    """Place a ``ONE_MACHINE`` or ``ANY_RANK_OF_ONE_MACHINE`` block; None when it fits nowhere.

    Machines are tried by increasing load (ties in machine order). A block on several machines
    takes neighbours in that order, window after window, as TorchRec does for grid sharding; when
    it needs all of them (or more, where machines may repeat) there is one attempt, round robin.
    """
    machines = range(len(instance.machines)) if block.places is None else block.places
    order = sorted(machines, key=lambda m: sum(state.load[r] for r in instance.machines[m]))
    if not block.whole:
        heaps = (RankHeap(state, instance.machines[m], position) for m in order)
        return next((ranks for heap in heaps if (ranks := _place(heap, block))), None)
    for window in _windows(order, block):
        ranks = [r for m in window for r in instance.machines[m]]
        shards = _on_window(instance, block, window)
        if _put_all(state, shards, ranks):
            return ranks
    return None


def _put_on(
    instance: Instance, state: State, block: FreeBlock, ranks: list[int]
) -> list[int] | None:
    """Place a block on given ranks (a pin); None when a shard does not fit there."""
    shards: Sequence[Shard] = block.shards
    if block.whole:
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


#: TorchRec's ``max_search_count`` and ``tolerance``, and the HBM below which it stops, bytes.
SEARCHES, TOLERANCE, CLOSE = 10, 0.02, 10 * 2**20


class BalancedPartitioner(Partitioner):
    """Place proposals so that HBM is even, at nearly the rating of the greedy partitioner.

    Raises
    ------
    UnsupportedInstance
        Where there is no resource ``hbm`` of ranks.
    """

    def __init__(self, instance: Instance) -> None:
        super().__init__(instance, SortBy.PERF)
        hbm = [
            r.name.partition("@")[0] == "hbm" and r.scope == Scope.RANK for r in instance.resources
        ]
        if True not in hbm:
            raise UnsupportedInstance("memory_balanced needs a resource 'hbm' of every rank")
        self._hbm = hbm.index(True)

    def partition(self, options: IntArray, within: Instance | None = None) -> Partition | None:
        """Place one option per table; see :meth:`Partitioner.partition`."""
        best = super().partition(options, within)
        if best is None:
            return None
        rating = max(best.load)
        use = compute_loads(self.instance, best.placement(self.instance)).use[self._hbm]
        peak = int(self.facts.peak[options, self._hbm].max(initial=0))
        least, most = max(int(use.sum()) // self.instance.num_ranks, peak), int(use.max())
        for _ in range(SEARCHES):
            if least + CLOSE >= most:
                break
            middle = (most + least) // 2
            found = super().partition(options, self._with_hbm(middle))
            if found is None or max(found.load) > rating * (1 + TOLERANCE):
                least = middle
            else:
                best, most = found, middle
        return best

    def _with_hbm(self, amount: int) -> Instance:
        resources = list(self.instance.resources)
        hbm = resources[self._hbm]
        resources[self._hbm] = replace(hbm, capacity=np.full_like(hbm.capacity, amount))
        return replace(self.instance, resources=tuple(resources))
