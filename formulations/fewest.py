"""The plan that moves least, whatever it costs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from formulations.clock import Clock
from formulations.instance import Instance, IntArray, Objective, Scope
from formulations.instance.facts import bytes_to_move, total_use
from formulations.instance.instance import MAX_VALUE, BlockView
from formulations.model.limits import moving
from formulations.neighbourhoods import Neighbourhoods, Sought
from formulations.presolve import presolve, usable
from formulations.result.check import check, compute_loads, moved_bytes, moved_tables
from formulations.result.must_move import Counted
from formulations.result.placement import Placement
from formulations.settings import Settings


def moves_of(instance: Instance, counted: Counted, plan: Placement) -> int:
    """Tables, or bytes, that a plan moves."""
    moved = moved_tables(instance, plan)
    return len(moved) if counted == Counted.TABLES else moved_bytes(instance, plan, moved)


def _size(instance: Instance, counted: Counted) -> IntArray:
    """What moves if a table takes an option anywhere else, int64 array [options]."""
    size = bytes_to_move(instance) if counted == Counted.BYTES else 1
    known = np.isin(instance.table_of, [now.table for now in instance.current])
    return np.where(known, size, 0).astype(np.int64)


def housed(
    instance: Instance, counted: Counted, wish: Placement, going: Collection[int]
) -> Placement | None:
    """A plan in which only some tables go: the largest first, each to the option that moves least
    and to the places of which it takes the least share of what is left.

    Parameters
    ----------
    instance : Instance
    counted : Counted
    wish : Placement
        Tables with option −1 go, too.
    going : collection of int
    """
    gone = {*going, *np.flatnonzero(wish.options < 0).tolist()}
    room = _Room(instance, wish, [t for t in range(instance.num_tables) if t not in gone])
    able, size, share = usable(instance), _size(instance, counted), room.shares()
    ways = {}
    for table in gone:
        own = np.asarray([o for o in instance.options_of(table) if able[o]], dtype=np.int64)
        ways[table] = own[np.lexsort((share[own], size[own]))]
        if not len(own):
            return None
    options, ranks = wish.options.copy(), list(wish.ranks)
    for table in sorted(gone, key=lambda t: -share[ways[t][0]]):
        found = ((option, room.put(option)) for option in ways[table].tolist())
        option, there = next((each for each in found if each[1] is not None), (-1, None))
        if there is None:
            return None
        options[table], ranks[table] = option, there
    plan = Placement(options, ranks)
    free = replace(instance, max_moved_tables=None, max_moved_bytes=None)
    return plan if check(free, plan).feasible else None


class _Room:
    """What is left of every place while tables are put there."""

    def __init__(self, instance: Instance, plan: Placement, tables: list[int]) -> None:
        self._instance = instance
        use = compute_loads(instance, plan, tables).use
        self._left = [r.capacity - u for r, u in zip(instance.resources, use, strict=True)]
        every = np.arange(instance.num_ranks)
        at = {Scope.RANK: every, Scope.MACHINE: instance.machine_of}
        self._at = [at.get(r.scope, 0 * every) for r in instance.resources]

    def shares(self) -> NDArray[np.float64]:
        """What each option takes of all that is left of some resource, float array [options]."""
        left = [max(1.0, float(np.maximum(left, 0).sum())) for left in self._left]
        return np.asarray((total_use(self._instance) / np.asarray(left)).max(axis=1, initial=0.0))

    def put(self, option: int) -> list[IntArray] | None:
        """Put an option's shards somewhere, and return their ranks; None where one has no room."""
        before, found = [left.copy() for left in self._left], list[IntArray]()
        for block in map(self._instance.block, self._instance.blocks_of(option)):
            ranks = self._block(block)
            if ranks is None or any((left < 0).any() for left in self._left):
                self._left = before
                return None
            found.append(ranks)
        return found

    def _block(self, block: BlockView) -> IntArray | None:
        """Put a block somewhere; None where it must choose as nothing here knows to."""
        instance = self._instance
        ranks = instance.settled_ranks(block.index)
        if ranks is not None:
            for position in range(block.count if block.unplaced else len(ranks)):
                self._take(block.entry(position), -1 if block.unplaced else int(ranks[position]))
            return ranks
        places = instance.places(block.index)
        if block.whole and block.count == 1:
            worth = [self._share(block.entry(0), np.asarray(instance.machines[q])).max()
                     for q in places]  # fmt: skip
            ranks = np.asarray(instance.machines[places[int(np.argmin(worth))]])
            for position, rank in enumerate(ranks.tolist()):
                self._take(block.entry(position), rank)
            return ranks
        if block.by_machine:
            return None
        chosen = list[int]()
        for position in range(block.count):
            share = self._share(block.entry(position), places)
            if block.distinct:
                share[np.isin(places, chosen)] = np.inf
            chosen.append(int(places[int(np.argmin(share))]))
            self._take(block.entry(position), chosen[-1])
        return np.asarray(chosen, dtype=np.int64)

    def _share(self, entry: int, ranks: IntArray) -> NDArray[np.float64]:
        """What a shard takes of what is left at each of some ranks, at most of any resource."""
        found = np.zeros(len(ranks))
        for left, at, use in zip(
            self._left, self._at, self._instance.shard_use[entry].tolist(), strict=True
        ):
            if use:
                found = np.maximum(found, use / np.maximum(left[at[ranks]], 1e-9))
        return found

    def _take(self, entry: int, rank: int) -> None:
        """Take what a shard uses at a rank; at −1, of the whole cluster only."""
        for index, use in enumerate(self._instance.shard_use[entry].tolist()):
            scope = self._instance.resources[index].scope
            if rank >= 0 or scope == Scope.CLUSTER:
                self._left[index][self._at[index][max(0, rank)]] -= use


def fewest(
    instance: Instance, counted: Counted, plan: Placement | None, enough: int, settings: Settings,
    clock: Clock, units: float,
) -> Placement | None:  # fmt: skip
    """The plan found that moves least, from a plan if there is one; None if there is none.

    Parameters
    ----------
    instance : Instance
        Moves are counted from its ``current``; its limits on them do not count.
    counted : Counted
    plan : Placement or None
    enough : int
        What is little enough.
    settings : Settings
    clock : Clock
    units : float
        Of the clock.
    """
    free, size = np.zeros((len(instance.shard_cost), 1), dtype=np.int64), _size(instance, counted)
    instance = replace(
        instance, phases=(counted.value,), shard_cost=free, objective=Objective.TOTAL,
        hidden=(), reference=(), max_moved_tables=instance.num_tables,
        max_moved_bytes=MAX_VALUE - 1 if counted == Counted.BYTES else None,
    )  # fmt: skip
    kept = presolve(instance).kept
    sought = Sought(
        lambda plan: moves_of(instance, counted, plan),
        lambda model: moving(model.columns, counted == Counted.BYTES),
        lambda plan: moved_tables(instance, plan),
    )
    # an option that moves as much as a plan is in no plan that moves less
    search = Neighbourhoods(instance, sought, lambda most: kept & (size < most))
    return search.least(plan, enough, settings, clock, units)
