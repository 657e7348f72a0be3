"""The tiers of one table on all its ranks, and the effect of a batch of lookups on them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from benchmarks.simulator import loops
from cuda_routing.rules import fmix64
from milp_planner.inputs.constraints import Mode
from milp_planner.pricing.storage import HBM_BUCKET, HOST_BUCKET
from milp_planner.pricing.units import IntArray


@dataclass(frozen=True)
class Shape:
    """Tiers of one rank of a table."""

    mode: Mode
    hbm_slots: int
    host_slots: int = 0
    """Slot counts are rounded up to whole buckets; a cache's host holds every row."""
    frequency: bool = False
    """Evict the least frequently used row (LFU) instead of the least recently used (LRU)."""
    hbm_bucket: int = HBM_BUCKET
    host_bucket: int = HOST_BUCKET
    """Slots per bucket."""

    @property
    def hbm_buckets(self) -> int:
        """Buckets of one rank's HBM tier, at least one."""
        return max(-(-self.hbm_slots // self.hbm_bucket), 1)

    @property
    def host_buckets(self) -> int:
        """Buckets of one rank's host tier, at least one."""
        return max(-(-self.host_slots // self.host_bucket), 1)


@dataclass(frozen=True, eq=False)
class Step:
    """The effect of one batch; int64 arrays [ranks]."""

    lookups: IntArray
    unique: IntArray
    """Lookups, and distinct rows among them."""
    hits: IntArray
    unique_hits: IntArray
    """Those of them served from HBM as it was when the batch began."""
    host_hits: IntArray
    new: IntArray
    """Distinct rows found on the host, and found nowhere."""
    evicted: IntArray
    """Rows evicted from HBM (HYBRID: to the host; CACHING: written back)."""
    dropped: IntArray
    """Rows evicted from a full host bucket and lost."""
    bypassed: IntArray
    """Rows of the batch that found no slot in a cache's bucket."""
    in_hbm: IntArray
    on_host: IntArray
    """Rows held after the batch (a cache's host: every row seen so far)."""

    def __add__(self, other: Step) -> Step:
        """The counts of both batches added; rows held are those after the second."""
        values: dict[str, IntArray] = {}
        for name in (field.name for field in fields(self)):
            ours, theirs = getattr(self, name), getattr(other, name)
            values[name] = theirs if name in ("in_hbm", "on_host") else ours + theirs
        return Step(**values)

    @property
    def hit_ratio(self) -> float:
        """Share of the lookups served from HBM (NaN without lookups)."""
        return _ratio(self.hits, self.lookups)

    @property
    def unique_hit_ratio(self) -> float:
        """Share of the batches' distinct rows that were in HBM (NaN without lookups)."""
        return _ratio(self.unique_hits, self.unique)

    @property
    def unique_fraction(self) -> float:
        """Distinct rows of the batches over their lookups (NaN without lookups)."""
        return _ratio(self.unique, self.lookups)


class Tier(NamedTuple):
    """Slots of one tier on all ranks, bucket after bucket, in the form of the compiled loops."""

    held: np.ndarray
    """The row in each slot; int32 array [slots]."""
    filled: np.ndarray
    """Number of slots in use, which are a bucket's first ones; int64 array [buckets]."""
    first: int
    """Place of the first slot: the slots of HBM come before those of the host."""


class Tiers:
    """One table's rows on its ranks.

    A batch is de-duplicated first. HYBRID: a new row goes to the HBM bucket of its hash, whose
    lowest-scored row is moved to the host; a row found on the host stays there. CACHING: a missing
    row is fetched into HBM, and the bucket's lowest-scored row is written back; rows of the batch
    itself are protected. Ties go to the lowest slot. The score is the batch of the last lookup
    (LRU) or the number of lookups so far (LFU; a cache's host remembers it).

    ``keys`` is the id of every row as stored by its rank, int64 array [rows]; batches refer to rows
    by their index in it. ``owner`` is the rank of every row, int64 array [rows]; default: one rank.

    References
    ----------
    NVIDIA/recsys-examples, ``corelib/dynamicemb`` (``table_operation/kernels.cuh``: bucket from
    fmix64, insertion evicts the lowest score; ``batched_dynamicemb_function.py``: unique first,
    cache misses inherit the host's LFU score).
    """

    def __init__(
        self, shape: Shape, keys: IntArray, owner: IntArray | None = None, ranks: int = 1
    ) -> None:
        rows = len(keys)
        owner = np.zeros(rows, np.int64) if owner is None else owner
        hashed = fmix64(keys) & np.uint64(2**63 - 1)
        self.shape, self.ranks, self.now = shape, ranks, 0
        self._rows = np.zeros((rows, 4), np.int32)
        self._rows[:, 0] = -1
        self._rows[:, 3] = owner * shape.hbm_buckets + _bucket(
            hashed, shape.hbm_buckets, shape.hbm_bucket
        )
        self._rank_of = np.repeat(np.arange(ranks, dtype=np.int32), shape.hbm_buckets)
        self._hbm = _tier(ranks * shape.hbm_buckets, shape.hbm_bucket * (shape.hbm_slots > 0), 0)
        self._host = _tier(0, 0, 0)
        self._home_host = np.zeros(0, np.int32)
        if shape.mode == "HYBRID":
            home = _bucket(hashed, shape.host_buckets, shape.host_bucket)
            self._home_host = (owner * shape.host_buckets + home).astype(np.int32)
            self._host = _tier(ranks * shape.host_buckets, shape.host_bucket, self._hbm.held.size)
        self._starts = [np.zeros(len(t.filled) + 2, np.int32) for t in (self._hbm, self._host)]
        # rows that are nowhere share the first score; rows on a host without slots share the last
        self._scores = np.zeros(self._hbm.held.size + self._host.held.size + 2, np.int32)
        self._in_hbm, self._on_host = np.zeros((2, ranks), np.int64)
        self._kept = np.empty((4, 0), np.int32)

    def step(self, batch: IntArray) -> Step:
        """Look up the rows of one batch (indices, with repetitions) and update the tiers."""
        self.now += 1
        missing, homes = self._scratch(len(batch))[:2]
        seen = np.zeros((self.ranks, 3, 2), np.int64)
        misses = loops.look_up(
            self._rows, self._scores, batch, self.now, self._score, self._hbm.held.size,
            loops.IN_HBM if self.shape.mode == "CACHING" else loops.ON_HOST,
            self._rank_of, missing, homes, seen,
        )  # fmt: skip
        lookups, (found, host_hits, new) = seen.sum(axis=2), seen[:, :, 1].T
        moved = self._insert(missing[:misses], homes[:misses])
        self._hold(host_hits, new, *moved)
        return Step(
            lookups.sum(axis=1), found + host_hits + new, lookups[:, loops.IN_HBM].copy(),
            found, host_hits, new, *moved, self._in_hbm, self._on_host,
        )  # fmt: skip

    def _hold(
        self, host_hits: IntArray, new: IntArray, evicted: IntArray, dropped: IntArray,
        bypassed: IntArray,
    ) -> None:  # fmt: skip
        """Record the rows held after a batch, in new arrays, as earlier steps keep theirs."""
        mode = self.shape.mode
        if mode == "CACHING" and self.shape.hbm_slots:
            self._in_hbm = self._in_hbm + host_hits + new - bypassed - evicted
        elif self.shape.hbm_slots:
            self._in_hbm = self._in_hbm + new - evicted
        arrived = new if mode in ("CACHING", "HOST_ONLY") else evicted - dropped
        self._on_host = self._on_host + arrived

    def in_hbm(self) -> IntArray:
        """Rows now in HBM, ascending."""
        place = self._rows[:, 0]
        return np.flatnonzero((place >= 0) & (place < self._hbm.held.size))

    def on_host(self) -> IntArray:
        """Rows now on the host and not in HBM, ascending."""
        return np.flatnonzero(self._rows[:, 0] >= self._hbm.held.size)

    @property
    def _score(self) -> int:
        """Column of the rows that holds their scores."""
        return int(loops.COUNT if self.shape.frequency else loops.STAMP)

    def _scratch(self, size: int) -> np.ndarray:
        """Four reused arrays of at least ``size``: fresh pages cost more than the work in them."""
        if self._kept.shape[1] < size:
            self._kept = np.empty((4, size), np.int32)
        return self._kept

    def _insert(
        self, missing: np.ndarray, homes: np.ndarray
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Bring missing rows into HBM and evicted ones to the host: evicted, dropped, bypassed.

        The batch's scratch arrays hold the missing rows and their buckets, followed by two free
        arrays.
        """
        rows, none = self._rows, np.zeros(self.ranks, np.int64)
        if not self.shape.hbm_slots:
            rows[missing, loops.PLACE] = 0
            return none, none, none
        if self.shape.mode == "CACHING":
            _, (evicted, bypassed) = self._place(missing, homes, 0, self._hbm.held.size)
            return evicted, none, bypassed
        lost, left = self._place(missing, homes, 0, -1)
        evicted = dropped = left.sum(axis=0)
        if self.shape.mode == "HYBRID":
            moving, homes = self._kept[:2, : len(lost)]
            loops.send(lost, self._home_host, moving, homes)
            lost, left = self._place(moving, homes, 1, -1)
            dropped = left.sum(axis=0)
        if self.shape.frequency:
            rows[lost, loops.COUNT] = 0
        return evicted, dropped, none

    def _place(
        self, keys: np.ndarray, homes: np.ndarray, host: int, away: int
    ) -> tuple[np.ndarray, IntArray]:
        """Insert rows into a tier; returns those that left, and victims and rejected per rank."""
        tier, start = (self._hbm, self._host)[host], self._starts[host]
        grouped, leaving = self._kept[2:]
        moved = np.zeros((self.ranks, 2), np.int64)
        busy = loops.by_bucket(keys, homes, start, grouped)
        size = loops.insert(
            self._rows, grouped, start, homes[:busy], tier, self._scores,
            self.now if self.shape.mode == "CACHING" else -1, self._score, away, leaving,
            moved,
        )  # fmt: skip
        return leaving[:size], moved.T


def _bucket(hashed: np.ndarray, buckets: int, capacity: int) -> np.ndarray:
    """The bucket of each hash: (hash mod slots) / slots per bucket."""
    return (hashed % np.uint64(buckets * capacity) // np.uint64(capacity)).astype(np.int64)


def _tier(buckets: int, capacity: int, first: int) -> Tier:
    """An empty tier."""
    return Tier(np.full(buckets * capacity, -1, np.int32), np.zeros(buckets, np.int64), first)


def _ratio(part: IntArray, whole: IntArray) -> float:
    total = int(whole.sum())
    return int(part.sum()) / total if total else float("nan")
