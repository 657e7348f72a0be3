"""Simulate one placed table: its tiers over many batches, and its exchange."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from benchmarks.simulator.streams import Drawn, drawn, scattered
from benchmarks.simulator.tiers import Shape, Step, Tiers
from cuda_routing.rules import Rule, as_index_type, block_size_of, local_keys, owners
from milp_planner.errors import BadInput
from milp_planner.inputs.table import Table
from milp_planner.plans.placement import PlacedTable, Plan
from milp_planner.plans.warnings import hit_ratio_of, row_ranks
from milp_planner.pricing.hybrid import long_run
from milp_planner.pricing.job import Traffic
from milp_planner.pricing.options import TIERED
from milp_planner.pricing.popularity import hot_ids, popularity, rank_factors
from milp_planner.pricing.storage import (
    hbm_slots,
)
from milp_planner.pricing.units import FloatArray, IntArray

UVM_WAYS = 32
"""Slots per set of TorchRec's UVM cache (FBGEMM, ``split_embeddings_cache``)."""


@dataclass(frozen=True, eq=False)
class TableJob:
    """One table of a plan, ready to be simulated."""

    table: Table
    placed: PlacedTable
    """The table in the model and in the plan."""
    ranks: int
    """Ranks that its rows are split over; 1 if a shard holds every row."""
    senders: int
    """Number of ranks that send a batch."""
    lookups: int
    """Ids in one rank's batch."""
    dedup: bool
    """Whether each rank sends each distinct id only once."""
    shape: Shape
    """The tiers of one rank."""
    predicted_hit: float
    source: str
    """The hit ratio used by pricing, and its source."""
    expected_ids: FloatArray
    """Ids per step that each rank of the split is expected to receive, with hot rows as priced;
    float array [ranks]."""
    even_ids: float
    """The same on each rank if no row were hot."""

    def owners(self, ids: IntArray) -> IntArray:
        """The rank within the split that owns each id."""
        if self.ranks == 1:
            return np.zeros(len(ids), np.int64)
        typed = as_index_type(ids, self.table.index_type)
        return owners(typed, self.ranks, self._rule, block_size=self._block, dynamicemb_int32=True)

    def local(self, ids: IntArray) -> IntArray:
        """The ids as stored by their owning ranks."""
        if self.ranks == 1:
            return ids
        return local_keys(ids, self.ranks, self._rule, block_size=self._block)

    def thinned(self, rate: float) -> Shape:
        """Tiers for a sample of the rows: fewer slots, divided evenly into buckets."""
        if rate >= 1:
            return self.shape
        array = self.placed.kind == "torchrec" and self.placed.mode == "HBM_ONLY"
        hbm = max(round(self.shape.hbm_slots * rate), 1) + array  # samples may be uneven
        host = max(round(self.shape.host_slots * rate), 1)
        return replace(
            self.shape,
            hbm_slots=hbm,
            host_slots=host,
            hbm_bucket=_even(hbm, self.shape.hbm_bucket),
            host_bucket=_even(host, self.shape.host_bucket),
        )

    def holders(self, everyone: int) -> IntArray:
        """Rank in the cluster and rank within the split of every shard, int64 [shards, 2]."""
        if self.placed.sharding_type == "data_parallel":
            return np.stack([np.arange(everyone), np.zeros(everyone, np.int64)], axis=1)
        flat = np.array([rank for block in self.placed.ranks for rank in block], dtype=np.int64)
        return np.stack([flat, np.arange(len(flat)) % self.ranks], axis=1)

    @property
    def _rule(self) -> Rule:
        return Rule.parse(self.placed.dist_type or "continuous")

    @property
    def _block(self) -> int:
        return block_size_of(self.table.rows, self.ranks)


def job_of(plan: Plan, index: int, traffic: Traffic) -> TableJob:
    """The job of one table of a plan."""
    table, placed = plan.model.tables[index], plan.tables[index]
    everyone, ranks = plan.cluster.num_ranks, row_ranks(plan, index)
    raw = float(traffic.raw_ids[index])
    hit, source = float(placed.mode == "HBM_ONLY"), "none"
    if placed.mode in TIERED:
        hit, source = hit_ratio_of(plan, index)
    factors: tuple[float, ...] = (1.0,)
    if ranks > 1:
        rule = placed.dist_type or "continuous"
        dedup = float(traffic.dedup_lookups[index])
        factors = rank_factors(table.access, table.rows, ranks, rule, dedup, table.index_type)
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
    """A bucket size near ``bucket`` that divides the slots with hardly any remainder."""
    return -(-slots // max(round(slots / bucket), 1))


def _shape_of(table: Table, placed: PlacedTable, ranks: int) -> Shape:
    """The tiers of one rank, sized as in the plan."""
    frequency = table.evicts_least_frequent
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
    mode = "CACHING" if placed.mode == "SSD" else placed.mode  # the same cache in front of SSD
    ways = UVM_WAYS if mode == "CACHING" else max(rows, 1)  # arrays have a slot for each row
    return Shape(mode, held, rows, hbm_bucket=ways)


def known_ids(table: Table) -> tuple[int, ...]:
    """Ids of the most popular rows, if the model names them."""
    return tuple(i for i in hot_ids(table.access) if i < table.rows)


MAX_ROWS = 1 << 16
"""Tables with more rows are simulated on a sample of them."""
MAX_LOOKUPS = 1 << 18
"""For batches with more lookups, the tiers are simulated on a sample of the rows, and the exchange
on a part of every rank's lookups."""
LEAST_LOOKUPS = 20_000
"""Fewest lookups for a hit ratio: batches of a sample are repeated until there are as many."""
MAX_SLOTS = 1 << 28
"""Most slots of a table with a trace: traces are not sampled; 16 bytes per slot, 4 GiB in all."""
GOLDEN = (5**0.5 - 1) / 2
WARM_SHARE = 100
"""A warm-up batch has at least 1/100 as many lookups as rows, so that few batches suffice."""


@dataclass(frozen=True, eq=False)
class TableRun:
    """The result of simulating one table."""

    job: TableJob
    rate: float
    """Share of the rows in the sample that the tiers were simulated on."""
    warmed: float
    """Lookups per row before counting began."""
    steps: list[Step]
    """One per counted batch, of the sample."""
    ids: FloatArray
    """Ids that each rank received per step; float array [batches, ranks]."""
    part: float
    """Share of every rank's lookups that the exchange was simulated on."""
    batches: int
    """Batches simulated for ``steps``: several per step if a sampled batch has few lookups."""

    @property
    def total(self) -> Step:
        """All counted batches together."""
        total = self.steps[0]
        for step in self.steps[1:]:
            total = total + step
        return total


def simulate_table(job: TableJob, batches: int, seed: int) -> TableRun:
    """Draw lookups from the table's statistics and replay them."""
    generator = np.random.default_rng([seed, len(job.table.name), *job.table.name.encode()])
    stream = drawn(popularity(job.table.access, job.table.rows))
    order = int(generator.integers(1 << 40))
    lookups = job.lookups * job.senders
    rate = min(1.0, MAX_ROWS / stream.rows, MAX_LOOKUPS / lookups)
    thin = stream.thinned(rate) if rate < 1 else stream
    first = known_ids(job.table) if rate == 1 else ()
    ids = scattered(np.arange(thin.rows), thin.rows, order, first)
    if rate < 1:
        ids = _spread(thin.rows, job.table.rows)[ids]
    tiers = Tiers(job.thinned(rate), job.local(ids), job.owners(ids), job.ranks)
    warmed = _warm(tiers, thin, max(round(lookups * rate), 1), generator)
    count = max(round(lookups * rate), 1)
    repeat = max(-(-LEAST_LOOKUPS // (count * batches)), 1)
    steps = []
    for _ in range(batches):
        step = tiers.step(thin.draw(count, generator))
        for _ in range(repeat - 1):
            step = step + tiers.step(thin.draw(count, generator))
        steps.append(step)
    part = min(1.0, MAX_LOOKUPS / lookups)
    received = [_exchange(job, stream, part, order, generator) for _ in range(batches)]
    return TableRun(job, rate, warmed, steps, np.array(received), part, batches * repeat)


def check_keys(table: Table, keys: IntArray, where: str) -> None:
    """Raise BadInput for keys that a table cannot have: an array (TorchRec) has rows 0 to rows - 1.

    A dynamicemb table takes every key of its type; 32-bit keys may be zero-extended.
    """
    low, high, what = 0, table.rows, "the rows"
    if table.kind == "dynamicemb":
        if table.index_type != "int32":
            return
        low, high, what = -(2**31), 2**32, "the int32 keys"
    if len(keys) and not low <= keys.min() <= keys.max() < high:
        wrong = int(np.argmax((keys < low) | (keys >= high)))
        raise BadInput(
            f"{where}: key number {wrong + 1:,} is {int(keys[wrong])}; allowed: {low} to "
            f"{high - 1}, {what} of table {table.name!r}"
        )


def check_trace(job: TableJob, keys: IntArray) -> None:
    """Raise BadInput for a trace with impossible keys, with less than two global batches, or for a
    table with too many slots."""
    name, lookups = job.table.name, job.lookups * job.senders
    check_keys(job.table, keys, f"the trace of table {name!r}")
    if len(keys) < 2 * lookups:
        raise BadInput(
            f"the trace of table {name!r} has {len(keys):,} keys; allowed: at least two "
            f"batches of {lookups:,} ({job.lookups:,} on each of {job.senders} ranks)"
        )
    slots = _slots(job.shape) * job.ranks
    if slots > MAX_SLOTS:
        raise BadInput(
            f"--trace: table {name!r} has {slots:,} slots; allowed: at most {MAX_SLOTS:,} (4 GiB "
            "here), as traces are not sampled; drop --trace for this table, and its lookups are "
            "drawn from its statistics"
        )


def _slots(shape: Shape) -> int:
    """Slots of one rank with a simulated state: a host tier that holds every row needs none."""
    near = shape.hbm_buckets * shape.hbm_bucket if shape.hbm_slots else 0
    return near + shape.host_buckets * shape.host_bucket * (shape.mode == "HYBRID")


def replay_table(job: TableJob, keys: IntArray, batches: int) -> TableRun:
    """Replay a checked trace in order; the first half of its batches warms the tiers up."""
    lookups = job.lookups * job.senders
    whole = len(keys) // lookups
    ids, rows = np.unique(keys, return_inverse=True)
    counted = min(batches, whole // 2)
    tiers = Tiers(job.shape, job.local(ids), job.owners(ids), job.ranks)
    steps, received = [], []
    for number in range(whole):
        part = slice(number * lookups, (number + 1) * lookups)
        step = tiers.step(rows[part])
        if number >= whole - counted:
            steps.append(step)
            received.append(_received(job, list(keys[part].reshape(job.senders, -1))))
    warmed = (whole - counted) * lookups / len(ids)
    return TableRun(job, 1.0, warmed, steps, np.array(received), 1.0, counted)


def _spread(sample: int, rows: int) -> IntArray:
    """Ids of a sample of the rows, one from each of ``sample`` equal parts.

    Equal steps would all fall on the same few ranks if the step is a multiple of their number;
    offsets within the parts that follow the golden ratio fall on all ranks alike.
    """
    edges = np.arange(sample + 1, dtype=np.int64) * rows // sample
    places = np.arange(sample) * GOLDEN % 1.0
    return edges[:-1] + (places * np.diff(edges)).astype(np.int64)


def _warm(tiers: Tiers, stream: Drawn, batch: int, generator: np.random.Generator) -> float:
    """Fill the tiers as predicted hit ratios assume; returns the lookups per row it took."""
    wanted, done = round(long_run(stream.rows, batch)), 0
    size = max(batch, stream.rows // WARM_SHARE, 1)
    while done < wanted:
        tiers.step(stream.draw(size, generator))
        done += size
    return done / stream.rows


def _exchange(
    job: TableJob, stream: Drawn, part: float, order: int, generator: np.random.Generator
) -> FloatArray:
    """Ids that each rank receives in one step; without de-duplication, scaled up from a part."""
    lookups = max(round(job.lookups * part), 1)
    first = known_ids(job.table)
    batches = [
        scattered(stream.draw(lookups, generator), stream.rows, order, first)
        for _ in range(job.senders)
    ]
    return _received(job, batches) * (job.lookups / lookups)


def _received(job: TableJob, batches: list[IntArray]) -> FloatArray:
    counts = np.zeros(job.ranks)
    for batch in batches:
        sent = np.unique(batch) if job.dedup else batch
        counts += np.bincount(job.owners(sent), minlength=job.ranks)
    return counts
