"""The Instance: everything the mathematics knows about a problem, as NumPy arrays of integers.

Tables consist of options, options of blocks, and blocks of shard entries. The members of each are a
contiguous run of the next level (CSR offsets), so 5,000 tables with every option on 1,024 ranks
take a few hundred megabytes. Costs are integers in the instance's time unit (picoseconds), uses are
integers (bytes).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from formulations.instance.fingerprint import fingerprint

IntArray = NDArray[np.int64]

#: Sums of costs and of uses must stay below this (CP-SAT's limit on activities, and int64).
MAX_ACTIVITY = 2**62
#: A single number in an instance file must stay below this (exact in every JSON reader).
MAX_VALUE = 2**53


class Scope(StrEnum):
    """The kind of place that each capacity of a resource applies to."""

    RANK = "rank"
    MACHINE = "machine"
    CLUSTER = "cluster"


class Objective(StrEnum):
    """The quantity to minimise; see :func:`formulations.result.check.objectives`."""

    TOTAL = "total"
    BUSIEST_RANK = "busiest_rank"
    STEP_TIME = "step_time"
    PIPELINED_STEP = "pipelined_step"


class Where(IntEnum):
    """Where the shards of a block may lie."""

    EVERY_RANK = 0
    ANY_RANK = 1
    ONE_MACHINE = 2
    ANY_RANK_OF_ONE_MACHINE = 3
    LIST = 4
    CLUSTER = 5


@dataclass(frozen=True)
class Resource:
    """A resource with a capacity at every place of its scope.

    Attributes
    ----------
    name : str
        Such as ``hbm`` or ``ddr``.
    scope : Scope
        One capacity for each rank, for each machine, or one for the cluster.
    capacity : int64 array [places]
        Bytes (any integer unit).
    """

    name: str
    scope: Scope
    capacity: IntArray


@dataclass(frozen=True)
class Pin:
    """An option of a table, and optionally its ranks, required by the user.

    Attributes
    ----------
    table, option : int
        Indices in the instance (``option`` is global).
    ranks : tuple of tuples, optional
        Ranks of each block, compared as multisets; None leaves them free.
    """

    table: int
    option: int
    ranks: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True)
class Current:
    """A table's placement in production, relative to which moves are counted.

    ``option`` is a global index, or -1 when the option no longer exists (the table must move).
    """

    table: int
    option: int
    ranks: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class BlockView:
    """One block of an Instance.

    Attributes
    ----------
    index : int
        Index of the block in the instance.
    where : Where
    count : int
        Shards (``ANY_RANK``, ``ANY_RANK_OF_ONE_MACHINE``, ``CLUSTER``) or machines
        (``ONE_MACHINE``); 1 otherwise.
    distinct : bool
        Whether shards sit on different ranks (machines of ``ONE_MACHINE`` differ).
    places : tuple of int or None
        The ranks of a ``LIST``; the ranks (or machines) allowed by ``among``; None: all.
    entries : int64 array
        Shard entry of every position; a single element when all positions share one.
    """

    index: int
    where: Where
    count: int
    distinct: bool
    places: tuple[int, ...] | None
    entries: IntArray

    @property
    def shared(self) -> bool:
        """Whether every position has the same shard entry."""
        return len(self.entries) == 1

    @property
    def everywhere(self) -> bool:
        """Whether the block has a shard on every rank."""
        return self.where == Where.EVERY_RANK

    @property
    def unplaced(self) -> bool:
        """Whether the block lies on no rank."""
        return self.where == Where.CLUSTER

    @property
    def free(self) -> bool:
        """Whether each of its shards chooses a rank."""
        return self.where in (Where.ANY_RANK, Where.ANY_RANK_OF_ONE_MACHINE)

    @property
    def whole(self) -> bool:
        """Whether the block has a shard on every rank of the machines that it chooses."""
        return self.where == Where.ONE_MACHINE

    @property
    def by_machine(self) -> bool:
        """Whether the block chooses machines."""
        return self.whole or self.where == Where.ANY_RANK_OF_ONE_MACHINE

    @property
    def settled(self) -> bool:
        """Whether there is no choice of place."""
        return not (self.free or self.whole)

    def entry(self, position: int) -> int:
        """Shard entry of a position."""
        return int(self.entries[0] if self.shared else self.entries[position])


@dataclass(frozen=True, eq=False)
class Instance:
    """Tables with options, places with capacities, an objective, and constraints.

    Build one with :class:`formulations.instance.build.InstanceBuilder` or read one with
    :func:`formulations.instance.file.read_instance`; both validate.

    Attributes
    ----------
    machines : tuple of tuples of int
        Partition of the ranks ``0 … num_ranks-1``.
    phases : tuple of str
        Names of the cost columns.
    hidden : tuple of int
        Time of each phase that other work hides, under ``pipelined_step`` alone: the phase costs
        what its busiest rank takes beyond it.
    table_options : int64 array [tables + 1]
        Options of table t are ``table_options[t] … table_options[t+1]-1``.
    option_blocks : int64 array [options + 1]
        Blocks of each option, likewise.
    option_group : int64 array [options]
        Fusion group, or -1 for none.
    option_level : int64 array [options]
        Level in that group; 0 where there is none.
    block_where, block_count, block_distinct, block_places : arrays [blocks]
        See :class:`BlockView`; ``block_places`` indexes ``place_sets``, -1 for all.
    block_shards : int64 array [blocks + 1]
        Shard entries of each block, likewise.
    shard_repeat, shard_move : int64 array [entries]
        Run length; bytes that move when the table moves.
    shard_use : int64 array [entries, resources]
    shard_cost : int64 array [entries, phases]
    """

    name: str
    source: str
    machines: tuple[tuple[int, ...], ...]
    phases: tuple[str, ...]
    objective: Objective
    resources: tuple[Resource, ...]
    table_names: tuple[str, ...]
    option_names: tuple[str, ...]
    fusion_groups: tuple[str, ...]
    table_options: IntArray
    option_blocks: IntArray
    option_group: IntArray
    option_level: IntArray
    block_where: NDArray[np.int8]
    block_count: IntArray
    block_distinct: NDArray[np.bool_]
    block_places: IntArray
    place_sets: tuple[tuple[int, ...], ...]
    block_shards: IntArray
    shard_repeat: IntArray
    shard_use: IntArray
    shard_cost: IntArray
    shard_move: IntArray
    pins: tuple[Pin, ...] = ()
    forbidden: tuple[tuple[int, int], ...] = ()
    current: tuple[Current, ...] = ()
    max_moved_tables: int | None = None
    max_moved_bytes: int | None = None
    hidden: tuple[int, ...] = ()
    time_unit: str = "ps"
    reference: tuple[dict[str, object], ...] = field(default=(), compare=False)

    @property
    def num_ranks(self) -> int:
        """Ranks in the cluster."""
        return len(self.machine_of)

    @property
    def num_tables(self) -> int:
        """Tables to place."""
        return len(self.table_names)

    @property
    def num_options(self) -> int:
        """Number of options of all tables."""
        return len(self.option_names)

    @property
    def num_blocks(self) -> int:
        """Number of blocks of all options."""
        return len(self.block_where)

    @property
    def by_phase(self) -> bool:
        """Whether the objective has a peak for each phase, and not one for all or none."""
        return self.objective in (Objective.STEP_TIME, Objective.PIPELINED_STEP)

    @cached_property
    def hidden_time(self) -> IntArray:
        """Time of each phase that does not count, int64 array [phases]; 0 unless the objective is
        ``pipelined_step``."""
        if self.objective == Objective.PIPELINED_STEP:
            return np.asarray(self.hidden, dtype=np.int64)
        return np.zeros(len(self.phases), dtype=np.int64)

    @cached_property
    def bare_phases(self) -> NDArray[np.bool_]:
        """Phases of which nothing is hidden, bool array [phases]: no rank takes longer in all of
        them together than the objective."""
        return np.asarray(self.hidden_time == 0)

    @cached_property
    def machine_of(self) -> IntArray:
        """Machine of each rank, int64 array [ranks]."""
        owner = np.empty(sum(len(m) for m in self.machines), dtype=np.int64)
        for index, ranks in enumerate(self.machines):
            owner[list(ranks)] = index
        return owner

    @cached_property
    def table_of(self) -> IntArray:
        """Table of each option, int64 array [options]."""
        return np.repeat(np.arange(self.num_tables), np.diff(self.table_options))

    @cached_property
    def option_of(self) -> IntArray:
        """Option of each block, int64 array [blocks]."""
        return np.repeat(np.arange(self.num_options), np.diff(self.option_blocks))

    @cached_property
    def allowed(self) -> NDArray[np.bool_]:
        """Options that pins and ``forbidden`` allow, bool array [options]."""
        mask = np.ones(self.num_options, dtype=bool)
        for _, option in self.forbidden:
            mask[option] = False
        for pin in self.pins:
            keep = mask[pin.option]
            mask[self.table_options[pin.table] : self.table_options[pin.table + 1]] = False
            mask[pin.option] = keep
        return mask

    @cached_property
    def everywhere(self) -> NDArray[np.bool_]:
        """Blocks with a shard on every rank, bool array [blocks]."""
        return self.block_where == Where.EVERY_RANK

    @cached_property
    def unplaced(self) -> NDArray[np.bool_]:
        """Blocks on no rank, bool array [blocks]."""
        return self.block_where == Where.CLUSTER

    @cached_property
    def whole(self) -> NDArray[np.bool_]:
        """Blocks with a shard on every rank of the machines that they choose, bool array
        [blocks]."""
        return self.block_where == Where.ONE_MACHINE

    @cached_property
    def settled(self) -> NDArray[np.bool_]:
        """Blocks without a choice of place, bool array [blocks]."""
        return ~(self.free | self.whole)

    @cached_property
    def listed(self) -> NDArray[np.bool_]:
        """Blocks with a shard on every rank of a list, bool array [blocks]."""
        return self.block_where == Where.LIST

    @cached_property
    def free(self) -> NDArray[np.bool_]:
        """Blocks each of whose shards chooses a rank, bool array [blocks]."""
        return np.isin(self.block_where, (Where.ANY_RANK, Where.ANY_RANK_OF_ONE_MACHINE))

    @cached_property
    def by_machine(self) -> NDArray[np.bool_]:
        """Blocks whose places are machines, bool array [blocks]."""
        return self.whole | (self.block_where == Where.ANY_RANK_OF_ONE_MACHINE)

    @cached_property
    def off_rank(self) -> NDArray[np.bool_]:
        """Shard entries that lie on no rank, bool array [entries]."""
        return np.repeat(self.unplaced, np.diff(self.block_shards))

    def settled_ranks(self, block: int) -> IntArray | None:
        """Ranks of a block without a choice of place; None if there is a choice."""
        if not self.settled[block]:
            return None
        if self.everywhere[block]:
            return np.arange(self.num_ranks)
        if self.unplaced[block]:
            return np.empty(0, dtype=np.int64)
        return self.places(block)

    def places(self, block: int) -> IntArray:
        """Ranks or, where a block's places are machines, machines that it may take."""
        index = int(self.block_places[block])
        if index < 0:
            return np.arange(len(self.machines) if self.by_machine[block] else self.num_ranks)
        return np.asarray(self.place_sets[index], dtype=np.int64)

    @property
    def limits_moves(self) -> bool:
        """Whether moves against the current plan are limited."""
        return self.max_moved_tables is not None or self.max_moved_bytes is not None

    @cached_property
    def _table_index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.table_names)}

    def table_index(self, name: str) -> int:
        """Index of a table by name (KeyError if there is none of that name)."""
        return self._table_index[name]

    def option_index(self, table: int, name: str) -> int:
        """Global index of a table's option by name (KeyError if there is none of that name)."""
        for option in self.options_of(table):
            if self.option_names[option] == name:
                return option
        raise KeyError(name)

    def options_of(self, table: int) -> range:
        """Global option indices of a table."""
        return range(int(self.table_options[table]), int(self.table_options[table + 1]))

    def blocks_of(self, option: int) -> range:
        """Global block indices of an option."""
        return range(int(self.option_blocks[option]), int(self.option_blocks[option + 1]))

    def block(self, index: int) -> BlockView:
        """One block, with one shard entry for each position (or a single shared one)."""
        lo, hi = int(self.block_shards[index]), int(self.block_shards[index + 1])
        entries = np.arange(lo, hi)
        if hi - lo > 1:
            entries = np.repeat(entries, self.shard_repeat[lo:hi])
        places = int(self.block_places[index])
        return BlockView(
            index=index,
            where=Where(int(self.block_where[index])),
            count=int(self.block_count[index]),
            distinct=bool(self.block_distinct[index]),
            places=None if places < 0 else self.place_sets[places],
            entries=entries,
        )

    def positions(self, block: BlockView) -> int:
        """Number of positions, that is, shards, of a block.

        For ``ONE_MACHINE`` with machines of unequal size it depends on the machine chosen; here it
        is that of the first allowed machine.
        """
        settled = self.settled_ranks(block.index)
        if settled is not None and not block.unplaced:
            return len(settled)
        if block.whole:
            first = block.places[0] if block.places else 0
            return block.count * len(self.machines[first])
        return block.count

    @cached_property
    def fingerprint(self) -> str:
        """See :func:`formulations.instance.fingerprint.fingerprint`."""
        return fingerprint(self)
