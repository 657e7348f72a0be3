"""Does the published skew explain DLRMv4's out-of-memory failures under row-wise sharding?

Published (mlcommons/training PR 889: the comments of ``yambda_5b.gin`` and the logs): four nodes of
eight MI350X, 32 ranks of 1024 samples; album_id loads its hot rank 2.8 times the mean when
row-wise, artist_id 1.3 times. With the stock fp16 codec, which holds 2.5 times its input at its
peak, the job died at window 235 on a temporary of 42.7 million rows. With the low-memory codec
(1.5 times) it died near window 248: the hot rank stood at 208 to 238 GiB, then 16 GiB were free,
then it needed more than 288. With album_id and artist_id column-wise it sat at 58%.

Method: the memory outside the embeddings (dense part, activations, allocator) is calibrated on the
58% alone; everything else is the planner's own price of the shipped model, nothing is fitted. Which
codec ran at the 58% is not said: the low-memory one, if the fixes came in the order of their
windows. Both are shown.

``benchmarks/dlrmv4/page.py`` writes docs/dlrmv4.md and its figure from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.files import load_cluster, load_model
from milp_planner.pricing import Options, price
from milp_planner.pricing.ledger import SHARD_NAMES

GIB = 2**30
CAPACITY = 288 * GIB
COLUMN_WISE_SHARE = 0.58
CODECS = {"low-memory": 1.5, "stock": 2.5}
"""Peak of the exchange's codec over its input: cast first, or with a full fp32 temporary."""
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
    2627: "2.69 million ids a rank and table, measured on batches of 1024: the model's",
    2663: "the history that the default strategy (interleaved) gathers, as measured",
    4085: "the history that the strategy last_n gathers, as measured",
    1638: "40% of 4096, the fill of the B200 log",
}
"""Ids a sample of the three sequence tables, with their sources."""
MOVED = ("album_id", "artist_id")
SEQUENCES = ("item_id", *MOVED)
_SHIPPED = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Hot:
    """The busiest rank under one way of sharding.

    Attributes
    ----------
    tables : int
        Bytes of rows, optimizer state and ids.
    rows : float
        Embeddings it returns in a step.
    row_bytes : int
        Of one embedding as the codec gets it.
    """

    tables: int
    rows: float
    row_bytes: int

    def need(self, codec: float, outside: int, rows: float | None = None) -> int:
        """Bytes in all, with the exchange at its codec's peak; ``rows`` in place of its own."""
        returned = self.rows if rows is None else rows
        return self.tables + outside + round(returned * self.row_bytes * codec)

    def rows_for(self, total: int, codec: float, outside: int) -> float:
        """Rows with which it would hold so many bytes."""
        return (total - self.tables - outside) / (self.row_bytes * codec)


@dataclass(frozen=True)
class Study:
    """Both shardings on one number of ranks.

    Attributes
    ----------
    ranks : int
    column, row : Hot
        album_id and artist_id column-wise, the others row-wise; all row-wise.
    """

    ranks: int
    column: Hot
    row: Hot

    def outside(self, codec: float) -> int:
        """Bytes outside the embeddings if that codec ran when 58% were in use."""
        return int(COLUMN_WISE_SHARE * CAPACITY) - self.column.need(codec, 0)


def study(machines: int = 4, length: int | None = None) -> Study:
    """Price both shardings on machines of eight MI350X.

    Parameters
    ----------
    machines : int
        4 as it ran.
    length : int, optional
        Ids a sample of the sequence tables; default: the model's.
    """
    model = load_model(_SHIPPED / "models" / "dlrmv4-yambda5b.yaml")
    if length is not None:
        model = _with_length(model, length)
    cluster = _cluster(machines)
    options = price(model, cluster)
    return Study(cluster.num_ranks, _hot(model, options, MOVED), _hot(model, options, ()))


def _cluster(machines: int) -> Cluster:
    data = load_cluster(_SHIPPED / "clusters" / "8xmi350x.yaml").to_dict()
    return Cluster.from_dict({**data, "machines": data["machines"] * machines})


def _with_length(model: Model, length: int) -> Model:
    tables = tuple(
        t.model_copy(update={"sequence_length": float(length)}) if t.name in SEQUENCES else t
        for t in model.tables
    )
    return model.model_copy(update={"tables": tables})


def _hot(model: Model, options: Options, column_wise: tuple[str, ...]) -> Hot:
    """The fullest shard of every table on one rank: all tables in HBM."""
    entries = [
        _fullest(options, index, table.name in column_wise)
        for index, table in enumerate(model.tables)
    ]
    [row_bytes] = {table.dim * table.element_bytes for table in model.tables}
    priced = options.entries
    ids = priced.ledger[entries, SHARD_NAMES.index("inputs")] - priced.incoming[entries]
    return Hot(
        tables=int((priced.hbm[entries] - ids).sum()),
        rows=float(priced.outgoing[entries].sum() / row_bytes),
        row_bytes=row_bytes,
    )


def _fullest(options: Options, table: int, by_columns: bool) -> int:
    """Its shard entry: row-wise, or one shard of columns on every rank."""
    ranks = options.cluster.num_ranks
    name = f"column_wise:{ranks}/HBM_ONLY" if by_columns else "row_wise/HBM_ONLY"
    first, stop = options.entries.first[options.index(table, name) :][:2]
    return int(first + np.argmax((options.entries.hbm + options.entries.buffer)[first:stop]))


def distinct_rows(machines: int = 4) -> float:
    """Rows that all hot ranks together could return in a step with deduplication on."""
    model = load_model(_SHIPPED / "models" / "dlrmv4-yambda5b.yaml")
    ids = [model.workload.batch_per_rank * model.table(n).lookups_per_sample for n in SEQUENCES]
    shares = [model.table(name).access.unique_fraction or 1.0 for name in SEQUENCES]
    ranks = _cluster(machines).num_ranks
    return ranks * sum(n * share for n, share in zip(ids, shares, strict=True))
