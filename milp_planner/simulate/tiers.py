"""The tiers of one table on all its ranks, and what a batch of lookups does to them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from cuda_routing.rules import fmix64
from milp_planner.costs.dynamicemb_storage import HBM_BUCKET, HOST_BUCKET
from milp_planner.costs.units import IntArray
from milp_planner.errors import BadInput

TierMode = Literal["HBM_ONLY", "HYBRID", "CACHING", "HOST_ONLY"]


@dataclass(frozen=True)
class Shape:
    """Tiers of one rank of a table.

    Attributes
    ----------
    mode : str
        HBM_ONLY, HYBRID, CACHING or HOST_ONLY.
    hbm_slots, host_slots : int
        Rounded up to whole buckets; a cache's host holds every row.
    frequency : bool
        Evict the row looked up least often (LFU) instead of the one not used longest (LRU).
    hbm_bucket, host_bucket : int
        Slots of a bucket.
    """

    mode: TierMode
    hbm_slots: int
    host_slots: int = 0
    frequency: bool = False
    hbm_bucket: int = HBM_BUCKET
    host_bucket: int = HOST_BUCKET

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
    """What one batch did; int64 arrays [ranks].

    Attributes
    ----------
    lookups, unique
        Lookups, and different rows among them.
    hits, unique_hits
        Of those, served from HBM as it was when the batch began.
    host_hits, new
        Different rows found on the host; found nowhere.
    evicted
        Rows pushed out of HBM (HYBRID: to the host; CACHING: written back).
    dropped
        Rows pushed out of a full host bucket and lost.
    bypassed
        Rows of the batch for which a cache's bucket had no slot left.
    in_hbm, on_host
        Rows held after the batch (a cache's host: every row seen, counted over all ranks alike).
    """

    lookups: IntArray
    unique: IntArray
    hits: IntArray
    unique_hits: IntArray
    host_hits: IntArray
    new: IntArray
    evicted: IntArray
    dropped: IntArray
    bypassed: IntArray
    in_hbm: IntArray
    on_host: IntArray

    def __add__(self, other: Step) -> Step:
        """Counts of both batches; rows held after the second."""
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
        """Share of the batches' different rows that were in HBM (NaN without lookups)."""
        return _ratio(self.unique_hits, self.unique)

    @property
    def unique_fraction(self) -> float:
        """Different rows of the batches over their lookups (NaN without lookups)."""
        return _ratio(self.unique, self.lookups)


class Tiers:
    """One table's rows on its ranks.

    A batch is de-duplicated first. HYBRID: a new row goes to the HBM bucket of its hash; the
    lowest score there is pushed to the host; a row found on the host stays there. CACHING: a
    missing row is brought into HBM, and the lowest score of the bucket is written back; rows of
    the batch itself are protected. Among equal scores the lowest slot goes. Scores: batch of the
    last lookup (LRU) or lookups so far (LFU; a cache's host remembers them).

    Parameters
    ----------
    shape : Shape
        Of each rank.
    keys : int64 array [rows]
        Id of every row as its rank stores it; batches name rows by their index here.
    owner : int64 array [rows], optional
        Rank of every row; default: one rank.
    ranks : int

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
        self._hbm = _tier(ranks * shape.hbm_buckets, shape.hbm_bucket, shape.hbm_slots > 0)
        self._host = _tier(0, 1, False)
        self._home_host = np.zeros(0, np.int32)
        if shape.mode == "HYBRID":
            home = _bucket(hashed, shape.host_buckets, shape.host_bucket)
            self._home_host = (owner * shape.host_buckets + home).astype(np.int32)
            self._host = _tier(ranks * shape.host_buckets, shape.host_bucket, True)
        self._slots = np.zeros((self._hbm[0].size + self._host[0].size, 2), np.int32)
        self._starts = [np.zeros(len(t[1]) + 2, np.int64) for t in (self._hbm, self._host)]
        self._seen = np.zeros(ranks, np.int64)
        self._kept = np.empty((4, 0), np.int64)

    def step(self, batch: IntArray) -> Step:
        """Look up the rows of one batch (indices, repeated as they come) and update the tiers.

        Raises
        ------
        BadInput
            Numba is not installed.
        """
        loops = compiled_loops()
        self.now += 1
        counts = np.zeros((self.ranks, 9), np.int64)
        unique, before = self._scratch(len(batch))[:2]
        slots, per_rank = self._hbm[0].size, self.shape.hbm_buckets
        misses = loops.look_up(
            self._rows, batch, self.now, slots, per_rank, self._slots, self.shape.frequency,
            unique, before, counts,
        )  # fmt: skip
        self._insert(loops, unique[:misses], counts)
        self._seen += counts[:, loops.NEW]
        in_hbm = self._hbm[1].reshape(self.ranks, -1).sum(axis=1)
        on_host = self._seen.copy()
        if self.shape.mode == "HYBRID":
            on_host = self._host[1].reshape(self.ranks, -1).sum(axis=1)
        elif self.shape.mode == "HBM_ONLY":
            on_host = np.zeros_like(in_hbm)
        c = counts.T.copy()
        return Step(c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], in_hbm, on_host)

    def in_hbm(self) -> IntArray:
        """Rows now in HBM, ascending."""
        place = self._rows[:, 0]
        return np.flatnonzero((place >= 0) & (place < self._hbm[0].size))

    def on_host(self) -> IntArray:
        """Rows now on the host and not in HBM, ascending."""
        return np.flatnonzero(self._rows[:, 0] >= self._hbm[0].size)

    def _scratch(self, size: int) -> IntArray:
        """Four arrays of at least that size, kept: fresh pages cost more than the work in them."""
        if self._kept.shape[1] < size:
            self._kept = np.empty((4, size), np.int64)
        return self._kept

    def _insert(self, loops: Any, missing: IntArray, counts: IntArray) -> None:
        """Bring missing rows into HBM, and what they push out to the host."""
        shape, rows, hbm_slots = self.shape, self._rows, self._hbm[0].size
        _, kept, grouped, moved = self._kept
        if shape.mode == "CACHING" or not shape.hbm_slots:
            if not shape.hbm_slots:
                rows[missing, 0] = 0
                return
            left = self._place(loops, missing, 0, self.now, grouped, moved)
            loops.write_back(rows, moved[:left], self.now, hbm_slots, shape.hbm_buckets, counts)
            return
        new = kept[: loops.only_new(rows, missing, kept)]
        left = self._place(loops, new, 0, -1, grouped, moved)
        np.add.at(counts[:, loops.EVICTED], rows[moved[:left], loops.HOME] // shape.hbm_buckets, 1)
        lost = moved[:left]
        if len(self._home_host):
            lost = kept[: self._place(loops, lost, 1, -1, grouped, kept)]
        loops.lose(rows, lost, shape.hbm_buckets, counts)

    def _place(
        self, loops: Any, keys: IntArray, host: int, pinned: int, grouped: IntArray, left: IntArray
    ) -> int:
        """Insert rows into HBM or the host; how many ``left`` it."""
        tier, start = (self._hbm, self._host)[host], self._starts[host]
        homes = self._home_host if host else self._rows[:, loops.HOME]
        loops.by_bucket(homes, keys, start, grouped)
        offset = self._hbm[0].size if host else 0
        return int(
            loops.insert(
                self._rows, grouped, start, tier, self._slots, offset, pinned,
                self.shape.frequency, left,
            )
        )  # fmt: skip


def compiled_loops() -> Any:
    """The compiled loops.

    Raises
    ------
    BadInput
        Numba is not installed; the sentence says how to install it.
    """
    try:
        from milp_planner.simulate import loops
    except ModuleNotFoundError as error:
        if error.name != "numba":
            raise
        raise BadInput(
            "the simulator needs numba, which is not installed: pip install 'milp-planner[routing]'"
        ) from None
    return loops


def _bucket(hashed: np.ndarray, buckets: int, capacity: int) -> np.ndarray:
    """Bucket of each hash: (hash mod slots) / slots of a bucket."""
    return (hashed % np.uint64(buckets * capacity) // np.uint64(capacity)).astype(np.int64)


def _tier(buckets: int, capacity: int, exists: bool) -> tuple[Any, ...]:
    """Row held by each slot, slots filled of each bucket; and the capacity of a bucket."""
    slots = buckets * capacity if exists else 0
    return np.full(slots, -1, np.int32), np.zeros(buckets, np.int32), capacity


def _ratio(part: IntArray, whole: IntArray) -> float:
    total = int(whole.sum())
    return int(part.sum()) / total if total else float("nan")
