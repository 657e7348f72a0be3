"""What a runtime answers: its splits, bytes at each moment, seconds of each phase, and its export.

A new runtime is a subclass of :class:`Runtime` in a module of its own, with an instance called
``RUNTIME``, and a line in :data:`milp_planner.kinds.KINDS`. The methods here are what most
runtimes share; only :meth:`Runtime.modes`, :meth:`Runtime.rows` and :meth:`Runtime.kernel` have no
default.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from milp_planner.inputs.constraints import ShardingType
from milp_planner.inputs.table import Table
from milp_planner.pricing import cuts, splits
from milp_planner.pricing.options import SHARDING_TYPES
from milp_planner.pricing.storage import STATE_BYTES
from milp_planner.pricing.units import FloatArray, IntArray

if TYPE_CHECKING:
    from fractions import Fraction

    from milp_planner.inputs.constraints import DistType, Mode
    from milp_planner.inputs.model import Model
    from milp_planner.pricing.job import Job, OptionColumns, ShardColumns, TableColumns
    from milp_planner.pricing.lookup import Hits
    from milp_planner.pricing.options import Choice
    from milp_planner.pricing.site import Site, TableTraits


Fields = dict[str, Any]


class Rows(NamedTuple):
    """What the rows of shards take; int64 arrays [entries]."""

    hbm: dict[str, IntArray]
    """Bytes of HBM by entry of the ledger, one of ``milp_planner.pricing.shards.ROWS``."""
    ddr: IntArray
    ssd: IntArray
    move: IntArray
    """Bytes of DDR and SSD, and those that travel when the table moves."""


class Fetched(NamedTuple):
    """What one step of a shard fetches before its lookup."""

    seconds: FloatArray
    """Float array [entries]."""
    traffic: IntArray
    """Bytes that SSD reads and writes, int64 array [entries]."""


STASHED_PASSES = 3
"""A step's distinct rows that cross the host link if a cache is stashed, in multiples: those of the
batch are flushed, fetched again before its backward pass, and those of the next batch fetched.

References
----------
TorchRec 1.9.2, ``distributed/memory_stashing.py``, ``stash_emo_cache`` (flush, free, fetch again),
``train_pipeline/experimental_pipelines.py``, ``_restore_and_prefetch`` (then the next batch). Rows
that two batches share are counted twice.
"""


class Runtime:
    """One way to run tables."""

    name: str
    allowed: str
    """What its tables may be, for a table without a legal option."""
    stashes = False
    """Whether weights may leave HBM between forward and backward."""
    fetches_all = False
    """Whether all its options bring a step's rows into HBM before the lookup."""
    planner_is_plain = False
    """Whether its own planner counts the exchange without skew, deduplication and codec."""

    # Which options: asked for each table, whatever its ranks.

    def takes(self, virtual: bool) -> bool:
        """Whether it offers options of virtual tables, or of others."""
        return not virtual

    def no_store(self, table: Table, trains: bool) -> str:
        """Why a table cannot be in a key-value store; empty if it can."""
        return f"{table.kind} tables have no key-value store"

    def sharding_types(self, traits: TableTraits) -> tuple[tuple[ShardingType, ...], str]:
        """Sharding types that a table can have at all, and why it can have no others."""
        return SHARDING_TYPES, ""

    def why_not(self, sharding: str, traits: TableTraits, site: Site) -> str:
        """Why one of these is not offered on a cluster; empty if it is."""
        return cuts.why_not(sharding, site, traits.constraints.sharding_types)

    def shapes(self, base: Choice, traits: TableTraits, site: Site) -> Iterator[Choice]:
        """Cuts and places of one sharding type; ``base`` is the whole table."""
        return cuts.shapes(base, traits, site)

    def no_shape(self, traits: TableTraits) -> str:
        """Why there are none."""
        return cuts.no_shape(traits)

    def modes(self, traits: TableTraits, site: Site) -> Iterator[tuple[Mode, Fraction]]:
        """Modes and cache ratios; those that the cluster or a constraint excludes are dropped."""
        raise NotImplementedError

    def routes(self, traits: TableTraits) -> tuple[DistType | None, ...]:
        """Routing rules; None if its tables have none."""
        return (None,)

    def groups(self, traits: TableTraits, mode: str) -> tuple[bool | None, ...]:
        """Fusion groups that a mode may join: without caching, with it; None: with nothing."""
        return (None,)

    # Rows and bytes.

    def split(
        self, table: Table, ranks: int, dist_type: str | None, batch: splits.Batch
    ) -> splits.RowSplit:
        """Parts of the rows on so many ranks, and the lookups of each."""
        return splits.whole(table) if ranks == 1 else splits.torchrec_split(table, ranks, batch)

    def rows(self, job: Job, options: OptionColumns, shards: ShardColumns) -> Rows:
        """What rows take, as it runs; one row per shard entry."""
        raise NotImplementedError

    def planner_rows(self, job: Job, options: OptionColumns, shards: ShardColumns) -> Rows:
        """What rows take, as its own planner counts them."""
        return self.rows(job, options, shards)

    def most_bytes(self, tables: TableColumns, ranks: int) -> FloatArray:
        """At least what the rows of a table take in all, in floats that cannot overflow; [tables].

        By default rows, and state of two copies in fp32.
        """
        each = np.maximum(tables.element, STATE_BYTES).astype(np.float64)
        numbers = tables.state_row + tables.state_column * tables.dim
        state = each * np.maximum(2.0 * tables.dim, numbers)
        return tables.rows * (tables.dim * tables.element + tables.header + state)

    # Seconds.

    def held(self, job: Job, options: OptionColumns) -> FloatArray:
        """Share of a table's rows that HBM has room for; float array [options]."""
        return options.over / options.under

    def fetches_ahead(self, job: Job, mode: str) -> bool:
        """Whether missing rows are fetched into the cache before the lookup, once each."""
        return mode == "CACHING" and job.workload.prefetch_pipeline

    def bandwidth(self, job: Job, options: OptionColumns, hits: Hits) -> FloatArray:
        """Bytes per second that a lookup reads on a cluster with HBM; float array [options]."""
        return np.full(len(options.table), job.profile.hbm)

    def state_copies(self, job: Job, table: IntArray) -> FloatArray:
        """Copies of a row that its update touches besides, by the profile's law of dynamicemb."""
        return np.zeros(len(table))

    def measured(self, job: Job) -> bool:
        """Whether a step that was measured on a machine prices its tables, too."""
        return True

    def fetched(
        self, job: Job, options: OptionColumns, shards: ShardColumns, hits: Hits, row: IntArray
    ) -> Fetched:
        """What a step fetches before the lookup; ``row`` is bytes of one row."""
        wanted = job.traffic.distinct[options.table] * options.is_mode("CACHING")
        missing = (1.0 - hits.unique) * wanted / options.group_ranks
        emptied = STASHED_PASSES * wanted / options.group_ranks
        missing = np.where(options.stash > 0, emptied, missing)
        seconds = missing * row / job.profile.host_link * job.workload.prefetch_pipeline
        return Fetched(seconds, np.zeros(len(row), np.int64))

    # Exports.

    def runs(self, mode: str, virtual: bool) -> bool:
        """Whether options of this mode are its own."""
        return True

    def consecutive(self, dist_type: str | None, parts: int) -> bool:
        """Whether a shard holds consecutive rows, of so many parts."""
        return True

    def export_fields(self, model: Model, table: Table, ratio: Fraction, ranks: int) -> Fields:
        """Further fields of the placed table that its configuration needs."""
        return {}

    def kernel(self, sharding: str, mode: str, cpu_only: bool, virtual: bool) -> str:
        """Name of the kernel in a trainer's configuration."""
        raise NotImplementedError
