"""dynamicemb's tables: hash tables in HBM, in host memory, in both, or cached.

References
----------
NVIDIA/recsys-examples, ``corelib/dynamicemb``; alibaba/TorchEasyRec,
``tzrec/utils/dynamicemb_util.py`` (what its planner counts).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from milp_planner.inputs.constraints import DistType, Mode, ShardingType
from milp_planner.inputs.model import Model
from milp_planner.inputs.table import Table
from milp_planner.pricing import lookup, splits, storage
from milp_planner.pricing.job import Job, OptionColumns, ShardColumns, TableColumns
from milp_planner.pricing.runtimes import torcheasyrec
from milp_planner.pricing.runtimes.room import Fields, Rows, Runtime
from milp_planner.pricing.site import Site, TableTraits
from milp_planner.pricing.storage import TierBytes, hbm_for_values, runtime_value_bytes
from milp_planner.pricing.units import BoolArray, FloatArray, IntArray, round_up


class DynamicEmb(Runtime):
    """Hash tables, split over all ranks by a routing rule, fused where their keys agree."""

    name = "dynamicemb"
    allowed = "dynamicemb tables are row_wise in HBM_ONLY, HYBRID, CACHING or HOST_ONLY"
    planner_is_plain = True

    def no_store(self, table: Table, trains: bool) -> str:
        """They need none of FBGEMM's."""
        return "dynamicemb tables have stores of their own"

    def sharding_types(self, traits: TableTraits) -> tuple[tuple[ShardingType, ...], str]:
        """Row-wise."""
        return ("row_wise",), "dynamicemb tables are sharded row_wise only"

    def modes(self, traits: TableTraits, site: Site) -> Iterator[tuple[Mode, Fraction]]:
        """One tier, or two at each ratio, exclusive (HYBRID) or not (CACHING)."""
        yield "HBM_ONLY", Fraction(1)
        yield from (("HYBRID", ratio) for ratio in traits.ratios)
        yield from (("CACHING", ratio) for ratio in traits.ratios)
        yield "HOST_ONLY", Fraction(0)

    def routes(self, traits: TableTraits) -> tuple[DistType | None, ...]:
        """Those that the table allows."""
        return traits.dist_types

    def groups(self, traits: TableTraits, mode: str) -> tuple[bool | None, ...]:
        """HBM_ONLY may join either of the two groups of its key."""
        if not traits.fuses:
            return (None,)
        return {"HBM_ONLY": (False, True), "CACHING": (True,)}.get(mode, (False,))

    def split(
        self, table: Table, ranks: int, dist_type: str | None, batch: splits.Batch
    ) -> splits.RowSplit:
        """Equal room on every rank; the rule decides the load."""
        assert dist_type is not None
        return splits.dynamicemb_split(table, ranks, dist_type, batch)

    def rows(self, job: Job, options: OptionColumns, shards: ShardColumns) -> Rows:
        """Slots in buckets, with keys, scores and counters."""
        value, sizes = _sizes(job, options, shards, job.tables.runtime_row)
        words, outside = job.tables.score_words[options.table], _outside(job, options)
        found = storage.runtime_tiers(*sizes, words, outside)
        rows = _rows(job, options, shards, value, found)
        if job.model.grows:
            rows.hbm["old_keys"] = _old_keys(job, options, value, found)
        return rows

    def planner_rows(self, job: Job, options: OptionColumns, shards: ShardColumns) -> Rows:
        """As TorchEasyRec's planner counts."""
        value, sizes = _sizes(job, options, shards, job.tables.planner_row)
        return _rows(job, options, shards, value, torcheasyrec.torcheasyrec_tiers(*sizes))

    def most_bytes(self, tables: TableColumns, ranks: int) -> FloatArray:
        """Slots in whole buckets, with their keys."""
        rows = tables.rows.astype(np.float64)
        slots = np.maximum(rows / ranks, tables.bucket.astype(np.float64)) + tables.bucket
        return slots * (np.maximum(tables.runtime_row, tables.planner_row) + 64.0)

    def held(self, job: Job, options: OptionColumns) -> FloatArray:
        """The cache ratio, rounded up to buckets on every rank."""
        tables, of, ratio = job.tables, options.table, (options.over, options.under)
        return storage.held_ratio(tables.rows[of], job.ranks, tables.bucket[of], ratio)

    def bandwidth(self, job: Job, options: OptionColumns, hits: lookup.Hits) -> FloatArray:
        """By the profile's law, or by the rules of TorchEasyRec's planner.

        A table of two tiers is never slower than in host memory alone. A cache whose rows are
        fetched ahead still costs its path.
        """
        profile, model = job.profile, job.workload.cost_model
        if model != "law":
            x_eff = torcheasyrec.efficiency(options, hits.ratio, hits.known, model)
            return lookup.tiered_bandwidth(profile, x_eff) / torcheasyrec.DIVISOR
        host = float(lookup.tiered_bandwidth(profile, np.array(profile.host_only)))
        cached = lookup.between(profile, profile.caching, options, hits)
        if job.workload.prefetch_pipeline:
            most = np.array(profile.caching.points[-1][1])
            cached = np.full_like(cached, lookup.tiered_bandwidth(profile, most))
        hybrid = lookup.between(profile, profile.hybrid, options, hits)
        reached = np.where(options.is_mode("CACHING"), np.maximum(cached, host), host)
        reached = np.where(options.is_mode("HYBRID"), np.maximum(hybrid, host), reached)
        reached = np.where(options.is_mode("HBM_ONLY"), profile.hbm, reached)
        return reached / profile.kernel.dynamicemb_divisor

    def state_copies(self, job: Job, table: IntArray) -> FloatArray:
        """Those of the optimizer, which TorchEasyRec's planner ignores."""
        copies = job.tables.state_over[table] / job.tables.state_under[table]
        return copies * (job.workload.cost_model == "law")

    def measured(self, job: Job) -> bool:
        """Not by TorchEasyRec's rules, and not if FBGEMM's tables were measured."""
        step = job.profile.step
        return job.workload.cost_model == "law" and not (step is not None and step.fused)

    def consecutive(self, dist_type: str | None, parts: int) -> bool:
        """Only by the continuous rule."""
        return dist_type == "continuous"

    def export_fields(self, model: Model, table: Table, ratio: Fraction, ranks: int) -> Fields:
        """Slots of each rank, and HBM for their values."""
        room, bucket = -(-table.rows // ranks), table.bucket_capacity
        row = runtime_value_bytes(table.dim, table.element_bytes, model.optimizer_of(table))
        return {
            "capacity_per_rank": int(round_up(room, bucket)),
            "hbm_for_values": hbm_for_values(room, bucket, row, ratio),
        }

    def kernel(self, sharding: str, mode: str, cpu_only: bool, virtual: bool) -> str:
        """The library's."""
        return "customized_kernel"


def _sizes(
    job: Job, options: OptionColumns, shards: ShardColumns, rows: IntArray
) -> tuple[IntArray, tuple[IntArray, IntArray, IntArray, tuple[IntArray, IntArray], BoolArray]]:
    """Bytes of a row with its state, and the arguments of the two counts of tiers."""
    table, value = options.table, rows[options.table]
    ratio, caching = (options.over, options.under), options.is_mode("CACHING")
    return value, (shards.rows, value, job.tables.bucket[table], ratio, caching)


def _rows(
    job: Job, options: OptionColumns, shards: ShardColumns, value: IntArray, found: TierBytes
) -> Rows:
    """Values in HBM are split into weights and state as in one row; padding counts as state."""
    tables, table = job.tables, options.table
    row = tables.dim[table] * tables.element[table]
    weights = storage.ceil_div_product(found.values_hbm, row, value)
    hbm = {
        "weights": weights,
        "state": found.values_hbm - weights,
        "metadata": found.hbm - found.values_hbm + tables.counter[table],
    }
    ddr = np.where(_outside(job, options), 0, found.ddr)
    return Rows(hbm, ddr, np.zeros_like(ddr), shards.rows * value)


def _outside(job: Job, options: OptionColumns) -> BoolArray:
    """Options whose rows an external store keeps, in place of the host's memory.

    Of such rows the library allocates nothing, in HBM neither. In HBM_ONLY and HYBRID it leaves the
    store unused.

    References
    ----------
    NVIDIA/recsys-examples, ``batched_dynamicemb_tables.py``, ``_create_cache_storage`` (layouts
    CACHING_PS and HOST_PS). Host memory between cache and store is asked for in issue 453.
    """
    stored = options.is_mode("CACHING") | options.is_mode("HOST_ONLY")
    return stored & job.tables.external[options.table]


def _old_keys(job: Job, options: OptionColumns, value: IntArray, found: TierBytes) -> IntArray:
    """Bytes of the maps from which a table's last doubling moves its keys, beside the new ones.

    Keys, scores, digests and counters have new maps for every capacity; values are extended in
    place. A cache and the HBM tier of HYBRID have their capacity from the start. All tables that
    grow are counted as if they did so in the same step.

    References
    ----------
    NVIDIA/recsys-examples 385b27cb, ``corelib/dynamicemb/dynamicemb/extendable_buffer.py`` (values
    in virtual memory that is extended), and pull request 490 (capacity: twice the old one, at most
    ``max_capacity``; a new key map, and values grown by the difference);
    ``batched_dynamicemb_tables.py``, ``_create_cache_storage`` (which tiers grow).
    """
    table, alone = options.table, options.is_mode("HBM_ONLY")
    first = np.array([-(-(t.init_capacity or t.rows) // job.ranks) for t in job.model.tables])
    last = np.where(alone, found.values_hbm, found.ddr) // value
    old = storage.doubled_from(round_up(first, job.tables.bucket)[table], last)
    bucket = np.where(alone, job.tables.bucket[table], storage.HOST_BUCKET)
    return storage.metadata(old, bucket, job.tables.score_words[table])


RUNTIME = DynamicEmb()
