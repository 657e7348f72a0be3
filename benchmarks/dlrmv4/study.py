"""What DLRMv4's runs say about memory, and what the ledger says of its hot rank.

The facts are ``facts.yaml``: mlcommons/training PR 889 (comments of its
``yambda_5b.gin`` and its logs) and later reports, each with its source. Four nodes of eight MI350X,
32 ranks of 1024 samples, all tables row-wise: with the stock fp16 codec the job died at window 235,
with one that casts before it clamps at window 248. With album_id and artist_id column-wise, which
is four shards of 128 columns, the hot rank used 58%.

``hypotheses.py`` holds every hypothesis against every fact; the shipped model states the outside of
the one that it chooses. ``page.py`` writes docs/dlrmv4.md and its figure from this module.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.dlrmv4.facts import Fact, Facts, read_facts
from benchmarks.dlrmv4.hypotheses import (
    LEDGER_COPIES,
    Counts,
    Evidence,
    Hypothesis,
    RankBytes,
    Verdict,
    hypotheses,
    rank_of,
    weigh,
)
from milp_planner.inputs import Cluster, Model
from scenarios import catalog
from scenarios.batch.vary import vary_cluster, vary_model

GIB = 2**30
CAPACITY = 288 * GIB
CODECS = ("stock", "low_memory")
ENCODING = {"stock": 1.5, "low_memory": 0.5}
"""A codec's further bytes over its input, as the ledger counts them."""
BURST_ROWS = 42_700_000
"""Rows of the temporary on which the stock codec failed (81.5 GiB of 512 floats)."""
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
RANKS = 32


@cache
def facts() -> Facts:
    """The published facts and the assumptions to hold against them."""
    return read_facts(Path(__file__).with_name("facts.yaml"))


@cache
def evidence() -> Evidence:
    """Every hypothesis against every fact."""
    return weigh(facts(), catalog.find_model(facts().model))


def tried() -> dict[str, Hypothesis]:
    """The hypotheses by their names."""
    return {str(each): each for each in hypotheses(facts())}


def verdict(copies: int, layout: str) -> Verdict:
    """The verdict on a number of copies and a column-wise layout, with both codecs as read."""
    for each in evidence().verdicts:
        found = tried()[each.hypothesis]
        as_read = found.copies == copies and found.encoding == ENCODING
        if as_read and found.layouts["column_wise"] == layout:
            return each
    raise LookupError((copies, layout))


@cache
def run() -> tuple[Model, Cluster]:
    """The shipped model on the 32 ranks of the run, whose hosts had no memory to spare."""
    cluster = vary_cluster(catalog.find_cluster("4x8xmi350x"), {"ddr": 0})
    return catalog.find_model("dlrmv4-yambda5b"), cluster


@cache
def hot(  # noqa: PLR0913 - the axes of the study
    layout: str = "row_wise",
    codec: str = "low_memory",
    rows: int | None = None,
    peak: float | None = None,
    batch: int = 1024,
    length: float = 2627,
    dedup: bool = False,
    copies: int = LEDGER_COPIES,
) -> RankBytes:
    """The busiest rank of the run.

    Parameters
    ----------
    layout : str
        What it holds: a layout of the facts, or ``album_id`` for that table alone cut.
    codec : {"stock", "low_memory"}
    rows : int, optional
        Rows that it returns in the worst batch; by default the model's measured averages, with the
        tail that the planner assumes.
    peak : float, optional
        Instead, the load of the hot rank over the mean for artist_id and album_id.
    batch, length, dedup
        Samples per rank, ids per sample of the sequence tables, and whether equal ids are sent
        once.
    copies : int
        Of the looked-up rows.
    """
    axes: dict[str, Any] = {"sequence_length": length}
    if peak is not None:
        axes["peak_skew"] = peak
    model = vary_model(run()[0], axes, MOVED, ranks=RANKS)
    holds = facts().layouts.get(layout, {"album_id": "column_wise:4", "others": "row_wise"})
    asked = Fact.from_dict(
        {"name": layout, "source": "this study", "layout": layout, "ranks": RANKS, "cap": CAPACITY,
         "outcome": "ok", "batch": batch, "codec": codec, "dedup": dedup}
    )  # fmt: skip
    return rank_of(model, asked, holds).bytes(Counts(copies, ENCODING[codec]), rows)


def outside() -> int:
    """Bytes outside the embeddings, as the shipped model states them."""
    said = run()[0].outside_embeddings
    assert said is not None
    assert said.measured_peak is not None
    return said.measured_peak


def burst(length: float = 2627) -> float:
    """Load over the mean at which the three sequence tables return :data:`BURST_ROWS`."""
    return _least(lambda peak: hot(peak=peak, length=length).rows, BURST_ROWS)


def rows_that_fill(total: int, copies: int = LEDGER_COPIES, held_outside: int | None = None) -> int:
    """Rows at which the hot rank, row-wise with the low-memory codec, holds ``total`` bytes."""
    rest = outside() if held_outside is None else held_outside
    found = _least(
        lambda millions: hot(rows=int(millions * 1e6), copies=copies).need + rest, total, 14.0, 258
    )
    return int(found * 1e6)


def _least(
    grows: Callable[[float], float], wanted: float, low: float = 1.0, high: float = float(RANKS)
) -> float:
    """Where an increasing function reaches a value, to 1e-4."""
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if grows(middle) < wanted else (low, middle)
    return high


def kept() -> int:
    """Bytes of a rank that a plan may use: all but the headroom that must stay free."""
    return int(CAPACITY * (1 - run()[1].reservations.min_headroom / 100))


def largest_batch(peak: float) -> int:
    """Samples per rank with which the load still fits, row-wise with the low-memory codec."""
    low, high = 0, 4096
    while high - low > 1:
        middle = (low + high) // 2
        fits = hot(peak=peak, batch=middle).need + outside() <= kept()
        low, high = (middle, high) if fits else (low, middle)
    return low
