"""The Plan: what the answer of a formulation means for tables, ranks and rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from formulations.check import Verdict, check
from formulations.instance import Instance
from formulations.outcome import Outcome
from formulations.placement import Placement
from milp_planner.costs.dynamicemb_storage import runtime_value_bytes
from milp_planner.costs.profile import Profile
from milp_planner.costs.units import ceil_div
from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.model import Model
from milp_planner.inputs.table import Table
from milp_planner.options.choice import BY_MACHINE, WHOLE_ROWS, Choice, kernel_of
from milp_planner.options.options import Options
from milp_planner.placed import PlacedShard, PlacedTable


@dataclass(frozen=True, eq=False)
class Plan:
    """A placement of every table, with everything that verifies and explains it.

    Attributes
    ----------
    model, cluster, profile
        What was planned, and the prices.
    instance : Instance
    outcome : Outcome
        Without a placement when none was found; ``tables`` is then empty.
    tables : tuple of PlacedTable
        In the order of the model.
    """

    model: Model
    cluster: Cluster
    profile: Profile
    instance: Instance
    outcome: Outcome
    tables: tuple[PlacedTable, ...]

    @cached_property
    def _index(self) -> dict[str, int]:
        return {table.name: i for i, table in enumerate(self.tables)}

    def table(self, name: str) -> PlacedTable:
        """The placed table of that name (KeyError when there is none)."""
        return self.tables[self._index[name]]

    @cached_property
    def verdict(self) -> Verdict | None:
        """The solver-free check of the placement, None without one."""
        placement = self.outcome.placement
        return None if placement is None else check(self.instance, placement)

    def shards(self, name: str) -> list[PlacedShard]:
        """Every shard of a table: its rank, rows, columns, bytes and picoseconds.

        Raises
        ------
        KeyError
            When the plan has no table of that name.
        """
        index = self._index[name]
        placement = self.outcome.placement
        assert placement is not None
        spec, placed = self.model.table(name), self.tables[index]
        return [
            self._shard(spec, placed, entry, rank, position)
            for position, (entry, rank) in enumerate(_positions(self.instance, placement, index))
        ]

    def _shard(
        self, spec: Table, placed: PlacedTable, entry: int, rank: int, position: int
    ) -> PlacedShard:
        instance = self.instance
        use = dict(zip((r.name for r in instance.resources), instance.shard_use[entry].tolist(),
                       strict=True))  # fmt: skip
        group = len(self._machine_of(rank)) if placed.sharding_type in BY_MACHINE else 0
        if placed.sharding_type == "row_wise":
            group = instance.num_ranks
        return PlacedShard(
            rank=rank,
            rows=_row_range(spec, placed, group, position),
            columns=_column_range(spec, placed, group, position),
            use=use,
            cost=tuple(instance.shard_cost[entry].tolist()),
        )

    def _machine_of(self, rank: int) -> tuple[int, ...]:
        return self.instance.machines[int(self.instance.machine_of[rank])]


def decode(options: Options, instance: Instance, outcome: Outcome) -> Plan:
    """What an Outcome means: sharding type, mode, ratio, routing and ranks of every table.

    Parameters
    ----------
    options : Options
        What ``instance`` was compiled from.
    instance : Instance
    outcome : Outcome

    Returns
    -------
    Plan
    """
    placement = outcome.placement
    tables = () if placement is None else tuple(_placed_tables(options, placement))
    return Plan(options.model, options.cluster, options.profile, instance, outcome, tables)


def _placed_tables(options: Options, placement: Placement) -> Iterator[PlacedTable]:
    cpu_only = all(rank.hbm_bytes == 0 for rank in options.cluster.ranks)
    for index, table in enumerate(options.model.tables):
        option = int(placement.options[index])
        choice = options.choices[option]
        ranks = tuple(tuple(block) for block in placement.to_lists(index))
        dynamic = table.kind == "dynamicemb"
        yield PlacedTable(
            name=table.name,
            option=options.names[option],
            kind=table.kind,
            sharding_type=choice.sharding,
            mode=choice.mode,
            kernel=kernel_of(table.kind, choice.sharding, choice.mode, cpu_only),
            cache_ratio=choice.ratio,
            dist_type=choice.dist_type,
            column_shards=choice.columns,
            column_width=choice.width,
            fusion_group=options.group_of(option),
            fusion_caching=choice.caching_group,
            capacity_per_rank=_capacity(table, options) if dynamic else None,
            hbm_for_values=_hbm_for_values(table, options, choice) if dynamic else None,
            ranks=ranks,
        )


def _capacity(table: Table, options: Options) -> int:
    """Rows a rank of a dynamicemb table: ceil(rows / ranks), up to its bucket capacity."""
    room = -(-table.rows // options.cluster.num_ranks)
    return int(ceil_div(room, table.bucket_capacity)) * table.bucket_capacity


def _hbm_for_values(table: Table, options: Options, choice: Choice) -> int:
    """``local_hbm_for_values`` of one rank: the ratio's share of the value bytes, rounded up."""
    training = options.model.workload.mode == "training"
    optimizer = table.optimizer if training else "none"
    row = runtime_value_bytes(table.dim, table.element_bytes, optimizer)
    ratio = choice.ratio
    return -(-_capacity(table, options) * row * ratio.numerator // ratio.denominator)


def _positions(instance: Instance, placement: Placement, table: int) -> Iterator[tuple[int, int]]:
    """Shard entry and rank of every position of a table, block after block."""
    from formulations.check import position_entries

    for index, ranks in zip(
        instance.blocks_of(int(placement.options[table])), placement.ranks[table], strict=True
    ):
        entries = position_entries(instance, instance.block(index), ranks)
        yield from zip(entries.tolist(), ranks.tolist(), strict=True)


def _row_range(
    spec: Table, placed: PlacedTable, group: int, position: int
) -> tuple[int, int] | None:
    """Rows of a shard as (start, stop); None where a hash or remainder picks them."""
    if placed.kind == "dynamicemb" and placed.dist_type != "continuous":
        return None
    if placed.sharding_type in WHOLE_ROWS or placed.sharding_type == "data_parallel":
        return (0, spec.rows)
    block = -(-spec.rows // group)
    start = min(block * (position % group), spec.rows)
    return (start, min(start + block, spec.rows))


def _column_range(spec: Table, placed: PlacedTable, group: int, position: int) -> tuple[int, int]:
    """Columns of a shard as (start, stop)."""
    if placed.column_shards == 1:
        return (0, spec.dim)
    index = position // group if placed.sharding_type == "grid_shard" else position
    start = placed.column_width * index
    return (start, min(start + placed.column_width, spec.dim))
