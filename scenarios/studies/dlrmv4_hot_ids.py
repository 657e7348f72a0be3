"""Does the published skew explain DLRMv4's out-of-memory failure under row-wise sharding?

Facts (mlcommons/training PR 889 and its logs): with album_id and artist_id row-wise, the rank that
owns their popular ids ran out of 288 GiB; with the two tables column-wise it sat at 58%. Row-wise
its load is about 2.8 times the mean for album_id and 1.3 times for artist_id, and the fp16 codec
needs 2.5 times its input at its peak.

Method: the memory outside the embeddings (dense part, activations, allocator) is calibrated on the
column-wise figure alone, 58% of 288 GiB. Everything else is predicted, nothing is fitted.

Run ``python -m scenarios.studies.dlrmv4_hot_ids`` for the table of docs/dlrmv4.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.files import load_cluster, load_model
from milp_planner.options import Options, price

GIB = 2**30
CAPACITY = 288 * GIB
COLUMN_WISE_SHARE = 0.58
"""Share of the hot rank's memory in use after the two tables went column-wise (published)."""
FULL_CODEC, LOW_MEMORY_CODEC = 2.5, 1.5
"""Peak over input: input, fp32 temporary and fp16 result; and without the temporary."""
PUBLISHED_ROWS = 42_700_000
"""Rows of the fp32 temporary on the hot rank when it failed (published, 81.5 GiB)."""
MOVED = ("album_id", "artist_id")
_SHIPPED = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Need:
    """What one rank needs under one way of sharding the two hot tables.

    Attributes
    ----------
    name : str
    tables : int
        Bytes of rows, optimizer state and ids.
    buffers : int
        Bytes of exchange buffers at the codec's peak.
    outside : int
        Bytes outside the embeddings, as calibrated.
    """

    name: str
    tables: int
    buffers: int
    outside: int

    @property
    def total(self) -> int:
        """Bytes in all."""
        return self.tables + self.buffers + self.outside

    @property
    def fits(self) -> bool:
        """Whether a rank's 288 GiB are enough."""
        return self.total <= CAPACITY


@dataclass(frozen=True)
class Study:
    """The answer for one number of ranks.

    Attributes
    ----------
    ranks : int
    needs : tuple of Need
        Column-wise (the calibration), row-wise, row-wise with the low-memory codec.
    burst : tuple of Need
        Row-wise with either codec if the hot rank returned the published 42.7 million rows.
    hot_rows : float
        Rows the hot rank is predicted to return in a step, to compare with 42.7 million.
    explaining_load : float
        Load of the hot rank (times the mean, all three sequence tables together) at which
        row-wise would just exceed 288 GiB.
    """

    ranks: int
    needs: tuple[Need, ...]
    burst: tuple[Need, ...]
    hot_rows: float
    explaining_load: float

    @property
    def explains(self) -> bool:
        """Whether row-wise is predicted to fail and column-wise to fit."""
        return self.needs[0].fits and not self.needs[1].fits


def study(machines: int = 1) -> Study:
    """Predict the per-rank need on machines of eight MI350X.

    Parameters
    ----------
    machines : int
        1 is the published single node.
    """
    model = load_model(_SHIPPED / "models" / "dlrmv4-yambda5b.yaml")
    cluster = _cluster(machines)
    column = _parts(model, cluster, FULL_CODEC, MOVED)
    outside = int(COLUMN_WISE_SHARE * CAPACITY) - sum(column)
    row = _parts(model, cluster, FULL_CODEC, ())
    low = _parts(model, cluster, LOW_MEMORY_CODEC, ())
    rows = _hot_rows(model, cluster)
    mean = sum(_ids(model)) or 1.0
    per_load = row[1] / (rows / mean)
    limit = (CAPACITY - outside - row[0]) / per_load
    needs = (
        Need("album_id, artist_id column-wise", *column, outside),
        Need("all row-wise", *row, outside),
        Need("all row-wise, low-memory codec", *low, outside),
    )
    scale = PUBLISHED_ROWS / rows
    burst = (
        Need("the same with the published burst", row[0], round(row[1] * scale), outside),
        Need("the same, low-memory codec", low[0], round(low[1] * scale), outside),
    )
    return Study(cluster.num_ranks, needs, burst, rows, limit)


def _cluster(machines: int) -> Cluster:
    one = load_cluster(_SHIPPED / "clusters" / "8xmi350x.yaml")
    data = one.to_dict()
    return Cluster.from_dict({**data, "machines": data["machines"] * machines})


def _ids(model: Model) -> Iterator[float]:
    """Ids of one rank's batch, table by table."""
    return (model.workload.batch_per_rank * t.lookups_per_sample for t in model.tables)


def _parts(
    model: Model, cluster: Cluster, codec: float, column_wise: tuple[str, ...]
) -> tuple[int, int]:
    """Bytes of tables and of buffers on the busiest rank, all tables in HBM."""
    workload = model.workload.model_copy(update={"codec_peak_factor": codec})
    options = price(model.model_copy(update={"workload": workload}), cluster)
    entries = [
        _hottest(options, index, table.name in column_wise)
        for index, table in enumerate(model.tables)
    ]
    hbm, buffer = options.entries.hbm[entries], options.entries.buffer[entries]
    return int(hbm.sum()), int(buffer.sum())


def _hottest(options: Options, table: int, by_columns: bool) -> int:
    """The fullest shard entry: row-wise, or one shard of columns on every rank."""
    ranks = options.cluster.num_ranks
    name = f"column_wise:{ranks}/HBM_ONLY" if by_columns else "row_wise/HBM_ONLY"
    first, stop = options.entries.first[options.index(table, name) :][:2]
    return int(first + np.argmax((options.entries.hbm + options.entries.buffer)[first:stop]))


def _hot_rows(model: Model, cluster: Cluster) -> float:
    """Embeddings the hot rank returns in a step, row-wise."""
    options = price(model, cluster)
    width = np.array([t.dim * t.element_bytes for t in model.tables])
    entries = [_hottest(options, index, False) for index in range(len(model.tables))]
    factor = model.workload.codec_peak_factor
    return float((options.entries.buffer[entries] / (width * factor)).sum())


def table(studies: list[Study]) -> str:
    """The results as a Markdown table, in GiB."""
    lines = [
        "| ranks | sharding | tables | buffers | outside | need | of 288 GiB |",
        "|---|---|---|---|---|---|---|",
    ]
    for found in studies:
        for need in (*found.needs, *found.burst):
            parts = (need.tables, need.buffers, need.outside, need.total)
            cells = " | ".join(f"{part / GIB:.1f}" for part in parts)
            share = f"{100 * need.total / CAPACITY:.0f}%"
            lines.append(f"| {found.ranks} | {need.name} | {cells} | {share} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table and the two figures beside it, for 8 and 16 ranks."""
    studies = [study(machines) for machines in (1, 2)]
    print(table(studies))
    for found in studies:
        print(
            f"{found.ranks} ranks: hot rank returns {found.hot_rows / 1e6:.1f}M rows "
            f"(published at the failure: {PUBLISHED_ROWS / 1e6:.1f}M); row-wise exceeds 288 GiB "
            f"from {found.explaining_load:.2f} times the mean load; "
            f"explained: {'yes' if found.explains else 'no'}"
        )


if __name__ == "__main__":
    main()
