"""The Plan: a formulation's placement in terms of tables, ranks and rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from formulations.instance import Instance
from formulations.result.check import Verdict, check
from formulations.result.outcome import Outcome
from formulations.result.placement import Placement
from milp_planner.errors import BadInput
from milp_planner.inputs import quantities
from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.constraints import DistType, Mode, ShardingType
from milp_planner.inputs.model import Model
from milp_planner.inputs.problems import unknown_table
from milp_planner.inputs.spec import Spec, as_tuple
from milp_planner.inputs.table import Kind, Table
from milp_planner.plans.compile import memories
from milp_planner.plans.display import as_html, as_text, to_frame
from milp_planner.plans.divisions import Divisions
from milp_planner.plans.moving import Moving
from milp_planner.pricing.enumeration import enumerations_of
from milp_planner.pricing.options import (
    BY_MACHINE,
    WHOLE_ROWS,
    Choice,
    Options,
    group_name,
)
from milp_planner.pricing.profile import Profile
from milp_planner.pricing.runtimes.registry import home, named
from milp_planner.version import __version__

TierRatio = Annotated[
    Fraction,
    BeforeValidator(quantities.parse_ratio),
    Field(ge=0, le=1),
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}]}),
]
RanksOfBlock = Annotated[tuple[int, ...], BeforeValidator(as_tuple)]


class PlacedTable(Spec):
    """The placement of one table."""

    name: str
    """The table."""
    option: str
    """Name of the chosen option in the Instance."""
    kind: Kind
    """Library that holds the table."""
    sharding_type: ShardingType
    """How it is cut."""
    mode: Mode
    """Memory that holds the rows: HBM_ONLY, HYBRID, CACHING, HOST_ONLY or SSD."""
    kernel: str
    """TorchRec's name of the kernel; ``customized_kernel`` for dynamicemb."""
    cache_ratio: TierRatio
    """Share of the rows in HBM: 1 for HBM_ONLY, 0 for HOST_ONLY."""
    dist_type: DistType | None = None
    """Routing rule of a dynamicemb table."""
    column_shards: int = 1
    """Number of shards that the columns are cut into."""
    column_width: int
    """Columns of a shard (the last one may be narrower)."""
    fusion_group: str | None = None
    """Tables of the same group share one cache ratio; None if the table is not fused."""
    fusion_caching: bool | None = None
    """The ``caching`` flag of that group."""
    stash: bool = False
    """Whether its weights are in host memory between forward and backward."""
    capacity_per_rank: int | None = None
    """Rows of a dynamicemb table that a rank can hold (``max_capacity``)."""
    hbm_for_values: int | None = None
    """Bytes of HBM for values on one rank of a dynamicemb table (``local_hbm_for_values``)."""
    ranks: Annotated[tuple[RanksOfBlock, ...], BeforeValidator(as_tuple)]
    """Ranks of every block, in position order."""


class PlacedShard(NamedTuple):
    """One shard on one rank."""

    rank: int
    rows: tuple[int, int] | None
    columns: tuple[int, int]
    """(start, stop) of each; rows are None if the routing rule scatters them (dynamicemb, unless
    ``continuous``)."""
    use: dict[str, int]
    """Bytes on this rank (HBM) or charged to its machine (DDR), by resource."""
    cost: tuple[int, ...]
    """Picoseconds, by phase."""


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """A placement of every table, with everything that verifies and explains it."""

    model: Model
    cluster: Cluster
    profile: Profile
    """The inputs, and the hardware profile that prices were computed with."""
    instance: Instance
    outcome: Outcome
    """Has no placement if none was found; ``tables`` is then empty."""
    tables: tuple[PlacedTable, ...]
    """In the order of the model."""
    version: str = __version__
    """The milp-planner version that priced it; empty if a file does not say."""
    divisions: Divisions | None = None
    """The other divisions tried, if the division into sharding groups was left open."""
    moving: Moving | None = None
    """Its cost with a price on moves, if one was given."""
    executable: str | None = None
    """The runtime that can execute its moves while training runs, if only such were allowed."""

    def __repr__(self) -> str:
        return as_text(self)

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows."""
        return as_html(self)

    def save(self, path: str | Path) -> Path:
        """Write plan.json, completely or not at all; :func:`milp_planner.read_plan` reads it."""
        from milp_planner.plans.plan_file import write_plan  # imports this module

        return write_plan(self, path)

    def replan(self, *, model: Any = None, cluster: Any = None, **settings: Any) -> Plan:
        """Plan again, starting from this plan, for another model or cluster.

        Parameters
        ----------
        model, cluster : optional
            Objects, paths or names; default: this plan's.
        **settings
            Those of :func:`milp_planner.plan`, such as ``lost``, ``max_moved`` or ``time_limit``.
            The default objective is this plan's.
        """
        from milp_planner import plan  # the public call, on a floor above

        settings.setdefault("objective", self.instance.objective.value)
        model = self.model if model is None else model
        return plan(model, self.cluster if cluster is None else cluster, start=self, **settings)

    def to_frame(self) -> Any:
        """One row per table; see :func:`milp_planner.plans.display.to_frame` (needs pandas)."""
        return to_frame(self)

    def plot(self) -> Any:
        """Time and memory of every rank (needs matplotlib).

        See :func:`milp_planner.plans.display.draw_plan`.
        """
        from milp_planner.plans.display import draw_plan

        return draw_plan(self)

    @property
    def status(self) -> str:
        """``optimal``, ``feasible``, ``infeasible`` or ``unknown``."""
        return self.outcome.status.value

    @property
    def objective_ms(self) -> float | None:
        """The objective in milliseconds; None without a placement."""
        return _milliseconds(self.outcome.objective)

    @property
    def bound_ms(self) -> float | None:
        """Lower bound in milliseconds; None if no bound is known."""
        return _milliseconds(self.outcome.bound)

    @property
    def gap(self) -> float | None:
        """(objective − bound)/objective; None if either is unknown."""
        return self.outcome.gap

    @cached_property
    def _index(self) -> dict[str, int]:
        return {table.name: i for i, table in enumerate(self.tables)}

    def table(self, name: str) -> PlacedTable:
        """The placed table of a name (UnknownName, a KeyError, if there is none)."""
        return self.tables[self._number(name)]

    def _number(self, name: str) -> int:
        if name not in self._index:
            raise unknown_table(name, [*self._index])
        return self._index[name]

    @cached_property
    def verdict(self) -> Verdict | None:
        """The solver-free check of the placement, None without one."""
        placement = self.outcome.placement
        return None if placement is None else check(self.instance, placement)

    def shards(self, name: str) -> list[PlacedShard]:
        """Every shard of a table: its rank, rows, columns, bytes and picoseconds.

        Raises
        ------
        UnknownName
            If the plan has no table of that name: BadInput, and a KeyError.
        """
        index = self._number(name)
        placement = self.outcome.placement
        assert placement is not None
        spec, placed = self.model.table(name), self.tables[index]
        found = _positions(self.instance, placement, index)
        return [
            self._shard(spec, placed, entry, rank, position)
            for position, (entry, rank) in enumerate(found)
        ]

    def _shard(
        self, spec: Table, placed: PlacedTable, entry: int, rank: int, position: int
    ) -> PlacedShard:
        instance = self.instance
        use = {r.name: int(instance.shard_use[entry, i]) for i, r in memories(instance)}
        group = instance.num_ranks if placed.sharding_type == "row_wise" else 0
        if placed.sharding_type in BY_MACHINE:
            group = rows_over(placed)
        return PlacedShard(
            rank=rank,
            rows=_row_range(spec, placed, group, position),
            columns=_column_range(spec, placed, group, position),
            use=use,
            cost=tuple(instance.shard_cost[entry].tolist()),
        )


def rows_over(placed: PlacedTable) -> int:
    """Ranks over which a table-row-wise or grid table splits its rows."""
    return sum(map(len, placed.ranks)) // placed.column_shards


def nodes_of(placed: PlacedTable, cluster: Cluster) -> int:
    """Row groups over which a table-row-wise table splits its rows (TorchRec's ``num_nodes``)."""
    if placed.sharding_type != "table_row_wise":
        return 1
    ranks = {rank for block in placed.ranks for rank in block}
    return sum(not ranks.isdisjoint(group) for group in cluster.row_groups)


def _milliseconds(picoseconds: int | None) -> float | None:
    return None if picoseconds is None else picoseconds / 1e9


def decode(options: Options, instance: Instance, outcome: Outcome) -> Plan:
    """The plan of an Outcome of the Instance that was compiled from some options."""
    placement, tables = outcome.placement, tuple[PlacedTable, ...]()
    if placement is not None:
        chosen = [options.choices[o] for o in placement.options.tolist()]
        tables = _tables(options.model, options.cluster, instance, placement, chosen)
    return Plan(options.model, options.cluster, options.profile, instance, outcome, tables)


def placed_tables(
    model: Model, cluster: Cluster, instance: Instance, placement: Placement | None
) -> tuple[PlacedTable, ...]:
    """The placed tables of an Outcome; empty without a placement.

    BadInput if a table is placed with an option that it does not have on this cluster.
    """
    if placement is None:
        return ()
    chosen = []
    legal_of = zip(model.tables, enumerations_of(model, cluster), strict=True)
    for (table, legal), index in zip(legal_of, placement.options.tolist(), strict=True):
        option = instance.option_names[index]
        if option not in legal.names:
            raise BadInput(f"table {table.name!r} has no option {option!r} on {cluster.name!r}")
        chosen.append(legal.choices[legal.names.index(option)])
    return _tables(model, cluster, instance, placement, chosen)


def _tables(
    model: Model,
    cluster: Cluster,
    instance: Instance,
    placement: Placement,
    chosen: Sequence[Choice],
) -> tuple[PlacedTable, ...]:
    """The placed tables, each with the choice that its option stands for."""
    found, cpu_only = [], cluster.cpu_only
    for index, (table, choice) in enumerate(zip(model.tables, chosen, strict=True)):
        runtime = named(choice.runtime)
        found.append(
            PlacedTable(
                name=table.name,
                option=instance.option_names[int(placement.options[index])],
                kind=table.kind,
                sharding_type=choice.sharding,
                mode=choice.mode,
                kernel=runtime.kernel(
                    choice.sharding, choice.mode, cpu_only, table.key_value.virtual
                ),
                cache_ratio=choice.ratio,
                dist_type=choice.dist_type,
                column_shards=choice.columns,
                column_width=choice.width,
                fusion_group=_group(table, model, choice),
                fusion_caching=choice.caching_group,
                stash=choice.stash,
                ranks=tuple(tuple(block) for block in placement.to_lists(index)),
                **runtime.export_fields(model, table, choice.ratio, cluster.num_ranks),
            )
        )
    return tuple(found)


def _group(table: Table, model: Model, choice: Choice) -> str | None:
    if choice.caching_group is None or choice.dist_type is None:
        return None
    return group_name(table, model.workload.trains, choice.dist_type, choice.caching_group)


def _positions(instance: Instance, placement: Placement, table: int) -> Iterator[tuple[int, int]]:
    """Shard entry and rank of every position of a table, block by block."""
    from formulations.result.piles import position_entries

    for index, ranks in zip(
        instance.blocks_of(int(placement.options[table])), placement.ranks[table], strict=True
    ):
        entries = position_entries(instance, instance.block(index), ranks)
        yield from zip(entries.tolist(), ranks.tolist(), strict=True)


def _row_range(
    spec: Table, placed: PlacedTable, group: int, position: int
) -> tuple[int, int] | None:
    """Rows of a shard as (start, stop); None if a hash or remainder selects them."""
    if not home(placed.kind).consecutive(placed.dist_type, group):
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
