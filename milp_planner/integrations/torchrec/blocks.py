"""A TorchRec ShardingOption as the blocks of an Instance's option.

The positions of an option's blocks, one block after another, are its shards in TorchRec's order.
The places allowed for each kind follow TorchRec 1.8.0's ``GreedyPerfPartitioner``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from torchrec.distributed.planner.types import Shard as TorchShard
from torchrec.distributed.planner.types import ShardingOption, Topology

from formulations import Block, Scope, Shard, Where
from milp_planner.errors import BadInput
from milp_planner.inputs.problems import choice
from milp_planner.integrations.torchrec.rating import Phased, whole_bytes
from milp_planner.integrations.torchrec.stash import STASH, UNLIMITED, stashed_bytes

Together = Sequence[Sequence[str]]


def groups_of(together: Together, tables: Mapping[str, Sequence[ShardingOption]]) -> dict[str, int]:
    """The group of each table that is in one.

    BadInput for unknown tables, tables in two groups, groups of fewer than two, tables of towers.
    """
    found: dict[str, int] = {}
    for index, group in enumerate(together):
        if isinstance(group, str) or len(set(group)) < 2:
            raise BadInput(f"together: found {group!r}; allowed: two different tables or more")
        for name in group:
            if name not in tables:
                raise BadInput(f"together: unknown table {name!r}; {choice(name, tables)}")
            if name in found:
                raise BadInput(f"together: table {name!r} is named twice")
            if any(option.dependency for option in tables[name]):
                raise BadInput(
                    f"together: table {name!r} is in a tower, which already shares a host"
                )
            found[name] = index
    return found


def whole(table: str, options: Sequence[ShardingOption]) -> list[ShardingOption]:
    """Options that put the whole table on one rank; BadInput if it has none."""
    kept = [o for o in options if o.partition_by == "device" and len(o.shards) == 1]
    if not kept:
        raise BadInput(f"together: table {table!r} has no option on a single rank (table_wise)")
    return kept


DdrScope = Literal["rank", "machine"]
Capacity = tuple[str, Scope, list[int]]

#: Name of the extra resource that keeps shards off ranks whose reservations exceed their memory.
USABLE = "usable"


@dataclass(frozen=True)
class Places:
    """Where shards may be placed, and the capacities there."""

    machines: tuple[tuple[int, ...], ...]
    """Partition of the ranks. Hosts (``local_world_size`` ranks) if DDR is pooled by machine, else
    the groups on which TorchRec places machine-bound shards."""
    groups: tuple[tuple[int, ...], ...]
    """Runs of ``intra_group_size`` ranks (a host, or a pod of hosts): where table_row_wise and
    table_column_wise shards go. A remainder shorter than a group takes none."""
    resources: tuple[Capacity, ...]
    usable: bool
    """Whether every rank can hold something; if not, each shard takes one unit of :data:`USABLE`,
    and ranks overbooked by reservations have none."""

    @property
    def ranks(self) -> int:
        """Ranks in the topology."""
        return sum(len(machine) for machine in self.machines)

    @property
    def groups_are_machines(self) -> bool:
        """Whether the groups are exactly the machines, so that machine kinds can name them."""
        return self.groups == self.machines


def places(
    topology: Topology, ddr: DdrScope = "rank", with_ssd: bool = False, with_stash: bool = False
) -> Places:
    """Read machines and capacities from a Topology (after reservations), device by device.

    DDR counts by ``rank``, which is TorchRec's own rule, or by ``machine``, which pools the DDR of
    a host's ranks; SSD is read only if some shard uses it. Stashed weights have no limit.
    """
    group, host = topology.intra_group_size, topology.local_world_size
    world = topology.world_size
    tiers = ("hbm", "ddr", "ssd") if with_ssd else ("hbm", "ddr")
    storage = [device.storage for device in topology.devices]
    free = {tier: [math.floor(getattr(s, tier)) for s in storage] for tier in tiers}
    machines = _runs(world, host if ddr == "machine" else group)
    resources: list[Capacity] = []
    for tier in tiers:
        per_rank = [max(0, amount) for amount in free[tier]]
        if tier == "ddr" and ddr == "machine":
            pooled = [max(0, sum(free[tier][r] for r in machine)) for machine in machines]
            resources.append((tier, Scope.MACHINE, pooled))
        else:
            resources.append((tier, Scope.RANK, per_rank))
    if with_stash:
        resources.append((STASH, Scope.RANK, [UNLIMITED] * world))
    overbooked = [any(free[tier][rank] < 0 for tier in tiers) for rank in range(world)]
    if any(overbooked):
        resources.append((USABLE, Scope.RANK, [0 if bad else 2**40 for bad in overbooked]))
    return Places(
        machines=machines,
        groups=tuple(run for run in _runs(world, group) if len(run) == group),
        resources=tuple(resources),
        usable=not any(overbooked),
    )


def _runs(world: int, size: int) -> tuple[tuple[int, ...], ...]:
    starts = range(0, world, size)
    return tuple(tuple(range(start, min(start + size, world))) for start in starts)


Group = tuple[int, ...]


def blocks(
    option: ShardingOption, where: Places, rating: Phased, group: Group | None = None
) -> list[Block]:
    """Blocks of one option whose storage and perf are estimated.

    ``group`` confines a machine-placed option to these ranks (for tables that must share a machine,
    or groups that are not the Instance's machines), or a single shard to one rank. BadInput, naming
    the table, for estimates that are not numbers, shard counts that do not match the topology, and
    shapes an Instance cannot express.
    """
    kind = option.partition_by
    if kind == "uniform":
        return [_uniform(option, where, rating)]
    if kind == "device" and group is not None:
        return [Block(group, _entries(option, option.shards, where, rating))]
    if kind == "device":
        return [_any_rank(option, where, rating)]
    if kind == "host":
        return [_host(option, where, rating, group)]
    if kind == "multi_host":
        return _grid(option, where, rating)
    raise _refuse(option, f"its shards are partitioned by {kind!r}", "uniform, device, host")


def _uniform(option: ShardingOption, where: Places, rating: Phased) -> Block:
    _count(option, where.ranks)
    return Block(Where.EVERY_RANK, _entries(option, option.shards, where, rating))


def _any_rank(option: ShardingOption, where: Places, rating: Phased) -> Block:
    # A key-value table has one store per rank, so its column shards are on different ranks.
    distinct = option.sharding_type == "column_wise" and option.compute_kernel == "key_value"
    entries = _entries(option, option.shards, where, rating)
    return Block(Where.ANY_RANK, entries, count=len(option.shards), distinct=distinct)


def _host(option: ShardingOption, where: Places, rating: Phased, group: Group | None) -> Block:
    by_row = option.sharding_type == "table_row_wise"
    entries = _entries(option, option.shards, where, rating)
    if by_row:
        _count(option, len(where.groups[0]) if where.groups else 0)
    if group is not None:
        if by_row:
            return Block(group, entries)
        return Block(Where.ANY_RANK, entries, count=len(option.shards), among=group)
    among = _among(where)
    if by_row:
        return Block(Where.ONE_MACHINE, entries, among=among)
    if len(where.machines) == 1:
        return Block(Where.ANY_RANK, entries, count=len(option.shards))
    return Block(Where.ANY_RANK_OF_ONE_MACHINE, entries, count=len(option.shards), among=among)


def _grid(option: ShardingOption, where: Places, rating: Phased) -> list[Block]:
    """Column slices, each over a whole machine: different machines, or whole rounds over all.

    TorchRec goes round its machines if there are more slices than machines.
    """
    if not set(where.groups) <= set(where.machines):
        raise _refuse(option, "pods of several hosts with DDR pooled by machine", "ddr='rank'")
    among = _among(where)
    size, machines = len(where.groups[0]), len(where.groups)
    slices, rest = divmod(len(option.shards), size)
    if rest or not slices:
        raise _refuse(option, f"{len(option.shards)} shards", f"a multiple of {size}")
    runs = [option.shards[i * size : (i + 1) * size] for i in range(slices)]
    entries = [_entries(option, run, where, rating) for run in runs]
    if any(entry != entries[0] for entry in entries):
        raise _refuse(option, "column slices that differ in cost", "equal column slices")
    rounds, left = divmod(slices, machines)
    full = [Block(Where.ONE_MACHINE, entries[0], count=machines, among=among)] * rounds
    return full + ([Block(Where.ONE_MACHINE, entries[0], count=left, among=among)] if left else [])


def _among(where: Places) -> list[int] | None:
    """Machines that are whole groups; None when all are."""
    if where.groups_are_machines:
        return None
    return [index for index, machine in enumerate(where.machines) if machine in where.groups]


def _entries(
    option: ShardingOption, shards: Sequence[TorchShard], where: Places, rating: Phased
) -> list[Shard]:
    """One entry for all shards, or runs of equal ones."""
    parts = [_entry(option, shard, where, rating) for shard in shards]
    runs = [(part, len(list(same))) for part, same in groupby(parts)]
    if len(runs) == 1:
        runs = [(runs[0][0], 1)]
    return [
        Shard(dict(use), cost, repeat=repeat, move_bytes=move) for (use, cost, move), repeat in runs
    ]


def _entry(
    option: ShardingOption, shard: TorchShard, where: Places, rating: Phased
) -> tuple[tuple[tuple[str, int], ...], tuple[int, ...], int]:
    if shard.storage is None or shard.perf is None:
        raise _refuse(option, "a shard without estimates", "options from an enumerator")
    known = {name for name, _, _ in where.resources}
    amounts = whole_bytes(shard.storage) | {STASH: stashed_bytes(option, shard)}
    use = {k: v for k, v in amounts.items() if k in known}
    if not where.usable:
        use[USABLE] = 1
    try:
        cost = rating.of(option, shard)
    except ValueError as error:
        raise BadInput(f"table {option.name!r}, {option.sharding_type}: {error}") from None
    rows, columns = shard.size
    return tuple(use.items()), cost, int(rows * columns * option.tensor.element_size())


def _count(option: ShardingOption, expected: int) -> None:
    if len(option.shards) != expected:
        raise _refuse(option, f"{len(option.shards)} shards", f"{expected}, one per rank")


def _refuse(option: ShardingOption, found: str, allowed: str) -> BadInput:
    what = f"{option.sharding_type}/{option.compute_kernel}"
    return BadInput(f"table {option.name!r}, {what}: found {found}; allowed: {allowed}")
