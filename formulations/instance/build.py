"""Assemble an Instance table by table, and validate it once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from formulations.errors import InstanceError
from formulations.instance import (
    Current,
    Instance,
    IntArray,
    Objective,
    Pin,
    Resource,
    Scope,
    Where,
)
from formulations.instance.strict_json import shown
from formulations.instance.validate import validate


@dataclass(frozen=True)
class Shard:
    """Resource use and cost of one shard, or of each in a run of ``repeat`` equal shards.

    Attributes
    ----------
    use : mapping of resource name to int
        0 for names that are missing.
    cost : sequence of int [phases]
    repeat : int
        Run length.
    move_bytes : int
        Bytes that move when the table moves.
    """

    use: Mapping[str, int] = field(default_factory=dict)
    cost: Sequence[int] = ()
    repeat: int = 1
    move_bytes: int = 0


@dataclass(frozen=True)
class Block:
    """Shards of one option that are placed together.

    Attributes
    ----------
    where : Where or sequence of int
        Kind of place, or a list of ranks.
    shards : sequence of Shard
        One that all positions share, or one for each position; equal neighbours are stored as one
        entry.
    count : int
        See :class:`formulations.instance.BlockView`.
    distinct : bool, optional
        Default: True for ``ONE_MACHINE``, else False.
    among : sequence of int, optional
        Ranks (machines for the machine kinds) allowed.
    """

    where: Where | Sequence[int]
    shards: Sequence[Shard]
    count: int = 1
    distinct: bool | None = None
    among: Sequence[int] | None = None


class InstanceBuilder:
    """Collect tables and options; :meth:`build` returns a validated Instance.

    Parameters
    ----------
    machines : sequence of sequences of int
        Partition of the ranks.
    phases : sequence of str
    resources : sequence of (name, scope, capacity)
        ``capacity`` is one integer for all places, or one for each.
    objective : Objective
    hidden : sequence of int [phases], optional
        Time of each phase that other work hides; for ``pipelined_step`` alone, where it is 0 by
        default.
    """

    def __init__(
        self,
        machines: Sequence[Sequence[int]],
        phases: Sequence[str],
        resources: Sequence[tuple[str, Scope | str, int | Sequence[int]]],
        objective: Objective | str = Objective.STEP_TIME,
        name: str = "instance",
        source: str = "",
        hidden: Sequence[int] | None = None,
    ) -> None:
        self._machines = tuple(tuple(int(r) for r in m) for m in machines)
        self._phases = tuple(phases)
        self._objective = Objective(objective)
        self._name, self._source = name, source
        if hidden is None:
            hidden = [0] * len(phases) * (self._objective == Objective.PIPELINED_STEP)
        self._hidden = tuple(hidden)
        self._resources = tuple(self._resource(*r) for r in resources)
        self._column = {r.name: i for i, r in enumerate(self._resources)}
        if len(self._column) != len(self._resources):
            raise InstanceError("resources: a name appears twice")
        self._tables: list[str] = []
        self._table_options: list[int] = [0]
        self._options: list[str] = []
        self._option_blocks: list[int] = [0]
        self._groups: dict[str, int] = {}
        self._fusion: list[tuple[int, int]] = []
        self._blocks: list[tuple[int, int, bool, int]] = []
        self._block_shards: list[int] = [0]
        self._place_sets: dict[tuple[int, ...], int] = {}
        self._use: list[list[int]] = []
        self._cost: list[Sequence[int]] = []
        self._repeat: list[int] = []
        self._move: list[int] = []
        self._last: tuple[list[int], list[int], int] | None = None

    def _resource(self, name: str, scope: Scope | str, capacity: int | Sequence[int]) -> Resource:
        scope = Scope(scope)
        ranks = sum(len(m) for m in self._machines)
        places = {Scope.RANK: ranks, Scope.MACHINE: len(self._machines), Scope.CLUSTER: 1}[scope]
        if isinstance(capacity, (int, np.integer)):
            capacity = [int(capacity)] * places
        return Resource(name, scope, np.asarray(list(capacity), dtype=np.int64))

    def add_table(self, name: str) -> int:
        """Start a table, to which the options added next belong. Returns its index."""
        self._tables.append(name)
        self._table_options.append(len(self._options))
        return len(self._tables) - 1

    def add_option(
        self, name: str, blocks: Sequence[Block], fusion: tuple[str, int] | None = None
    ) -> int:
        """Add an option to the table started last. Returns its global index.

        Raises
        ------
        InstanceError
            When there is no table yet, or a shard has unknown resources or too few costs.
        """
        if not self._tables:
            raise InstanceError(f"option {name!r} comes before any table")
        for block in blocks:
            self._add_block(block)
        self._options.append(name)
        self._option_blocks.append(len(self._blocks))
        self._table_options[-1] = len(self._options)
        group, level = fusion if fusion is not None else (None, 0)
        index = -1 if group is None else self._groups.setdefault(group, len(self._groups))
        self._fusion.append((index, level))
        return len(self._options) - 1

    def _add_block(self, block: Block) -> None:
        places: Sequence[int] | None = block.among
        if isinstance(block.where, Where):
            where = block.where
        else:
            where, places = Where.LIST, block.where
        distinct = where == Where.ONE_MACHINE if block.distinct is None else block.distinct
        index = -1
        if places is not None:
            key = tuple(int(p) for p in places)
            index = self._place_sets.setdefault(key, len(self._place_sets))
        for shard in block.shards:
            self._add_shard(shard)
        self._blocks.append((int(where), block.count, distinct, index))
        self._block_shards.append(len(self._repeat))

    def _add_shard(self, shard: Shard) -> None:
        row = [0] * len(self._column)
        for name, amount in shard.use.items():
            if name not in self._column:
                known = ", ".join(self._column) or "none"
                raise InstanceError(f"unknown resource {shown(name)}; the instance has: {known}")
            row[self._column[name]] = amount
        if len(shard.cost) != len(self._phases):
            raise InstanceError(
                f"a shard of table {self._tables[-1]!r} has {len(shard.cost)} costs, "
                f"the instance {len(self._phases)} phases"
            )
        alike = (row, list(shard.cost), shard.move_bytes)
        if len(self._repeat) > self._block_shards[-1] and alike == self._last:
            self._repeat[-1] += shard.repeat
            return
        self._last = alike
        self._use.append(row)
        self._cost.append(shard.cost)
        self._repeat.append(shard.repeat)
        self._move.append(shard.move_bytes)

    def build(
        self,
        pins: Sequence[Pin] = (),
        forbidden: Sequence[tuple[int, int]] = (),
        current: Sequence[Current] = (),
        max_moved_tables: int | None = None,
        max_moved_bytes: int | None = None,
        reference: Sequence[dict[str, object]] = (),
    ) -> Instance:
        """Build the Instance.

        Raises
        ------
        InstanceError
            When :func:`formulations.instance.validate.validate` finds anything wrong.
        """
        blocks = np.asarray(self._blocks, dtype=np.int64).reshape(-1, 4)
        fusion = np.asarray(self._fusion, dtype=np.int64).reshape(-1, 2)
        instance = Instance(
            name=self._name,
            source=self._source,
            machines=self._machines,
            phases=self._phases,
            objective=self._objective,
            resources=self._resources,
            table_names=tuple(self._tables),
            option_names=tuple(self._options),
            fusion_groups=tuple(self._groups),
            table_options=np.asarray(self._table_options, dtype=np.int64),
            option_blocks=np.asarray(self._option_blocks, dtype=np.int64),
            option_group=fusion[:, 0].copy(),
            option_level=fusion[:, 1].copy(),
            block_where=blocks[:, 0].astype(np.int8),
            block_count=blocks[:, 1].copy(),
            block_distinct=blocks[:, 2].astype(bool),
            block_places=blocks[:, 3].copy(),
            place_sets=tuple(self._place_sets),
            block_shards=np.asarray(self._block_shards, dtype=np.int64),
            shard_repeat=np.asarray(self._repeat, dtype=np.int64),
            shard_use=_table(self._use, len(self._resources)),
            shard_cost=_table(self._cost, len(self._phases)),
            shard_move=np.asarray(self._move, dtype=np.int64),
            pins=tuple(pins),
            forbidden=tuple(forbidden),
            current=tuple(current),
            max_moved_tables=max_moved_tables,
            max_moved_bytes=max_moved_bytes,
            hidden=self._hidden,
            reference=tuple(reference),
        )
        validate(instance)
        return instance


def _table(rows: Sequence[Sequence[int]], columns: int) -> IntArray:
    """Rows as a two-dimensional array, also if there are no rows or columns."""
    return np.asarray(rows, dtype=np.int64).reshape(len(rows), columns)
