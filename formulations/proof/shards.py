"""Where the shards of every option may go: all blocks of a kind at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from formulations.instance import Instance, IntArray, Scope
from formulations.instance.facts import members
from formulations.instance.instance import MAX_ACTIVITY
from formulations.model.partition import Partition
from formulations.proof.rows import FREE, HOME, Layout, Measures

BoolArray = NDArray[np.bool_]
#: Choice or option, row, amount; int64 arrays of equal length.
Terms = tuple[IntArray, IntArray, IntArray]


@dataclass(frozen=True, eq=False)
class Items:
    """Shards put somewhere: ``times`` shards like ``entry`` in ``cell`` for ``of``, which is an
    option or a choice; int64 arrays of equal length."""

    of: IntArray
    entry: IntArray
    cell: IntArray
    times: IntArray


@dataclass
class Slots:
    """Shards with several possible places, in the order in which they were found.

    Each slot has a block, an order inside it, how often it counts, and a role; its choices have a
    slot and a group of machines; their shards and further terms have a choice.
    """

    block: list[IntArray] = field(default_factory=list)
    order: list[IntArray] = field(default_factory=list)
    times: list[IntArray] = field(default_factory=list)
    role: list[IntArray] = field(default_factory=list)
    slot: list[IntArray] = field(default_factory=list)
    group: list[IntArray] = field(default_factory=list)
    items: list[Items] = field(default_factory=list)
    terms: list[tuple[IntArray, IntArray, IntArray]] = field(default_factory=list)
    slots: int = 0
    choices: int = 0

    def add(
        self, block: IntArray, order: IntArray, times: IntArray, role: int,
        slot: IntArray, group: IntArray, items: Items,
    ) -> IntArray:  # fmt: skip
        """Add slots with choices (``slot`` is an index among these) with items (``of`` is an index
        among these choices); returns the choices' numbers."""
        numbers = self.choices + np.arange(len(slot))
        self.block.append(block)
        self.order.append(order)
        self.times.append(times)
        self.role.append(np.full(len(block), role))
        self.slot.append(self.slots + slot)
        self.group.append(group)
        self.items.append(Items(numbers[items.of], items.entry, items.cell, items.times))
        self.slots += len(block)
        self.choices += len(slot)
        return numbers


class Shards:
    """What the shards of all options add, and which options have a place for all of theirs.

    Attributes
    ----------
    possible : bool array [options]
        False for options that are not allowed, or one of whose shards has no place. (An option
        with a slot without choices has none either.)
    own : list of Items
        Shards with a single possible place, by option.
    terms : list of Terms
        What these add to cover rows.
    slots : Slots
    """

    def __init__(
        self, instance: Instance, apart: bool, cells: Partition, measures: Measures, layout: Layout
    ) -> None:
        self._instance, self._apart, self._cells = instance, apart, cells
        self._measures, self._layout = measures, layout
        self._size = np.asarray([len(ranks) for ranks in instance.machines])
        self.possible = instance.allowed.copy()
        self.own: list[Items] = []
        self.terms: list[Terms] = []
        self.slots = Slots()
        if not instance.num_options:
            return
        self._facts()
        some = self.possible[instance.option_of]
        self._unplaced(np.flatnonzero(some & instance.unplaced))
        self._settled(np.flatnonzero(some & instance.settled & ~instance.unplaced))
        self._anywhere(np.flatnonzero(some & instance.free & (self._rank_set >= 0)))
        self._on_one_machine(np.flatnonzero(some & instance.free & (self._rank_set < 0)))
        self._whole_machines(np.flatnonzero(some & instance.whole))

    def _facts(self) -> None:
        """What the blocks' places are, and whether a block's shards share one entry."""
        instance = self._instance
        self._alike = np.diff(instance.block_shards) == 1
        self._is_home = np.zeros(instance.num_blocks, dtype=bool)
        if self._apart:
            open_ = np.flatnonzero(~instance.settled)
            self._is_home[open_[np.unique(instance.option_of[open_], return_index=True)[1]]] = True
        ranks: list[IntArray] = [np.arange(instance.num_ranks)]
        machines: list[IntArray] = [np.arange(len(instance.machines))]
        for places in instance.place_sets:
            ranks.append(np.asarray(places, dtype=np.int64))
            machines.append(ranks[-1])
        self._rank_set, self._machine_set = instance.block_places + 1, instance.block_places + 1
        self._listed, unpinned = _Lists(ranks), len(machines)
        for option, pinned in {
            p.option: p.ranks for p in instance.pins if p.ranks is not None
        }.items():
            for block, given in zip(instance.blocks_of(option), pinned, strict=True):
                if instance.settled[block]:
                    continue
                of, sets, named = self._rank_set, ranks, np.asarray(given, dtype=np.int64)
                if instance.by_machine[block]:
                    of, sets, named = self._machine_set, machines, instance.machine_of[named]
                sets.append(np.intersect1d(sets[of[block]], named))
                of[block] = len(sets) - 1
        self._machines = machines
        cells = [np.unique(self._cells.cell_of[each], return_counts=True) for each in ranks]
        inside = np.flatnonzero(instance.free & instance.by_machine)
        for number in np.unique(self._machine_set[inside]).tolist():
            groups = np.unique(self._cells.group_of[machines[number]])
            of_groups = np.flatnonzero(np.isin(self._cells.cell_group, groups))
            these = inside[self._machine_set[inside] == number]
            if number >= unpinned or len(of_groups) > len(groups):
                self._rank_set[these] = len(cells)
                cells.append((of_groups, np.ones_like(of_groups)))
            else:
                self._rank_set[these] = -1
        self._cells_in, self._ranks_in = (
            _Lists([c for c, _ in cells]),
            _Lists([n for _, n in cells]),
        )

    @cached_property
    def _room(self) -> IntArray:
        """Capacity of ranks and their machines at the largest rank of each cell; int64 array
        [cells, resources], with no limit for those of the cluster."""
        room = np.full((self._cells.count, len(self._instance.resources)), MAX_ACTIVITY)
        for index, resource in enumerate(self._instance.resources):
            if resource.scope != Scope.CLUSTER:
                of = resource.scope == Scope.MACHINE
                capacity = resource.capacity[self._instance.machine_of] if of else resource.capacity
                room[:, index] = -1
                np.maximum.at(room[:, index], self._cells.cell_of, capacity)
        return room

    def _open(self, entry: IntArray, cell: IntArray) -> BoolArray:
        """Whether shards fit an empty rank of the cells."""
        return np.asarray((self._instance.shard_use[entry] <= self._room[cell]).all(axis=1))

    def _entries(self, blocks: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Block (an index among these), entry, and shards of every entry; where the number of
        shards depends on the place, 1 for entries of their own."""
        instance = self._instance
        entry, ends = members(instance.block_shards, blocks)
        of = _owners(ends)
        alike = self._alike[blocks][of]
        return (
            of,
            entry,
            np.where(alike, instance.block_count[blocks][of], instance.shard_repeat[entry]),
        )

    def _positions(self, blocks: IntArray) -> tuple[IntArray, IntArray]:
        """Entry of every position of blocks whose shards have entries of their own, one block after
        the other, and where each block's begin; a single position for those that share one."""
        instance = self._instance
        entry, ends = members(instance.block_shards, blocks)
        of = _owners(ends)
        repeat = np.where(self._alike[blocks][of], 1, instance.shard_repeat[entry])
        length = np.bincount(of, weights=repeat, minlength=len(blocks)).astype(np.int64)
        return np.repeat(entry, repeat), starts_of(length)

    def _unplaced(self, blocks: IntArray) -> None:
        """Shards on no rank."""
        of, entry, times = self._entries(blocks)
        option = self._instance.option_of[blocks][of]
        self.own.append(Items(option, entry, np.zeros_like(entry), times))

    def _settled(self, blocks: IntArray) -> None:
        """Shards whose ranks the option says: all of them, or a list."""
        every = self._instance.everywhere[blocks]
        alike = self._alike[blocks]
        apiece = blocks[~alike & every]
        for some, items in (
            (blocks[alike], self._shared(blocks[alike])),
            (apiece, self._on_every_rank(apiece)),
            (blocks[~alike & ~every], self._on_list(blocks[~alike & ~every])),
        ):
            items = replace(items, of=self._instance.option_of[some][items.of])
            self.possible[items.of[~self._open(items.entry, items.cell)]] = False
            self.own.append(items)
        if self._apart:
            self._cover(blocks[alike & every])
            self._cover_apiece(apiece)

    def _shared(self, blocks: IntArray) -> Items:
        """Shards with one entry on all ranks, or on a list."""
        instance = self._instance
        listed = np.where(instance.everywhere, 0, instance.block_places + 1)[blocks]
        index, ends = members(self._cells_in.start, listed)
        of = _owners(ends)
        entry = instance.block_shards[blocks][of]
        return Items(of, entry, self._cells_in.flat[index], self._ranks_in.flat[index])

    def _on_every_rank(self, blocks: IntArray) -> Items:
        """Runs of shards on all ranks, in order: how many of a run lie in each cell."""
        entry, ends = members(self._instance.block_shards, blocks)
        of, repeat = _owners(ends), self._instance.shard_repeat[entry]
        high = np.cumsum(repeat)
        high -= (high - repeat)[ends[:-1]][of]
        ranks = np.arange(self._instance.num_ranks)
        before = np.zeros((len(ranks) + 1, self._cells.count), dtype=np.int64)
        before[ranks + 1, self._cells.cell_of] = 1
        before = np.cumsum(before, axis=0)
        count = before[high] - before[high - repeat]
        run, cell = np.nonzero(count)
        return Items(of[run], entry[run], cell, count[run, cell])

    def _on_list(self, blocks: IntArray) -> Items:
        """Shards on the ranks of a list, in order."""
        entry, starts = self._positions(blocks)
        of = _owners(starts)
        position = np.arange(len(entry)) - starts[of]
        first = self._listed.start[self._instance.block_places[blocks] + 1]
        cell = self._cells.cell_of[self._listed.flat[first[of] + position]]
        return Items(of, entry, cell, np.ones_like(entry))

    def _cover(self, blocks: IntArray) -> None:
        """Equal shards that cover all ranks of every machine."""
        machines = np.arange(len(self._instance.machines))
        value = self._measures.value[self._instance.block_shards[blocks]]
        option = self._instance.option_of[blocks]
        self.terms.append(
            self._covering(np.repeat(option, len(machines)), np.tile(machines, len(blocks)),
                           np.repeat(value, len(machines), axis=0))
        )  # fmt: skip

    def _cover_apiece(self, blocks: IntArray) -> None:
        """The smallest of the shards that cover all ranks of a machine."""
        items, count = self._on_every_rank(blocks), len(self._instance.machines)
        least = np.full((len(blocks) * count, self._measures.value.shape[1]), MAX_ACTIVITY)
        machine = self._cells.cell_group[items.cell]
        np.minimum.at(least, items.of * count + machine, self._measures.value[items.entry])
        option = np.repeat(self._instance.option_of[blocks], count)
        machines = np.tile(np.arange(count), len(blocks))
        self.terms.append(self._covering(option, machines, least))

    def _covering(self, of: IntArray, machine: IntArray, least: IntArray) -> Terms:
        """Terms of shards of at least this measure [n, measures] on every rank of a machine."""
        width = least.shape[1]
        row = self._layout.cover + (1 + machine[:, None]) * width + np.arange(width)
        return np.repeat(of, width), row.ravel(), least.ravel()

    def _anywhere(self, blocks: IntArray) -> None:
        """Shards that each take a rank in one of some cells."""
        instance = self._instance
        first, listed = instance.block_shards[blocks], self._rank_set[blocks]
        index, ends = members(self._cells_in.start, listed)
        of = _owners(ends)
        fits = self._open(first[of], self._cells_in.flat[index]) * self._ranks_in.flat[index]
        room = np.bincount(of, weights=fits, minlength=len(blocks))
        inside = np.flatnonzero(instance.by_machine[blocks])
        numbers, used = np.unique(self._machine_set[blocks[inside]], return_inverse=True)
        largest = [self._size[self._machines[n]].max(initial=0) for n in numbers.tolist()]
        room[inside] = np.asarray(largest, dtype=np.int64)[used]
        apart = instance.block_distinct[blocks] & self._alike[blocks]
        full = apart & (room < instance.block_count[blocks])
        self.possible[instance.option_of[blocks[full]]] = False

        home = self._is_home[blocks]
        one = np.ones(int(home.sum()), dtype=np.int64)
        self._each(blocks[home], 0 * one, one, HOME, first[home])
        of, entry, times = self._entries(blocks)
        times = times - (home[of] & (entry == first[of]))
        some = times > 0
        order = 1 + entry - first[of]
        self._each(blocks[of[some]], order[some], times[some], FREE, entry[some])

    def _each(
        self, block: IntArray, order: IntArray, times: IntArray, role: int, entry: IntArray
    ) -> None:
        """Slots for one shard each, in any cell of the block's ranks where it fits."""
        index, ends = members(self._cells_in.start, self._rank_set[block])
        slot, cell = _owners(ends), self._cells_in.flat[index]
        fits = self._open(entry[slot], cell)
        slot, cell = slot[fits], cell[fits]
        items = Items(np.arange(len(slot)), entry[slot], cell, np.ones_like(slot))
        group = self._cells.cell_group[cell]
        choice = self.slots.add(block, order, times, role, slot, group, items)
        if role == HOME:
            self._as_chief(choice, block[slot], entry[slot], group)

    def _as_chief(
        self, choice: IntArray, block: IntArray, entry: IntArray, group: IntArray
    ) -> None:
        """The first shard of a home block counts in the largest-shard rows of its machine."""
        width, tables = self._measures.value.shape[1], self._instance.num_tables
        table = self._instance.table_of[self._instance.option_of[block]]
        row = ((1 + group[:, None]) * width + np.arange(width)) * tables + table[:, None]
        value = self._measures.value[entry]
        term = np.repeat(choice, width), (self._layout.chief + row).ravel(), value.ravel()
        self.slots.terms.append(term)

    def _grouped(self, blocks: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Places of blocks that choose machines: block (an index among these), group of machines,
        the smallest of the group, and how many of its machines are allowed."""
        numbers, used = np.unique(self._machine_set[blocks], return_inverse=True)
        lists, parts = [self._machines[number] for number in numbers.tolist()], []
        for number, machines in enumerate(lists):
            lists[number] = machines = machines[np.argsort(self._size[machines], kind="stable")]
            group = self._cells.group_of[machines]
            parts.append(np.unique(group, return_index=True, return_counts=True))
        groups, counts = _Lists([p[0] for p in parts]), _Lists([p[2] for p in parts])
        smallest = _Lists([m[p[1]] for m, p in zip(lists, parts, strict=True)])
        index, ends = members(groups.start, used)
        return _owners(ends), groups.flat[index], smallest.flat[index], counts.flat[index]

    def _on_one_machine(self, blocks: IntArray) -> None:
        """Shards that take ranks of one machine, all of whose ranks are alike."""
        instance, cells = self._instance, self._cells
        of, group, machine, _ = self._grouped(blocks)
        cell = cells.cell_of[np.asarray([m[0] for m in instance.machines])[machine]]
        apart = (instance.block_distinct & self._alike)[blocks][of]
        largest = np.zeros(cells.groups, dtype=np.int64)
        np.maximum.at(largest, cells.group_of, self._size)
        fits = ~apart | (instance.block_count[blocks][of] <= largest[group])
        choice, entry, times = self._entries(blocks[of])
        np.logical_and.at(fits, choice, self._open(entry, cell[choice]))
        number, kept = np.cumsum(fits) - 1, fits[choice]
        choice, entry, times = choice[kept], entry[kept], times[kept]
        items = Items(number[choice], entry, cell[choice], times)
        one, home = np.ones_like(blocks), self._is_home[blocks]
        numbers = self.slots.add(blocks, one, one, FREE, of[fits], group[fits], items)
        self.slots.role[-1][home] = HOME
        chief = home[of[fits]]
        block = blocks[of[fits][chief]]
        first = instance.block_shards[block]
        self._as_chief(numbers[chief], block, first, group[fits][chief])

    def _whole_machines(self, blocks: IntArray) -> None:
        """Shards that take all ranks of some machines."""
        instance = self._instance
        of, group, machine, machines = self._grouped(blocks)
        inside = _Lists([np.asarray(m, dtype=np.int64) for m in instance.machines])
        index, ends = members(inside.start, machine)
        choice = _owners(ends)
        position = np.where(
            self._alike[blocks][of[choice]], 0, np.arange(len(index)) - ends[choice]
        )
        entries, starts = self._positions(blocks)
        entry = entries[starts[of[choice]] + position]
        cell = self._cells.cell_of[inside.flat[index]]
        fits = np.ones(len(of), dtype=bool)
        np.logical_and.at(fits, choice, self._open(entry, cell))
        room = np.bincount(of, weights=fits * machines, minlength=len(blocks))
        full = instance.block_distinct[blocks] & (room < instance.block_count[blocks])
        self.possible[instance.option_of[blocks[full]]] = False

        least = np.minimum.reduceat(self._measures.value, instance.block_shards[:-1])[blocks]
        home = self._is_home[blocks]
        others = instance.block_count[blocks] - home
        for some, role, times in ((home, HOME, home), (others > 0, FREE, others)):
            rank, here = np.cumsum(some) - 1, fits & some[of]
            number, kept = np.cumsum(here) - 1, here[choice]
            items = Items(number[choice[kept]], entry[kept], cell[kept], np.ones_like(entry[kept]))
            count = times[some].astype(np.int64)
            numbers = self.slots.add(
                blocks[some], np.full(len(count), role == FREE), count, role,
                rank[of[here]], group[here], items,
            )  # fmt: skip
            if self._apart:
                self.slots.terms.append(self._covering(numbers, machine[here], least[of[here]]))


class _Lists:
    """Lists as one array: list i is ``flat[start[i] : start[i+1]]``."""

    def __init__(self, lists: list[IntArray]) -> None:
        self.start, self.flat = starts_of(np.asarray([len(each) for each in lists])), joined(lists)


def joined(parts: Iterable[IntArray]) -> IntArray:
    parts = list(parts)
    return np.concatenate(parts).astype(np.int64) if parts else np.zeros(0, dtype=np.int64)


def starts_of(length: IntArray) -> IntArray:
    """Offsets of runs of these lengths."""
    return np.append(0, np.cumsum(length)).astype(np.int64)


def _owners(starts: IntArray) -> IntArray:
    """Index of the run that every member belongs to."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))
