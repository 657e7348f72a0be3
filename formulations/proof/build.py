"""Fill the rows of a proof: where the shards of every option may go, all options at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from formulations.instance import Instance, IntArray, Objective, Scope
from formulations.instance.facts import members
from formulations.instance.instance import MAX_ACTIVITY
from formulations.model.partition import by_class, by_machine
from formulations.proof.rows import FREE, HOME, Layout, Rows, measures

BoolArray = NDArray[np.bool_]


@lru_cache(maxsize=2)
def build_rows(instance: Instance, apart: bool = False) -> Rows:
    """The rows of an instance, cached for its next use.

    Ranks that are alike are pooled; with ``apart``, only within each machine.

    Parameters
    ----------
    instance : Instance
    apart : bool
    """
    return _Builder(instance, apart).build()


@dataclass(frozen=True, eq=False)
class _Items:
    """Shards put somewhere: ``times`` shards like ``entry`` in ``cell`` for ``of``, which is an
    option or a choice; int64 arrays of equal length."""

    of: IntArray
    entry: IntArray
    cell: IntArray
    times: IntArray


@dataclass
class _Slots:
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
    items: list[_Items] = field(default_factory=list)
    terms: list[tuple[IntArray, IntArray, IntArray]] = field(default_factory=list)
    slots: int = 0
    choices: int = 0

    def add(
        self, block: IntArray, order: IntArray, times: IntArray, role: int,
        slot: IntArray, group: IntArray, items: _Items,
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
        self.items.append(_Items(numbers[items.of], items.entry, items.cell, items.times))
        self.slots += len(block)
        self.choices += len(slot)
        return numbers


class _Builder:
    """Collects the rows, one kind of block after the other."""

    def __init__(self, instance: Instance, apart: bool) -> None:
        self._instance, self._apart = instance, apart
        self._cells = by_machine(instance) if apart else by_class(instance)
        self._measures = measures(instance)
        named = instance.option_group >= 0
        columns = (instance.table_of, instance.option_group, instance.option_level)
        fused = np.unique(np.stack([c[named] for c in columns], axis=1), axis=0)
        self._fused = {(t, g, level): i for i, (t, g, level) in enumerate(fused.tolist())}
        self._layout = self._lay_out()
        self._possible = instance.allowed.copy()
        self._moves = self._moving()
        self._own: list[_Items] = []
        self._own_terms: list[tuple[IntArray, IntArray, IntArray]] = []
        self._slots = _Slots()

    def _lay_out(self) -> Layout:
        instance, cells, width = self._instance, self._cells, self._measures.value.shape[1]
        at = len(self._measures.costs) * cells.count + (instance.objective == Objective.TOTAL)
        resource = []
        for r in instance.resources:
            resource.append(at)
            at += {Scope.RANK: cells.count, Scope.MACHINE: cells.groups}.get(r.scope, 1)
        sets = 1 + (len(instance.machines) if self._apart else 0)
        cover, chief = at, at + sets * width
        end = chief + sets * width * instance.num_tables
        size = end + 3 + len(self._fused)
        return Layout(0, resource, cover, chief, end, end + 1, end + 2, end + 3, size)

    def build(self) -> Rows:
        instance = self._instance
        if instance.num_options:
            self._facts()
            some = self._possible[instance.option_of]
            self._unplaced(np.flatnonzero(some & instance.unplaced))
            self._settled(np.flatnonzero(some & instance.settled & ~instance.unplaced))
            chosen = np.flatnonzero(some & instance.free & (self._rank_set >= 0))
            self._anywhere(chosen)
            inside = np.flatnonzero(some & instance.free & (self._rank_set < 0))
            self._on_one_machine(inside)
            self._whole_machines(np.flatnonzero(some & instance.whole))
        return self._packed()

    def _moving(self) -> IntArray:
        """1 for options that move their table, else 0; int64 array [options]."""
        instance = self._instance
        now = {c.table: c.option for c in instance.current}
        moves = np.isin(instance.table_of, list(now)).astype(np.int64)
        moves[[option for option in now.values() if option >= 0]] = 0
        return moves

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
        """Capacity of ranks and their machines at one rank of each cell; int64 array [cells,
        resources], with no limit for those of the cluster."""
        first = np.unique(self._cells.cell_of, return_index=True)[1]
        machine, most = self._instance.machine_of[first], np.iinfo(np.int64).max
        rooms = []
        for r in self._instance.resources:
            place = {Scope.RANK: first, Scope.MACHINE: machine}.get(r.scope)
            rooms.append(np.full(len(first), most) if place is None else r.capacity[place])
        return np.stack(rooms, axis=1) if rooms else np.zeros((len(first), 0), dtype=np.int64)

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
        return np.repeat(entry, repeat), _starts(length)

    def _unplaced(self, blocks: IntArray) -> None:
        """Shards on no rank."""
        of, entry, times = self._entries(blocks)
        option = self._instance.option_of[blocks][of]
        self._own.append(_Items(option, entry, np.zeros_like(entry), times))

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
            self._possible[items.of[~self._open(items.entry, items.cell)]] = False
            self._own.append(items)
        if self._apart:
            self._cover(blocks[alike & every])
            self._cover_apiece(apiece)

    def _shared(self, blocks: IntArray) -> _Items:
        """Shards with one entry on all ranks, or on a list."""
        instance = self._instance
        listed = np.where(instance.everywhere, 0, instance.block_places + 1)[blocks]
        index, ends = members(self._cells_in.start, listed)
        of = _owners(ends)
        entry = instance.block_shards[blocks][of]
        return _Items(of, entry, self._cells_in.flat[index], self._ranks_in.flat[index])

    def _on_every_rank(self, blocks: IntArray) -> _Items:
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
        return _Items(of[run], entry[run], cell, count[run, cell])

    def _on_list(self, blocks: IntArray) -> _Items:
        """Shards on the ranks of a list, in order."""
        entry, starts = self._positions(blocks)
        of = _owners(starts)
        position = np.arange(len(entry)) - starts[of]
        first = self._listed.start[self._instance.block_places[blocks] + 1]
        cell = self._cells.cell_of[self._listed.flat[first[of] + position]]
        return _Items(of, entry, cell, np.ones_like(entry))

    def _cover(self, blocks: IntArray) -> None:
        """Equal shards that cover all ranks of every machine."""
        machines = np.arange(len(self._instance.machines))
        value = self._measures.value[self._instance.block_shards[blocks]]
        option = self._instance.option_of[blocks]
        self._own_terms.append(
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
        self._own_terms.append(self._covering(option, machines, least))

    def _covering(
        self, of: IntArray, machine: IntArray, least: IntArray
    ) -> tuple[IntArray, IntArray, IntArray]:
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
        apart = instance.block_distinct[blocks] & self._alike[blocks] & ~instance.by_machine[blocks]
        full = apart & (room < instance.block_count[blocks])
        self._possible[instance.option_of[blocks[full]]] = False

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
        items = _Items(np.arange(len(slot)), entry[slot], cell, np.ones_like(slot))
        group = self._cells.cell_group[cell]
        choice = self._slots.add(block, order, times, role, slot, group, items)
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
        self._slots.terms.append(term)

    def _grouped(self, blocks: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Places of blocks that choose machines: block (an index among these), group of machines,
        one machine of the group, and how many of its machines are allowed."""
        numbers, used = np.unique(self._machine_set[blocks], return_inverse=True)
        lists = [self._machines[number] for number in numbers.tolist()]
        parts = [  # the last machine of every group
            np.unique(self._cells.group_of[m[::-1]], return_index=True, return_counts=True)
            for m in lists
        ]
        groups, counts = _Lists([p[0] for p in parts]), _Lists([p[2] for p in parts])
        last = _Lists([m[::-1][p[1]] for m, p in zip(lists, parts, strict=True)])
        index, ends = members(groups.start, used)
        return _owners(ends), groups.flat[index], last.flat[index], counts.flat[index]

    def _on_one_machine(self, blocks: IntArray) -> None:
        """Shards that take ranks of one machine, all of whose ranks are alike."""
        instance, cells = self._instance, self._cells
        of, group, machine, _ = self._grouped(blocks)
        cell = cells.cell_of[np.asarray([m[0] for m in instance.machines])[machine]]
        apart = (instance.block_distinct & self._alike)[blocks][of]
        room = cells.cell_size[cell] // cells.group_size[group]
        fits = ~apart | (instance.block_count[blocks][of] <= room)
        choice, entry, times = self._entries(blocks[of])
        np.logical_and.at(fits, choice, self._open(entry, cell[choice]))
        number, kept = np.cumsum(fits) - 1, fits[choice]
        choice, entry, times = choice[kept], entry[kept], times[kept]
        items = _Items(number[choice], entry, cell[choice], times)
        one, home = np.ones_like(blocks), self._is_home[blocks]
        numbers = self._slots.add(blocks, one, one, FREE, of[fits], group[fits], items)
        self._slots.role[-1][home] = HOME
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
        self._possible[instance.option_of[blocks[full]]] = False

        least = np.minimum.reduceat(self._measures.value, instance.block_shards[:-1])[blocks]
        home = self._is_home[blocks]
        others = instance.block_count[blocks] - home
        for some, role, times in ((home, HOME, home), (others > 0, FREE, others)):
            rank, here = np.cumsum(some) - 1, fits & some[of]
            number, kept = np.cumsum(here) - 1, here[choice]
            items = _Items(number[choice[kept]], entry[kept], cell[kept], np.ones_like(entry[kept]))
            count = times[some].astype(np.int64)
            numbers = self._slots.add(
                blocks[some], np.full(len(count), role == FREE), count, role,
                rank[of[here]], group[here], items,
            )  # fmt: skip
            if self._apart:
                self._slots.terms.append(self._covering(numbers, machine[here], least[of[here]]))

    def _packed(self) -> Rows:
        """Number the choices, and sum up what each adds to the rows."""
        instance, slots = self._instance, self._slots
        block, order, times, role = map(
            _joined, (slots.block, slots.order, slots.times, slots.role)
        )
        slot, group = _joined(slots.slot), _joined(slots.group)
        option = instance.option_of[block]
        count = np.bincount(slot, minlength=len(block))
        self._possible[option[count == 0]] = False
        alive = self._possible[option]
        merged = alive & (count == 1) & (role == FREE)  # a single place needs no slot
        kept = np.flatnonzero(alive & ~merged)
        kept = kept[np.lexsort((order[kept], block[kept]))]
        place = np.full(len(block), -1)
        place[kept] = np.arange(len(kept))
        chosen = np.argsort(place[slot], kind="stable")
        chosen = chosen[np.searchsorted(place[slot][chosen], 0) :]
        first = instance.num_options
        number = np.where(merged[slot], option[slot], -1)
        number[chosen] = first + np.arange(len(chosen))
        factor = np.where(merged[slot], times[slot], 1)

        items = [_Items(i.of, i.entry, i.cell, i.times) for i in self._own]
        moves = [self._moves[i.of] for i in self._own]
        terms = [*self._own_terms]
        for i in slots.items:
            some = number[i.of] >= 0
            of = i.of[some]
            shards = i.times[some] * factor[of]
            items.append(_Items(number[of], i.entry[some], i.cell[some], shards))
            moves.append(self._moves[option[slot[of]]])
        for of, row, amount in slots.terms:
            some = number[of] >= 0
            terms.append((number[of[some]], row[some], amount[some] * factor[of[some]]))
        found = [*self._options_terms(), *self._summed(items, moves)]
        if terms:
            of, row, amount = map(_joined, zip(*terms, strict=True))
            found.append(_combined(of, row, amount, self._layout.size))
        start, row, amount = self._sorted(found, first + len(chosen))
        return Rows(
            instance, self._cells, self._apart, self._measures, self._layout, start, row, amount,
            option[kept], times[kept], role[kept],
            first + np.append(0, np.cumsum(count[kept])),
            np.append(np.full(first, -1), group[chosen]),
            self._possible, self._limits(), list(self._fused),
        )  # fmt: skip

    def _options_terms(self) -> list[tuple[IntArray, IntArray, IntArray]]:
        """What options add to rows whatever the places of their shards."""
        instance, layout, measured = self._instance, self._layout, self._measures
        every, table = np.arange(instance.num_options), instance.table_of
        named = np.flatnonzero(instance.option_group >= 0)
        columns = table, instance.option_group, instance.option_level
        keys = zip(*(column[named].tolist() for column in columns), strict=True)
        fused = np.asarray([self._fused[key] for key in keys], dtype=np.int64)
        found = [
            (every, np.full(len(every), layout.moved_tables), self._moves),
            (named, layout.fusion + fused, np.ones_like(named)),
        ]
        for f in range(measured.value.shape[1]):
            found.append((every, np.full(len(every), layout.cover + f), measured.floor[:, f]))
            chief = layout.chief + f * instance.num_tables + table
            found.append((every, chief, measured.excess[:, f]))
        return found

    def _summed(
        self, items: list[_Items], moves: list[IntArray]
    ) -> list[tuple[IntArray, IntArray, IntArray]]:
        """What the shards of every option and choice add to the rows of their places."""
        instance, layout, cells = self._instance, self._layout, self._cells
        of, entry = _joined([i.of for i in items]), _joined([i.entry for i in items])
        cell, times = _joined([i.cell for i in items]), _joined([i.times for i in items])
        rows: dict[Scope, list[int]] = {scope: [] for scope in Scope}
        rows[Scope.RANK] += [
            layout.cost + f * cells.count for f in range(len(self._measures.costs))
        ]
        columns = {scope: [instance.shard_use[:, :0]] for scope in Scope}
        columns[Scope.RANK].append(self._measures.value[:, : len(self._measures.costs)])
        for i, resource in enumerate(instance.resources):
            rows[resource.scope].append(layout.resource[i])
            columns[resource.scope].append(instance.shard_use[:, i : i + 1])
        if instance.objective == Objective.TOTAL:
            rows[Scope.CLUSTER].append(layout.cost)
            columns[Scope.CLUSTER].append(instance.shard_cost.sum(axis=1, keepdims=True))
        if instance.current:
            rows[Scope.CLUSTER].append(layout.moved_bytes)
            columns[Scope.CLUSTER].append(instance.shard_move[:, None])
        found = []
        for scope in Scope:
            if not rows[scope]:
                continue
            place = {Scope.RANK: cell, Scope.MACHINE: cells.cell_group[cell]}.get(scope, 0 * cell)
            key = of * cells.count + place
            order = np.argsort(key, kind="stable")
            amount = np.hstack(columns[scope])[entry[order]] * times[order, None]
            if scope == Scope.CLUSTER and instance.current:
                amount[:, -1] *= _joined(moves)[order]
            key = key[order]
            first = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
            sums = np.add.reduceat(amount, first, axis=0) if len(first) else amount
            at = order[first]
            for row, total in zip(rows[scope], sums.T, strict=True):
                found.append((of[at], row + place[at], total))
        return found

    def _sorted(
        self, found: list[tuple[IntArray, IntArray, IntArray]], choices: int
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Start, row and amount of all terms, choice by choice; at least one each."""
        kept = []
        for of, row, amount in found:  # each ordered by choice
            there = np.flatnonzero(amount)
            kept.append((of[there], row[there], amount[there]))
        length = np.bincount(_joined([of for of, _, _ in kept]), minlength=choices)
        none = np.flatnonzero(length == 0)
        kept.append((none, np.full(len(none), self._layout.nothing), np.zeros_like(none)))
        length[none] = 1
        start = _starts(length)
        end, rows, amounts = start[:-1].copy(), *np.zeros((2, start[-1]), dtype=np.int64)
        for of, row, amount in kept:
            runs = _starts(np.bincount(of, minlength=choices))
            at = end[of] + np.arange(len(of)) - runs[of]
            rows[at], amounts[at] = row, amount
            end += np.diff(runs)
        return start, rows, amounts

    def _limits(self) -> IntArray:
        instance, cells, layout = self._instance, self._cells, self._layout
        limit = np.zeros(layout.size, dtype=np.int64)
        for first, resource in zip(layout.resource, instance.resources, strict=True):
            part = {Scope.RANK: cells.cell_of, Scope.MACHINE: cells.group_of}.get(
                resource.scope, np.zeros(1, dtype=np.int64)
            )
            np.add.at(limit, first + part, resource.capacity)
        width, tables = self._measures.value.shape[1], instance.num_tables
        for index in range(1 + (len(instance.machines) if self._apart else 0)):
            ranks = range(instance.num_ranks) if index == 0 else instance.machines[index - 1]
            for f, ranked in enumerate(self._measures.ranked, len(self._measures.costs)):
                most = int(instance.resources[ranked].capacity[list(ranks)].max())
                first = layout.chief + (index * width + f) * tables
                limit[first : first + tables] = most
        limit[layout.moved_tables] = instance.max_moved_tables or 0
        limit[layout.moved_bytes] = instance.max_moved_bytes or 0
        return limit


class _Lists:
    """Lists as one array: list i is ``flat[start[i] : start[i+1]]``."""

    def __init__(self, lists: list[IntArray]) -> None:
        self.start, self.flat = _starts(np.asarray([len(each) for each in lists])), _joined(lists)


def _joined(parts: Iterable[IntArray]) -> IntArray:
    parts = list(parts)
    return np.concatenate(parts).astype(np.int64) if parts else np.zeros(0, dtype=np.int64)


def _starts(length: IntArray) -> IntArray:
    """Offsets of runs of these lengths."""
    return np.append(0, np.cumsum(length)).astype(np.int64)


def _owners(starts: IntArray) -> IntArray:
    """Index of the run that every member belongs to."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def _combined(
    of: IntArray, row: IntArray, amount: IntArray, rows: int
) -> tuple[IntArray, IntArray, IntArray]:
    """The terms with one amount for each choice and row."""
    key, index = np.unique(of * rows + row, return_inverse=True)
    total = np.zeros(len(key), dtype=np.int64)
    np.add.at(total, index, amount)
    return key // rows, key % rows, total
