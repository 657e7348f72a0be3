"""Do the published figures explain DLRMv4's out-of-memory failures under row-wise sharding?

Published (mlcommons/training PR 889: the comments of ``yambda_5b.gin`` and the logs): four nodes of
eight MI350X, 32 ranks of 1024 samples; album_id loads its hot rank 2.8 times the mean when
row-wise, artist_id 1.3 times. With the stock fp16 codec, which clamps a full fp32 copy, the job
died at window 235 on a temporary of 42.7 million rows. With a codec that casts first it died near
window 248: the hot rank used 208 to 238 GiB, then 16 GiB were free, then it needed more than 288.
With album_id and artist_id column-wise, in shards of 16 columns, it used 58%.

Method: the ledger gives what the hottest rank holds of embeddings and their exchange, for the
shipped model with every table in HBM, at the fullest moment of a step. What the rank holds besides
is calibrated on the 58% alone, with the low-memory codec, because the fixes came in the order of
their windows; the model states it as ``outside_embeddings``. Nothing else is fitted.

``benchmarks/dlrmv4/page.py`` writes docs/dlrmv4.md and its figure from this module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from milp_planner.inputs import Cluster, Model
from milp_planner.pricing.held import held_by
from milp_planner.pricing.ledger import (
    MOMENTS,
    RANK_ENTRIES,
    SHARD_ENTRIES,
    SHARD_NAMES,
)
from milp_planner.pricing.outside import exchange_bytes
from milp_planner.pricing.profile import load_profile
from scenarios import catalog
from scenarios.batch.vary import vary_cluster, vary_model

GIB = 2**30
CAPACITY = 288 * GIB
COLUMN_WISE_SHARE = 0.58
CODECS = ("stock", "low_memory")
BURST_ROWS = 42_700_000
"""Rows of the temporary on which the stock codec failed (81.5 GiB of 512 floats)."""
PUBLISHED = {
    "steady, from": 208 * GIB,
    "steady, to": 238 * GIB,
    "before the crash (16 GiB free)": CAPACITY - 16 * GIB,
    "crash": CAPACITY,
}
"""What the hot rank held, row-wise with the low-memory codec."""
LENGTHS = {
    2627: "2.69 million ids per rank and table, measured on batches of 1024: the model's",
    2663: "the history that the default strategy (interleaved) gathers, as measured",
    4085: "the history that the strategy last_n gathers, as measured",
    2048: "max_seq_len of the first runs",
    2039: "history_length of the first runs",
    1638: "40% of 4096, the fill of the B200 log",
}
"""Ids per sample of the three sequence tables, with their sources."""
MOVED = ("artist_id", "album_id")
SEQUENCES = ("item_id", *MOVED)


@dataclass(frozen=True)
class Hot:
    """The busiest rank: its embeddings and their exchange, in bytes.

    Attributes
    ----------
    moments : dict of str to int
        Everything alive at each moment of a step.
    entries : dict of str to int
        The ledger's entries at the fullest moment.
    rows : float
        Embeddings that the rank returns in the worst step, in full rows.
    """

    moments: dict[str, int]
    entries: dict[str, int]
    rows: float

    @property
    def need(self) -> int:
        """Bytes at the fullest moment."""
        return max(self.moments.values())


@cache
def run() -> tuple[Model, Cluster]:
    """The shipped model on the 32 ranks of the run, whose hosts had no memory to spare."""
    cluster = vary_cluster(catalog.find_cluster("4x8xmi350x"), {"ddr": 0})
    return catalog.find_model("dlrmv4-yambda5b"), cluster


@cache
def hot(
    column_wise: tuple[str, ...] = (),
    codec: str = "low_memory",
    peak: float | None = None,
    batch: int = 1024,
    length: float = 2627,
    dedup: bool = False,
) -> Hot:
    """The busiest rank of the run.

    Parameters
    ----------
    column_wise : tuple of str
        Tables cut into one shard of columns per rank; all others are row-wise.
    codec : {"stock", "low_memory"}
    peak : float, optional
        Load of the hot rank over the mean in the worst batch, for artist_id and album_id where they
        are row-wise; by default their measured averages, with the tail that the planner assumes.
    batch, length, dedup
        Samples per rank, ids per sample of the sequence tables, and whether equal ids are sent
        once.
    """
    model, cluster = run()
    axes: dict[str, Any] = {
        "codec": codec, "batch": batch, "sequence_length": length, "dedup": dedup
    }  # fmt: skip
    if peak is not None:
        axes["peak_skew"] = peak
    varied, ranks = vary_model(model, axes, MOVED, ranks=cluster.num_ranks), cluster.num_ranks
    names = [
        f"column_wise:{ranks}/HBM_ONLY" if table.name in column_wise else "row_wise/HBM_ONLY"
        for table in varied.tables
    ]
    held = held_by(varied, cluster, load_profile(cluster.profile), names)
    assert held is not None, names
    first = held.ledger[held.first[:-1]].sum(axis=0)  # rank 0 has a full block of every table
    own = dict(zip(SHARD_NAMES, first.tolist(), strict=True))
    amounts = own | exchange_bytes(varied, ranks)
    moments = {
        moment: {
            entry.name: amounts[entry.name]
            for entry in (*SHARD_ENTRIES, *RANK_ENTRIES)
            if moment in entry.moments and amounts[entry.name]
        }
        for moment in MOMENTS
    }
    totals = {moment: sum(entries.values()) for moment, entries in moments.items()}
    [row] = {table.dim * table.element_bytes for table in model.tables}
    return Hot(totals, moments[max(totals, key=lambda m: totals[m])], own["output"] / row)


def calibrated() -> int:
    """Bytes outside the embeddings with which the column-wise run uses 58%."""
    return int(COLUMN_WISE_SHARE * CAPACITY) - hot(MOVED).need


def outside() -> int:
    """Bytes outside the embeddings, as the shipped model states them."""
    said = run()[0].outside_embeddings
    assert said is not None
    assert said.measured_peak is not None
    return said.measured_peak


def burst(length: float = 2627) -> float:
    """Load over the mean at which the three sequence tables return :data:`BURST_ROWS`."""
    return _least(lambda peak: hot(peak=peak, length=length).rows, BURST_ROWS)


def peak_for(total: int) -> float:
    """Load over the mean at which the hot rank, row-wise with the low-memory codec, holds ``total``
    bytes."""
    return _least(lambda peak: hot(peak=peak).need + outside(), total)


def _least(grows: Callable[[float], float], wanted: float) -> float:
    """Where an increasing function reaches a value, between 1 and the number of ranks, to 1e-4."""
    low, high = 1.0, float(run()[1].num_ranks)
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if grows(middle) < wanted else (low, middle)
    return high


def kept() -> int:
    """Bytes of a rank that a plan may use: all but the headroom that must stay free."""
    return int(CAPACITY * (1 - run()[1].reservations.min_headroom / 100))


def largest_batch(peak: float) -> int:
    """Samples per rank with which the burst still fits, row-wise with the low-memory codec."""
    low, high = 0, 1024
    while high - low > 1:
        middle = (low + high) // 2
        fits = hot(peak=peak, batch=middle).need + outside() <= kept()
        low, high = (middle, high) if fits else (low, middle)
    return low
