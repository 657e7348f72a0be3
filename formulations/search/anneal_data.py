"""The Instance as flat arrays for compiled loops: what each option puts where, lowered once.

An option consists of shards on every rank, shards on fixed ranks, and *assignments*: shards (or
whole machines) that choose a place from a *domain*, a list of ranks or of machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from formulations.instance import Instance, IntArray, Objective, Scope
from formulations.instance.facts import members
from formulations.instance.lowering import lower, settled_ranks
from formulations.result.placement import machine_ranks
from formulations.search.numbers import REPACKED_SHARDS

#: Kinds of assignment: a shard on a rank, the same shard on all ranks of a machine, one shard each.
RANK, MACHINE, UNEVEN_MACHINE = 0, 1, 2
#: Index of the cluster in lists by scope.
_CLUSTER = 2

#: Numbers in the single array that compiled loops read: ``a[WIDE]`` is the number of rank features,
#: and so on. Features of a rank are the objective's peaks, then the resources of scope rank; loads
#: are stored rank by rank, then machine by machine, then for the cluster.
(
    PEAKS, WIDE, MACHINE_WIDE, CLUSTER_WIDE, RANKS, MACHINES, TABLES, ASSIGNMENTS, ADMITTED_WIDE,
    MACHINE_LOAD, CLUSTER_LOAD, LOADS, MOVES, RANDOM, TALLY, _VALUE, REPLICA, STATE, GOAL,
) = range(19)  # fmt: skip
#: Sections: ``a[a[NAME] + i]``. Line by line: ranks, machines and domains; shard entries ×
#: features; fixed loads and shards of options; options; assignments (two lines); blocks; tables;
#: and the state, which is loads, limits, choices and places.
(
    MACHINE_OF, MACHINE_START, MACHINE_RANKS, DOMAIN_START, DOMAINS, ADMITTED,
    ENTRY_RANK, ENTRY_MACHINE, ENTRY_CLUSTER,
    EVERY_RANK, EVERY_MACHINE, EVERYWHERE, CLUSTER, FIXED_START, FIXED_RANK, FIXED_ENTRY,
    ASSIGNMENT_START, GROUP, LEVEL, MOVE_BYTES,
    ASSIGNMENT_ENTRY, ASSIGNMENT_KIND, ASSIGNMENT_BLOCK, ASSIGNMENT_DOMAIN,
    ASSIGNMENT_UNEVEN, UNEVEN,
    DISTINCT, TOGETHER, PINNED,
    STATE_START, HOME_OPTION, HOME,
    LOAD, LIMIT, OPTION, PLACE, GROUP_LEVEL, GROUP_TABLES, MOVED,
    BEST_OPTION, BEST_PLACE, OLD_OPTION, OLD_PLACE, RUINED, REPACKED, PREFERRED, HIDDEN,
) = range(19, 66)  # fmt: skip
_HEADER = 66
# Each replica has its own LOAD, LIMIT, OPTION, PLACE, GROUP_LEVEL, GROUP_TABLES and MOVED, side by
# side and a[STATE] apart from the next replica's; the names point to those of replica a[REPLICA].
_ASSIGNMENT = (
    ASSIGNMENT_ENTRY,
    ASSIGNMENT_KIND,
    ASSIGNMENT_BLOCK,
    ASSIGNMENT_DOMAIN,
    ASSIGNMENT_UNEVEN,
)


class Lowered:
    """An instance as one array for compiled loops, and the way back to placements.

    Attributes
    ----------
    array : int64 array
        Numbers, beginnings of sections, and the sections; a state is a copy of it.
    peaks : int
        Number of cost features of a rank.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self._uneven: list[int] = []
        self._domains: dict[tuple[int, ...], int] = {}
        self._together = np.zeros(instance.num_blocks, dtype=bool)
        self._pinned = np.zeros(instance.num_blocks, dtype=bool)
        self._machine_at = {int(r[0]): m for m, r in enumerate(instance.machines)}
        everything = np.ones(instance.num_options, dtype=bool)
        self._candidates = lower(replace(instance, current=()), everything)
        self._candidate = np.full(instance.num_options, -1)
        self._candidate[self._candidates.option] = np.arange(self._candidates.count)
        self.placeable = self._candidate >= 0
        self.assignments = self._all_assignments()
        self._block_assignments = np.searchsorted(
            self.assignments[:, 2], np.arange(instance.num_blocks + 1)
        )
        self._features()
        self.array = _packed(self._numbers(), self._sections())
        for now in instance.current:
            there = now.option >= 0 and bool(instance.allowed[now.option])
            there = there and self.keep(self.array, HOME, now.table, now.option, now.ranks)
            self.view(HOME_OPTION, instance.num_tables)[now.table] = now.option if there else -1

    def view(self, name: int, size: int, array: IntArray | None = None) -> IntArray:
        """A section of the array (or of a state)."""
        array = self.array if array is None else array
        return array[int(array[name]) : int(array[name]) + size]

    def _features(self) -> None:
        """Collect the columns of every scope, and the capacities that limit their sums."""
        instance, cost = self.instance, self.instance.shard_cost
        total = cost.sum(axis=1, keepdims=True)
        step = instance.by_phase
        summed = instance.objective == Objective.TOTAL
        self.peaks = peaks_of(instance)
        columns: dict[Scope, list[IntArray]] = {s: [] for s in Scope}
        if summed:
            columns[Scope.CLUSTER].append(total)
        else:
            columns[Scope.RANK].append(cost if step else total)
        for index, resource in enumerate(instance.resources):
            columns[resource.scope].append(instance.shard_use[:, index : index + 1])
        self.moves = -1
        if instance.limits_moves:
            self.moves = sum(c.shape[1] for c in columns[Scope.CLUSTER])
            columns[Scope.CLUSTER] += [np.zeros_like(total)] * 2
        empty = np.zeros((len(cost), 0), dtype=np.int64)
        self.entry = [np.concatenate([empty, *columns[s]], axis=1) for s in Scope]
        self.capacity = capacities(instance)

    def _numbers(self) -> dict[int, int]:
        ranks, machines, _ = (a.size for a in self.capacity)
        wide = [entry.shape[1] for entry in self.entry]
        return {
            PEAKS: self.peaks, WIDE: wide[0], MACHINE_WIDE: wide[1], CLUSTER_WIDE: wide[2],
            RANKS: self.instance.num_ranks, MACHINES: len(self.instance.machines),
            TABLES: self.instance.num_tables, MACHINE_LOAD: ranks, CLUSTER_LOAD: ranks + machines,
            LOADS: ranks + machines + wide[2], MOVES: self.moves,
            ADMITTED_WIDE: max(self.instance.num_ranks, len(self.instance.machines)),
        }  # fmt: skip

    def _sections(self) -> dict[int, object]:
        instance = self.instance
        every, (fixed_start, *fixed), moves = self._options()
        sizes, tables = (
            np.diff(self._block_assignments[instance.option_blocks]),
            instance.num_tables,
        )
        widest = np.zeros(tables, dtype=np.int64)
        np.maximum.at(widest, instance.table_of, sizes)
        places = int(widest.sum())
        loads = sum(a.size for a in self.capacity)
        groups = len(instance.fusion_groups)
        return {
            MACHINE_OF: instance.machine_of,
            MACHINE_START: _starts([len(m) for m in instance.machines]),
            MACHINE_RANKS: [r for m in instance.machines for r in m],
            DOMAIN_START: _starts([len(d) for d in self._domains]),
            DOMAINS: [r for d in self._domains for r in d],
            ADMITTED: self._admitted(),
            ENTRY_RANK: self.entry[0], ENTRY_MACHINE: self.entry[1], ENTRY_CLUSTER: self.entry[2],
            EVERY_RANK: every[0], EVERY_MACHINE: every[1],
            EVERYWHERE: every[0].any(axis=1) | every[1].any(axis=1),
            CLUSTER: every[2],
            FIXED_START: fixed_start, FIXED_RANK: fixed[0], FIXED_ENTRY: fixed[1],
            ASSIGNMENT_START: self._block_assignments[instance.option_blocks],
            GROUP: instance.option_group, LEVEL: instance.option_level, MOVE_BYTES: moves,
            **dict(zip(_ASSIGNMENT, self.assignments.T, strict=True)), UNEVEN: self._uneven,
            DISTINCT: instance.block_distinct, TOGETHER: self._together, PINNED: self._pinned,
            STATE_START: _starts(widest),
            HOME_OPTION: np.full(tables, -2), HOME: np.full(places, -1),
            BEST_OPTION: np.zeros(tables), BEST_PLACE: np.zeros(places),
            OLD_OPTION: np.zeros(tables), OLD_PLACE: np.zeros(places),
            RUINED: np.zeros(8), REPACKED: np.zeros(4 * REPACKED_SHARDS + 8),
            PREFERRED: np.full(tables, -1), HIDDEN: instance.hidden_time,
            LOAD: np.zeros(loads), LIMIT: np.concatenate([a.ravel() for a in self.capacity]),
            OPTION: np.zeros(tables), PLACE: np.zeros(places),
            GROUP_LEVEL: np.zeros(groups), GROUP_TABLES: np.zeros(groups), MOVED: np.zeros(tables),
        }  # fmt: skip

    def _options(self) -> tuple[list[IntArray], tuple[IntArray, ...], IntArray]:
        """Loads that options put everywhere, their fixed shards, and what they count if they
        move."""
        instance, found = self.instance, self._candidates
        every: list[IntArray] = [
            np.zeros((instance.num_options, e.shape[1]), dtype=np.int64) for e in self.entry
        ]
        moves: IntArray = np.tile(np.asarray([1, 0]), (instance.num_options, 1))

        def put(scope: int, option: IntArray, entry: IntArray, times: int | IntArray) -> None:
            values = self.entry[scope][entry] * np.reshape(times, (-1, 1))
            np.add.at(every[scope], option, values)
            if scope == _CLUSTER:
                np.add.at(moves[:, 1], option, instance.shard_move[entry] * times)

        even = found.option[found.even_candidate]
        for scope, copies in enumerate((1, 1, instance.num_ranks)):
            put(scope, even, found.even_entry, copies)
        put(_CLUSTER, found.option[found.off_candidate], found.off_entry, found.off_times)
        owner, rank, entry, times = found.fixed.by_rank
        put(_CLUSTER, found.option[owner], entry, times)
        fixed = self._fixed(found.option[owner], rank, entry, times)
        on_rank = self.assignments[self.assignments[:, 1] == RANK]
        put(_CLUSTER, instance.option_of[on_rank[:, 2]], on_rank[:, 0], 1)
        for group in found.whole:  # their use of the cluster depends on the machines they choose
            size = len(instance.machines[int(group.machines[0])])
            shards = np.broadcast_to(group.entries, (len(group.block), size))
            bytes_moved = instance.shard_move[shards].sum(axis=1) * group.count
            np.add.at(moves[:, 1], instance.option_of[group.block], bytes_moved)
        return every, fixed, moves

    def _fixed(
        self, option: IntArray, rank: IntArray, entry: IntArray, times: IntArray
    ) -> tuple[IntArray, ...]:
        """Beginnings of the options' fixed shards, and the shards' ranks and entries."""
        less = np.unique(entry[times < 0])  # a negative copy of each entry that is taken away
        entry = np.where(times < 0, len(self.entry[0]) + np.searchsorted(less, entry), entry)
        self.entry = [np.concatenate([e, -e[less]]) for e in self.entry]
        shard = np.repeat(np.arange(len(option)), np.abs(times))
        shard = shard[np.argsort(option[shard], kind="stable")]
        counts = np.bincount(option[shard], minlength=self.instance.num_options)
        return _starts(counts), rank[shard], entry[shard]

    def _all_assignments(self) -> IntArray:
        """Entry, kind, block, domain and first uneven entry of each assignment,
        [assignments, 5]."""
        found, parts = self._candidates, [np.zeros((0, 5), dtype=np.int64)]

        def add(
            block: IntArray, entry: IntArray, kind: int, places: IntArray, at: int | IntArray
        ) -> None:
            domain = self._domains.setdefault(tuple(places.tolist()), len(self._domains))
            parts.append(np.stack(np.broadcast_arrays(entry, kind, block, domain, at), axis=1))

        for spread in found.spread:
            self._pinned[spread.block] = [int(c) in found.held for c in spread.candidate]
            room = 1 if spread.room is None else spread.room
            add(*_shards(self.instance, spread.block), RANK, np.repeat(spread.ranks, room), 0)
        for inside in found.inside:
            self._together[inside.block] = True
            add(*_shards(self.instance, inside.block), RANK, inside.machines, 0)
        for whole in found.whole:
            wide = whole.entries.shape[1]
            at = len(self._uneven) + wide * np.arange(len(whole.block))
            if wide > 1:
                self._uneven += whole.entries.ravel().tolist()
            entry, block, at = (
                np.repeat(v, whole.count) for v in (whole.entries[:, 0], whole.block, at)
            )
            add(block, entry, UNEVEN_MACHINE if wide > 1 else MACHINE, whole.machines, at)
        assignments = np.concatenate(parts)
        return assignments[np.argsort(assignments[:, 2], kind="stable")]

    def _admitted(self) -> NDArray[np.bool_]:
        places = max(self.instance.num_ranks, len(self.instance.machines))
        admitted = np.zeros((len(self._domains), places), dtype=bool)
        for index, domain in enumerate(self._domains):
            admitted[index, list(domain)] = True
        return admitted

    def keep(
        self, array: IntArray, name: int, table: int, option: int,
        ranks: Sequence[Sequence[int] | IntArray],
    ) -> bool:  # fmt: skip
        """Store the places of a table's shards, from the ranks of its blocks, in a section; False
        where its assignments may not take these places."""
        blocks = self.instance.blocks_of(option)
        if len(ranks) != len(blocks):
            return False
        places: list[int] = []
        for block, taken in zip(blocks, ranks, strict=True):
            settled = self._settled(option, block)
            if settled is None:
                places += self._places(block, taken)
            elif sorted(taken) != sorted(settled):
                return False
        low, high = self.view(ASSIGNMENT_START, self.instance.num_options + 1)[option : option + 2]
        assignments, wide = self.assignments[low:high], int(self.array[ADMITTED_WIDE])
        if (
            len(places) != len(assignments)
            or min(places, default=0) < 0
            or max(places, default=0) >= wide
        ):
            return False
        admitted = self.view(ADMITTED, len(self._domains) * wide)
        fits = admitted[assignments[:, 3] * wide + np.asarray(places, dtype=np.int64)] > 0
        if not (fits | self._together[assignments[:, 2]]).all():
            return False
        first = int(array[name] + array[array[STATE_START] + table])
        array[first : first + len(places)] = places
        return True

    def _settled(self, option: int, block: int) -> IntArray | None:
        """Ranks of a block without assignments; None for other blocks."""
        if self._block_assignments[block] < self._block_assignments[block + 1]:
            return None
        return settled_ranks(self._candidates, int(self._candidate[option]), block)

    def _on_machines(self, block: int) -> bool:
        return bool(self.assignments[self._block_assignments[block], 1] != RANK)

    def _places(self, block: int, ranks: Sequence[int] | IntArray) -> list[int]:
        """Places of a block's assignments: its ranks, or the machines whose first ranks they
        are."""
        found = [int(rank) for rank in ranks]
        if self._on_machines(block):
            found = [self._machine_at[rank] for rank in found if rank in self._machine_at]
        return found

    def ranks(self, option: int, places: list[int]) -> list[IntArray]:
        """Ranks of an option's blocks, from the places of its assignments."""
        at, result = 0, []
        for block in self.instance.blocks_of(option):
            found = self._settled(option, block)
            if found is None:
                assignments = int(
                    self._block_assignments[block + 1] - self._block_assignments[block]
                )
                taken = places[at : at + assignments]
                at += assignments
                whole = self._on_machines(block)
                found = machine_ranks(self.instance, taken) if whole else np.asarray(taken)
            result.append(found)
        return result


def _shards(instance: Instance, blocks: IntArray) -> tuple[IntArray, IntArray]:
    """Block and entry of every shard of the blocks, position by position."""
    entry, ends = members(instance.block_shards, blocks)
    owner = np.repeat(blocks, np.diff(ends))
    shared = np.diff(ends)[np.repeat(np.arange(len(blocks)), np.diff(ends))] == 1
    times = np.where(shared, instance.block_count[owner], instance.shard_repeat[entry])
    return np.repeat(owner, times), np.repeat(entry, times)


def _starts(sizes: Sequence[int] | IntArray) -> IntArray:
    return np.append(0, np.cumsum(sizes)).astype(np.int64)


def peaks_of(instance: Instance) -> int:
    """Number of cost features of a rank."""
    if instance.objective == Objective.TOTAL:
        return 0
    return len(instance.phases) if instance.by_phase else 1


def capacities(instance: Instance) -> list[IntArray]:
    """Limits of all loads, one array [places, features] per scope; 0 for the objective's."""
    ranks = instance.num_ranks
    limits: dict[Scope, list[IntArray]] = {s: [] for s in Scope}
    limits[Scope.RANK] += [np.zeros(ranks, dtype=np.int64)] * peaks_of(instance)
    if instance.objective == Objective.TOTAL:
        limits[Scope.CLUSTER].append(np.zeros(1, dtype=np.int64))
    for resource in instance.resources:
        limits[resource.scope].append(resource.capacity)
    if instance.limits_moves:
        for most in (instance.max_moved_tables, instance.max_moved_bytes):
            limits[Scope.CLUSTER].append(np.asarray([2**61 if most is None else most]))
    places = {Scope.RANK: ranks, Scope.MACHINE: len(instance.machines), Scope.CLUSTER: 1}
    return [
        np.stack(limits[s], axis=1) if limits[s] else np.zeros((places[s], 0), dtype=np.int64)
        for s in Scope
    ]


@lru_cache(maxsize=1)
def lowered(instance: Instance) -> Lowered:
    """The instance as arrays, cached for the next call with the same instance."""
    return Lowered(instance)


def _packed(numbers: dict[int, int], sections: dict[int, object]) -> IntArray:
    """A single array: numbers, then the beginnings of sections, then the sections."""
    flat = {k: np.asarray(v, dtype=np.int64).ravel() for k, v in sections.items()}
    array = np.zeros(_HEADER + sum(len(v) for v in flat.values()), dtype=np.int64)
    at = _HEADER
    for name, values in flat.items():
        array[name], array[at : at + len(values)] = at, values
        at += len(values)
    for name, value in numbers.items():
        array[name] = value
    array[ASSIGNMENTS], array[STATE] = len(flat[PLACE]), len(array) - array[LOAD]
    return array


def replicated(state: IntArray, count: int) -> IntArray:
    """A state in which a replica's own sections are repeated ``count`` times."""
    own = state[len(state) - int(state[STATE]) :]
    return np.concatenate([state, np.tile(own, count - 1)])
