"""What the simulation of one placed table needs: its tiers, its routing, and what was predicted."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cuda_routing.rules import Rule, block_size_of, local_keys, owners
from milp_planner.features.simulate.tiers import Shape
from milp_planner.inputs.table import Table
from milp_planner.plans.placement import PlacedTable, Plan
from milp_planner.plans.warnings import hit_ratio_of
from milp_planner.pricing.access import hot_ids, rank_factors
from milp_planner.pricing.dynamicemb_storage import hbm_slots, runtime_value_bytes
from milp_planner.pricing.hit_ratio.hybrid import long_run
from milp_planner.pricing.job import Traffic
from milp_planner.pricing.options import BY_MACHINE
from milp_planner.pricing.storage import state_multiple
from milp_planner.pricing.units import FloatArray, IntArray

UVM_WAYS = 32
"""Slots of a set of TorchRec's UVM cache (FBGEMM, ``split_embeddings_cache``)."""


@dataclass(frozen=True, eq=False)
class TableJob:
    """One table of a plan, ready to be simulated.

    Attributes
    ----------
    table, placed
        As in the model and in the plan.
    ranks : int
        Ranks its rows are split over; 1 where a shard holds every row.
    senders : int
        Ranks with a batch each.
    lookups : int
        Ids of one rank's batch.
    dedup : bool
        Whether each rank sends each different id once.
    shape : Shape
        Tiers of one rank.
    predicted_hit, source
        What pricing says of the hit ratio, and where it has it from.
    expected_ids : float array [ranks]
        Ids a step that each rank of the split is expected to receive, hot rows as priced.
    even_ids : float
        The same if no row were hot.
    """

    table: Table
    placed: PlacedTable
    ranks: int
    senders: int
    lookups: int
    dedup: bool
    shape: Shape
    predicted_hit: float
    source: str
    expected_ids: FloatArray
    even_ids: float

    def owners(self, ids: IntArray) -> IntArray:
        """Rank, counted inside the split, that owns each id."""
        if self.ranks == 1:
            return np.zeros(len(ids), np.int64)
        return owners(ids, self.ranks, self._rule, block_size=self._block)

    def local(self, ids: IntArray) -> IntArray:
        """The ids as the owning rank stores them."""
        if self.ranks == 1:
            return ids
        return local_keys(ids, self.ranks, self._rule, block_size=self._block)

    def thinned(self, rate: float) -> Shape:
        """Tiers for a sample of the rows: fewer slots, in buckets that divide them."""
        if rate >= 1:
            return self.shape
        array = self.placed.kind == "torchrec" and self.placed.mode == "HBM_ONLY"
        hbm = max(round(self.shape.hbm_slots * rate), 1) + array  # a sample may be uneven
        host = max(round(self.shape.host_slots * rate), 1)
        return replace(
            self.shape,
            hbm_slots=hbm,
            host_slots=host,
            hbm_bucket=_even(hbm, self.shape.hbm_bucket),
            host_bucket=_even(host, self.shape.host_bucket),
        )

    def holders(self, everyone: int) -> IntArray:
        """Pairs (rank of the cluster, rank inside the split) of every shard, int64 [shards, 2]."""
        if self.placed.sharding_type == "data_parallel":
            return np.stack([np.arange(everyone), np.zeros(everyone, np.int64)], axis=1)
        flat = np.array([rank for block in self.placed.ranks for rank in block], dtype=np.int64)
        return np.stack([flat, np.arange(len(flat)) % self.ranks], axis=1)

    def row_bytes(self, columns: int, training: bool) -> float:
        """Bytes of so many columns of a row, with optimizer state, as the runtime keeps them."""
        table, optimizer = self.table, self.table.optimizer if training else "none"
        if table.kind == "dynamicemb":
            return runtime_value_bytes(columns, table.element_bytes, optimizer)
        state = state_multiple(optimizer, table.dim)
        return float(columns * table.element_bytes * (1 + state))

    @property
    def _rule(self) -> Rule:
        return Rule.parse(self.placed.dist_type or "continuous")

    @property
    def _block(self) -> int:
        return block_size_of(self.table.rows, self.ranks)


def job_of(plan: Plan, index: int, traffic: Traffic) -> TableJob:
    """The job of one table of a plan."""
    table, placed = plan.model.tables[index], plan.tables[index]
    everyone = plan.cluster.num_ranks
    ranks = 1
    if placed.sharding_type == "row_wise":
        ranks = everyone
    elif placed.sharding_type in BY_MACHINE:
        ranks = len(plan.instance.machines[int(plan.instance.machine_of[placed.ranks[0][0]])])
    raw = float(traffic.raw_ids[index])
    hit, source = float(placed.mode == "HBM_ONLY"), "none"
    if placed.mode in ("HYBRID", "CACHING"):
        hit, source = hit_ratio_of(plan, index)
    factors: tuple[float, ...] = (1.0,)
    if ranks > 1:
        rule = placed.dist_type or "continuous"
        dedup = float(traffic.dedup_lookups[index])
        factors = rank_factors(table.access, table.rows, ranks, rule, dedup)
    senders = 1 if placed.sharding_type == "data_parallel" else everyone
    even = float(traffic.ids[index]) * senders / ranks
    return TableJob(
        table=table,
        placed=placed,
        ranks=ranks,
        senders=senders,
        lookups=max(round(raw), 1),
        dedup=float(traffic.dedup_lookups[index]) > 0,
        shape=_shape_of(table, placed, ranks),
        predicted_hit=hit,
        source=source,
        expected_ids=np.broadcast_to(even * np.array(factors), ranks),
        even_ids=even,
    )


def _even(slots: int, bucket: int) -> int:
    """Slots of a bucket near ``bucket`` that leave hardly any slot over."""
    return -(-slots // max(round(slots / bucket), 1))


def _shape_of(table: Table, placed: PlacedTable, ranks: int) -> Shape:
    """Tiers of one rank, as the plan sizes them."""
    frequency = table.kind == "dynamicemb" and table.score_strategy == "lfu"
    ratio = placed.cache_ratio
    if placed.kind == "dynamicemb":
        slots = placed.capacity_per_rank or -(-table.rows // ranks)
        x = (ratio.numerator, ratio.denominator)
        hbm = int(hbm_slots(slots, table.bucket_capacity, x))
        kept = slots * ratio.numerator // ratio.denominator if placed.mode == "HYBRID" else 0
        if placed.mode == "HBM_ONLY":
            return Shape("HBM_ONLY", slots, frequency=frequency, hbm_bucket=table.bucket_capacity)
        return Shape(placed.mode, hbm, slots - kept, frequency)
    rows = -(-table.rows // ranks)
    held = -(-rows * ratio.numerator // ratio.denominator)
    ways = UVM_WAYS if placed.mode == "CACHING" else max(rows, 1)  # arrays have a slot for each row
    return Shape(placed.mode, held, rows, hbm_bucket=ways)


def warmup_lookups(rows: int, batch: int) -> int:
    """Lookups before anything is counted: what the predicted hit ratios assume."""
    return round(long_run(rows, batch))


def known_ids(table: Table) -> tuple[int, ...]:
    """Ids of the most popular rows as far as the model names them."""
    return tuple(i for i in hot_ids(table.access) if i < table.rows)
