"""HugeCTR's tables: how they can be cut, and the cost of each cut by HugeCTR's planner (EMBark).

A table is cut into r row parts times c column parts, each on a rank of its own, or (with
``cost_model: embark_hierarchical``) on a machine of its own, whose ranks split the rows further.

References
----------
NVIDIA-Merlin/HugeCTR at 2f2016fa, ``benchmarks/embedding_collection/hugectr/sharding/planner.py``
and ``generate_plan.py``; EMBark, RecSys 2024.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from milp_planner.inputs.constraints import Constraints, Mode, ShardingType
from milp_planner.inputs.model import Model
from milp_planner.inputs.table import Table
from milp_planner.pricing import splits
from milp_planner.pricing.job import Job, OptionColumns, ShardColumns
from milp_planner.pricing.options import PHASES, Choice
from milp_planner.pricing.runtimes import torchrec
from milp_planner.pricing.runtimes.room import Fields, Rows, Runtime
from milp_planner.pricing.site import Site, TableTraits
from milp_planner.pricing.units import PICOSECONDS, FloatArray

PASSES = 4
"""Reads of an element in a step (``mem_comm_work_ratio``, 8 over 2)."""
BETWEEN = 1.5
"""Cost of the exchange between machines over that between ranks (``hier_auto``)."""
NARROWEST = 32
"""A part of this many columns or fewer is not halved."""
HIERARCHICAL = "embark_hierarchical"
"""The cost model over machines."""


class HugeCTR(Runtime):
    """Tables in HBM, cut by HugeCTR's planner."""

    name = "hugectr"
    allowed = (
        "HugeCTR's tables are HBM_ONLY; data-parallel if dp_threshold or sharding_types say so"
    )

    deals = True

    def no_store(self, table: Table, trains: bool) -> str:
        """They have none."""
        return "HugeCTR's tables are in HBM"

    def among(self, model: Model) -> Callable[[Table], Fields]:
        """Whether a table is within ``dp_threshold``, and whether parts are on whole machines."""
        by_machine = model.workload.cost_model == HIERARCHICAL
        small = data_parallel(model)
        return lambda table: {"replicated": table.name in small, "by_machine": by_machine}

    def sharding_types(self, traits: TableTraits) -> tuple[tuple[ShardingType, ...], str]:
        """As its planner cuts."""
        return legal(traits.constraints, traits.replicated, traits.by_machine)

    def why_not(self, sharding: str, traits: TableTraits, site: Site) -> str:
        """Every one is offered on any cluster."""
        return ""

    def shapes(self, base: Choice, traits: TableTraits, site: Site) -> Iterator[Choice]:
        """Row parts times column parts."""
        return shapes(base, traits.constraints, site.machine_ranks, traits.by_machine)

    def no_shape(self, traits: TableTraits) -> str:
        """The places do not suffice."""
        places = "machines of equal size" if traits.by_machine else "ranks"
        return f"{traits.dim} columns cannot be cut this way on the allowed {places}"

    def modes(self, traits: TableTraits, site: Site) -> Iterator[tuple[Mode, Fraction]]:
        """HBM."""
        yield "HBM_ONLY", Fraction(1)

    def split(
        self, table: Table, ranks: int, dist_type: str | None, batch: splits.Batch
    ) -> splits.RowSplit:
        """Equal parts."""
        return splits.hugectr_split(table, ranks, batch)

    def rows(self, job: Job, options: OptionColumns, shards: ShardColumns) -> Rows:
        """Rows, and state in fp32, as FBGEMM's (HugeCTR's own bytes are not known here)."""
        return torchrec.RUNTIME.rows(job, options, shards)

    def planner_rows(self, job: Job, options: OptionColumns, shards: ShardColumns) -> Rows:
        """Rows and state, in the table's type."""
        return torchrec.RUNTIME.planner_rows(job, options, shards)

    def own_seconds(
        self, job: Job, options: OptionColumns, shards: ShardColumns
    ) -> FloatArray | None:
        """EMBark's cost, the only one that its tables have."""
        return shard_seconds(job, options, shards)

    def consecutive(self, dist_type: str | None, parts: int) -> bool:
        """A part holds every so-many-th row."""
        return parts <= 1

    def kernel(self, sharding: str, mode: str, cpu_only: bool, virtual: bool) -> str:
        """The group of its plan, dp or mp."""
        return "dp" if sharding == "data_parallel" else "mp"


def data_parallel(model: Model) -> frozenset[str]:
    """Names of the tables within ``dp_threshold``: smallest first, ties with more ids first."""
    tables = sorted(
        (t for t in model.tables if t.kind == "hugectr"),
        key=lambda t: (t.rows * t.dim, -t.lookups_per_sample),
    )
    return frozenset(t.name for t in tables[: model.workload.dp_threshold])


def legal(
    limits: Constraints, replicated: bool, by_machine: bool
) -> tuple[tuple[ShardingType, ...], str]:
    """Sharding types of a table, and why it can have no others."""
    if replicated:
        return ("data_parallel",), "the table is within dp_threshold and therefore data_parallel"
    cuts: tuple[ShardingType, ...] = ("row_wise", "grid_shard")
    if not by_machine:
        cuts = ("table_wise", "column_wise", *cuts)
    asked = limits.sharding_types or ()
    if limits.pin is not None and limits.pin.sharding_type is not None:
        asked = (limits.pin.sharding_type,)
    reason = f"HugeCTR shards tables {', '.join(cuts)}, or data_parallel on request"
    return (("data_parallel", *cuts) if "data_parallel" in asked else cuts), reason


def sharding_of(holders: int, columns: int, ranks: int, by_machine: bool) -> ShardingType:
    """The sharding type of a table in ``columns`` column parts on ``holders`` ranks."""
    if holders == 1 and not by_machine:
        return "table_wise"
    if columns == 1 and holders == ranks:
        return "row_wise"
    return "column_wise" if columns == holders and not by_machine else "grid_shard"


def shapes(
    base: Choice, limits: Constraints, machines: Sequence[Sequence[int]], by_machine: bool
) -> Iterator[Choice]:
    """The cuts of one sharding type into 1, 2, 4, … row and column parts, each on its own place.

    A column part is halved while its width is even and above 32. Splitting rows over all places is
    always offered. ``base`` is the whole table in that sharding type.
    """
    ranks = sum(map(len, machines))
    if base.sharding == "data_parallel":
        yield from [base] if _everywhere(limits, ranks) else []
        return
    size = len(machines[0]) if by_machine else 1
    if by_machine and any(len(each) != size for each in machines):
        return
    places = ranks // size
    for columns in column_parts(base.width, places, limits.column_widths):
        for rows in row_parts(places // columns):
            holders = rows * columns * size
            if sharding_of(holders, columns, ranks, by_machine) == base.sharding:
                cut = replace(
                    base, width=base.width // columns, columns=columns, row_shards=rows,
                    machine_ranks=size if by_machine else 0,
                )  # fmt: skip
                yield from _on_allowed(cut, holders, limits, machines)


def column_parts(dim: int, places: int, widths: Sequence[int] | None) -> Iterator[int]:
    """1, 2, 4, … parts; of two or more, only those whose width is allowed."""
    parts, width = 1, dim
    while parts <= places:
        if parts == 1 or widths is None or width in widths:
            yield parts
        if width % 2 or width <= NARROWEST:
            return
        parts, width = 2 * parts, width // 2


def row_parts(places: int) -> list[int]:
    """1, 2, 4, … up to the number of places, and that number."""
    return sorted({*(1 << k for k in range(places.bit_length())), places})


def _everywhere(limits: Constraints, ranks: int) -> bool:
    asked = [limits.ranks, limits.pin.ranks if limits.pin is not None else None]
    return all(each is None or len(set(each)) == ranks for each in asked)


def _on_allowed(
    cut: Choice, holders: int, limits: Constraints, machines: Sequence[Sequence[int]]
) -> Iterator[Choice]:
    """The cut on the ranks that the constraints allow; a pin must name exactly as many."""
    pinned = limits.pin.ranks if limits.pin is not None else None
    given = limits.ranks if pinned is None else pinned
    ranks = sum(map(len, machines))
    if given is None:
        yield cut
        return
    allowed = sorted(set(given))
    if (pinned is not None and len(pinned) != holders) or allowed[-1] >= ranks:
        return
    if not cut.machine_ranks:
        yield from [replace(cut, ranks=tuple(allowed))] if len(allowed) >= holders else []
        return
    whole = tuple(i for i, each in enumerate(machines) if set(each) <= set(allowed))
    if len(whole) * cut.machine_ranks >= holders:
        yield replace(cut, machines=whole)


def shard_seconds(job: Job, options: OptionColumns, shards: ShardColumns) -> FloatArray:
    """Costs as the planner counts them, one element read as a picosecond; float array [entries, 5].

    For a shard, with B samples on the whole cluster: lookup B · 4 · ids · columns / row parts,
    exchange B · ratio · columns. Over machines (``embark_hierarchical``) the exchange costs 1.5
    times as much and is divided by the ranks of a machine. A data-parallel table costs nothing.
    """
    table, workload = options.table, job.workload
    samples = float(workload.batch_per_rank * job.ranks)
    vectors = np.array([t.num_features * t.num_poolings for t in job.model.tables])
    split = ~options.is_sharding("data_parallel")
    reads = job.traffic.raw_ids[table] * job.ranks * PASSES * shards.columns / options.group_ranks
    exchange = samples * vectors[table] * workload.mem_comm_bw_ratio * shards.columns
    if workload.cost_model == HIERARCHICAL:
        exchange *= BETWEEN / len(job.site.machine_ranks[0])
    units = np.zeros((len(table), len(PHASES)))
    units[:, 0], units[:, 1] = reads * split, exchange * split
    return units / PICOSECONDS


RUNTIME = HugeCTR()
