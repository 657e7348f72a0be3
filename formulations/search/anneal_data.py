"""The Instance as flat arrays for compiled loops: what each option puts where, lowered once.

An option is what it puts on every rank, what it puts on fixed ranks, and *seats*: shards (or
whole machines) that still choose a place from a *domain*, a list of ranks or of machines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from formulations.instance import BlockView, Instance, IntArray, Objective, Scope, Where
from formulations.result.check import position_entries
from formulations.result.placement import machine_ranks

#: Kinds of seat: a shard on a rank, the same shard on all ranks of a machine, one shard each.
RANK, MACHINE, UNEVEN_MACHINE = 0, 1, 2


#: Numbers in the one array that compiled loops read: ``a[WIDE]`` rank features, and so on. Features
#: of a rank are the objective's peaks, then resources of scope rank; loads lie rank by rank, then
#: machine by machine, then for the cluster.
(
    PEAKS, WIDE, MACHINE_WIDE, CLUSTER_WIDE, RANKS, MACHINES, TABLES, SEATS, ADMITTED_WIDE,
    MACHINE_LOAD, CLUSTER_LOAD, LOADS, MOVES, RANDOM, TALLY, _VALUE, REPLICA, STATE, GOAL,
) = range(19)  # fmt: skip
#: Sections: ``a[a[NAME] + i]``. By rank or machine; domains of seats; shard entries × features;
#: options; seats; blocks; tables; and the state: loads, limits, choices and places.
(
    MACHINE_OF, MACHINE_START, MACHINE_RANKS, DOMAIN_START, DOMAINS, ADMITTED,
    ENTRY_RANK, ENTRY_MACHINE, ENTRY_CLUSTER,
    EVERY_RANK, EVERY_MACHINE, EVERYWHERE, CLUSTER, FIXED_START, FIXED_RANK, FIXED_ENTRY,
    SEAT_START, GROUP, LEVEL, MOVE_BYTES,
    SEAT_ENTRY, SEAT_KIND, SEAT_BLOCK, SEAT_DOMAIN, SEAT_UNEVEN, UNEVEN,
    DISTINCT, TOGETHER, PINNED,
    STATE_START, HOME_OPTION, HOME,
    LOAD, LIMIT, OPTION, PLACE, GROUP_LEVEL, GROUP_TABLES, MOVED,
    BEST_OPTION, BEST_PLACE, OLD_OPTION, OLD_PLACE, RUINED, REPACKED, PREFERRED,
) = range(19, 65)  # fmt: skip
_HEADER = 65
#: The sections that a replica has of its own: they lie side by side, replica after replica,
#: a[STATE] apart; a[REPLICA] is the one that the names point to.
_OWN = (LOAD, LIMIT, OPTION, PLACE, GROUP_LEVEL, GROUP_TABLES, MOVED)
#: Seats that are packed anew at once, at most.
MOST_REPACKED = 160
_SEAT = (SEAT_ENTRY, SEAT_KIND, SEAT_BLOCK, SEAT_DOMAIN, SEAT_UNEVEN)


class Lowered:
    """An instance as one array for compiled loops, and the way back to placements.

    Attributes
    ----------
    array : int64 array
        Numbers, where sections begin, and the sections; a state is a copy of it.
    peaks : int
        Cost features of a rank.
    """

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self._seats: list[tuple[int, int, int, int, int]] = []
        self._uneven: list[int] = []
        self._fixed: list[tuple[int, int]] = []
        self._domains: dict[tuple[int, ...], int] = {}
        self._together = np.zeros(instance.num_blocks, dtype=bool)
        self._pinned = np.zeros(instance.num_blocks, dtype=bool)
        self._machine_at = {int(r[0]): m for m, r in enumerate(instance.machines)}
        self._pins = {p.option: p.ranks for p in instance.pins if p.ranks is not None}
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
        """Columns of every scope, and the capacities they are held against."""
        instance, cost = self.instance, self.instance.shard_cost
        total = cost.sum(axis=1, keepdims=True)
        step = instance.objective == Objective.STEP_TIME
        summed = instance.objective == Objective.TOTAL
        self.peaks = 0 if summed else cost.shape[1] if step else 1
        columns: dict[Scope, list[IntArray]] = {s: [] for s in Scope}
        limits: dict[Scope, list[IntArray]] = {s: [] for s in Scope}
        ranks = instance.num_ranks
        if summed:
            columns[Scope.CLUSTER].append(total)
            limits[Scope.CLUSTER].append(np.zeros(1, dtype=np.int64))
        else:
            columns[Scope.RANK].append(cost if step else total)
            limits[Scope.RANK] += [np.zeros(ranks, dtype=np.int64)] * self.peaks
        for index, resource in enumerate(instance.resources):
            columns[resource.scope].append(instance.shard_use[:, index : index + 1])
            limits[resource.scope].append(resource.capacity)
        self.moves = -1
        if instance.max_moved_tables is not None or instance.max_moved_bytes is not None:
            self.moves = len(limits[Scope.CLUSTER])
            for most in (instance.max_moved_tables, instance.max_moved_bytes):
                limits[Scope.CLUSTER].append(np.asarray([2**61 if most is None else most]))
                columns[Scope.CLUSTER].append(np.zeros_like(total))
        empty = np.zeros((len(cost), 0), dtype=np.int64)
        self.entry = [np.concatenate([empty, *columns[s]], axis=1) for s in Scope]
        places = {Scope.RANK: ranks, Scope.MACHINE: len(instance.machines), Scope.CLUSTER: 1}
        self.capacity = [
            np.stack(limits[s], axis=1) if limits[s] else np.zeros((places[s], 0), dtype=np.int64)
            for s in Scope
        ]

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
        every, fixed_start, seat_start, move_bytes = self._options()
        sizes, tables = np.diff(seat_start), instance.num_tables
        widest = [int(sizes[list(instance.options_of(t))].max()) for t in range(tables)]
        places = int(sum(widest))
        self.seats = np.asarray(self._seats, dtype=np.int64).reshape(-1, 5)
        fixed = np.asarray(self._fixed, dtype=np.int64).reshape(-1, 2).T
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
            SEAT_START: seat_start, GROUP: instance.option_group, LEVEL: instance.option_level,
            MOVE_BYTES: move_bytes,
            **dict(zip(_SEAT, self.seats.T, strict=True)), UNEVEN: self._uneven,
            DISTINCT: instance.block_distinct, TOGETHER: self._together, PINNED: self._pinned,
            STATE_START: _starts(widest),
            HOME_OPTION: np.full(tables, -2), HOME: np.full(places, -1),
            BEST_OPTION: np.zeros(tables), BEST_PLACE: np.zeros(places),
            OLD_OPTION: np.zeros(tables), OLD_PLACE: np.zeros(places),
            RUINED: np.zeros(8), REPACKED: np.zeros(4 * MOST_REPACKED + 8),
            PREFERRED: np.full(tables, -1),
            LOAD: np.zeros(loads), LIMIT: np.concatenate([a.ravel() for a in self.capacity]),
            OPTION: np.zeros(tables), PLACE: np.zeros(places),
            GROUP_LEVEL: np.zeros(groups), GROUP_TABLES: np.zeros(groups), MOVED: np.zeros(tables),
        }  # fmt: skip

    def _options(self) -> tuple[list[IntArray], list[int], list[int], IntArray]:
        """What options put everywhere, where their fixed shards and seats begin, their moves."""
        instance, options = self.instance, self.instance.num_options
        every = [np.zeros((options, e.shape[1]), dtype=np.int64) for e in self.entry]
        fixed_start, seat_start = [0], [0]
        moves = np.ones((options, 2), dtype=np.int64)
        moves[:, 1] = 0
        for option in range(options):
            pin = self._pins.get(option)
            for index, block in enumerate(instance.blocks_of(option)):
                view = instance.block(block)
                self._block(option, view, None if pin is None else pin[index], every)
                times = instance.positions(view) if view.shared else 1
                moves[option, 1] += int(instance.shard_move[view.entries].sum()) * times
            fixed_start.append(len(self._fixed))
            seat_start.append(len(self._seats))
        return every, fixed_start, seat_start, moves

    def _block(
        self, option: int, view: BlockView, pin: tuple[int, ...] | None, every: list[IntArray]
    ) -> None:
        """What a block of an option puts on every rank, on fixed ranks and on seats."""
        ranks = self._fixed_ranks(view, pin)
        if view.where == Where.EVERY_RANK and view.shared:
            entry = int(view.entries[0])
            every[0][option] += self.entry[0][entry]
            every[1][option] += self.entry[1][entry]
            every[2][option] += self.entry[2][entry] * self.instance.num_ranks
        elif view.where == Where.CLUSTER:
            for position in range(view.count):
                every[2][option] += self.entry[2][view.entry(position)]
        elif ranks is not None:
            entries = position_entries(self.instance, view, ranks)
            self._fixed += zip(ranks.tolist(), entries.tolist(), strict=True)
            every[2][option] += self.entry[2][entries].sum(axis=0)
        elif view.where == Where.ONE_MACHINE:
            kind = MACHINE if view.shared else UNEVEN_MACHINE
            domain = self._domain(view.places or range(len(self.instance.machines)))
            seat = (int(view.entries[0]), kind, view.index, domain, len(self._uneven))
            self._uneven += [] if view.shared else view.entries.tolist()
            self._seats += [seat] * view.count
        else:
            domain = self._rank_domain(view, pin)
            for position in range(view.count):
                entry = view.entry(position)
                self._seats.append((entry, RANK, view.index, domain, 0))
                every[2][option] += self.entry[2][entry]

    def _fixed_ranks(self, view: BlockView, pin: tuple[int, ...] | None) -> IntArray | None:
        """Ranks of a block without a choice; a pinned uneven block may still swap its shards."""
        if view.where == Where.EVERY_RANK:
            return np.arange(self.instance.num_ranks)
        if view.where == Where.LIST:
            return np.asarray(view.places, dtype=np.int64)
        if view.where == Where.CLUSTER:
            return np.empty(0, dtype=np.int64)
        if pin is not None and view.where == Where.ONE_MACHINE:
            return machine_ranks(self.instance, [self._machine_at[r] for r in pin
                                                 if r in self._machine_at])  # fmt: skip
        return np.asarray(pin, dtype=np.int64) if pin is not None and view.shared else None

    def _rank_domain(self, view: BlockView, pin: tuple[int, ...] | None) -> int:
        machines = self.instance.machines
        if pin is not None:
            self._pinned[view.index] = True
            return self._domain(pin)
        if view.where == Where.ANY_RANK:
            return self._domain(view.places or range(self.instance.num_ranks))
        allowed = view.places or range(len(machines))
        if view.count > 1 and len(allowed) > 1:
            self._together[view.index] = True
            return self._domain(allowed)
        return self._domain([r for m in allowed for r in machines[m]])

    def _admitted(self) -> NDArray[np.bool_]:
        places = max(self.instance.num_ranks, len(self.instance.machines))
        admitted = np.zeros((len(self._domains), places), dtype=bool)
        for index, domain in enumerate(self._domains):
            admitted[index, list(domain)] = True
        return admitted

    def _domain(self, places: Iterable[int]) -> int:
        return self._domains.setdefault(tuple(places), len(self._domains))

    def keep(
        self, array: IntArray, name: int, table: int, option: int,
        ranks: Sequence[Sequence[int] | IntArray],
    ) -> bool:  # fmt: skip
        """Note the places of a table's shards, from the ranks of its blocks, in a section; False
        where they are not such as its seats may take."""
        if len(ranks) != len(self.instance.blocks_of(option)):
            return False
        places = self._places(option, ranks)
        low, high = self.view(SEAT_START, self.instance.num_options + 1)[option : option + 2]
        seats, wide = self.seats[low:high], int(self.array[ADMITTED_WIDE])
        if (
            len(places) != len(seats)
            or min(places, default=0) < 0
            or max(places, default=0) >= wide
        ):
            return False
        admitted = self.view(ADMITTED, len(self._domains) * wide)
        fits = admitted[seats[:, 3] * wide + np.asarray(places, dtype=np.int64)] > 0
        if not (fits | self._together[seats[:, 2]]).all():
            return False
        first = int(array[name] + array[array[STATE_START] + table])
        array[first : first + len(places)] = places
        return True

    def _places(self, option: int, ranks: Sequence[Sequence[int] | IntArray]) -> list[int]:
        found: list[int] = []
        for view, taken in zip(self._blocks(option), ranks, strict=True):
            if self._fixed_ranks(view, self._pin(option, view)) is not None:
                continue
            if view.where == Where.ONE_MACHINE:
                taken = [self._machine_at[int(r)] for r in taken if int(r) in self._machine_at]
            found += [int(r) for r in taken]
        return found

    def ranks(self, option: int, places: list[int]) -> list[IntArray]:
        """Ranks of an option's blocks, from the places of its seats."""
        at, result = 0, []
        for view in self._blocks(option):
            fixed = self._fixed_ranks(view, self._pin(option, view))
            if fixed is None:
                taken = places[at : at + view.count]
                at += view.count
                machine = view.where == Where.ONE_MACHINE
                fixed = machine_ranks(self.instance, taken) if machine else np.asarray(taken)
            result.append(fixed)
        return result

    def _blocks(self, option: int) -> list[BlockView]:
        return [self.instance.block(b) for b in self.instance.blocks_of(option)]

    def _pin(self, option: int, view: BlockView) -> tuple[int, ...] | None:
        pin = self._pins.get(option)
        return None if pin is None else pin[view.index - int(self.instance.option_blocks[option])]


def _starts(sizes: Sequence[int]) -> IntArray:
    return np.append(0, np.cumsum(sizes)).astype(np.int64)


@lru_cache(maxsize=1)
def lowered(instance: Instance) -> Lowered:
    """The instance as arrays, kept for whoever asks about the same one next."""
    return Lowered(instance)


def _packed(numbers: dict[int, int], sections: dict[int, object]) -> IntArray:
    """One array of all: numbers, then where sections begin, then the sections."""
    flat = {k: np.asarray(v, dtype=np.int64).ravel() for k, v in sections.items()}
    array = np.zeros(_HEADER + sum(len(v) for v in flat.values()), dtype=np.int64)
    at = _HEADER
    for name, values in flat.items():
        array[name], array[at : at + len(values)] = at, values
        at += len(values)
    for name, value in numbers.items():
        array[name] = value
    array[SEATS], array[STATE] = len(flat[PLACE]), len(array) - array[LOAD]
    return array


def replicated(state: IntArray, count: int) -> IntArray:
    """A state with its own sections ``count`` times."""
    own = state[len(state) - int(state[STATE]) :]
    return np.concatenate([state, np.tile(own, count - 1)])
