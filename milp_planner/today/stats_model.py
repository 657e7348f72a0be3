"""A model from the statistics that TorchRec prints: rows, dims, poolings and batch, as printed."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from typing import Any

import yaml

from milp_planner.errors import BadInput
from milp_planner.inputs import Model
from milp_planner.today.torchrec_stats import StatsTable

#: Of the printout, beside those that name the plan.
NEEDED = ("Num Indices", "Sum Num Poolings", "Features", "Output", "Weighted", "Batch Sizes")
FIELDS = (
    "name", "rows", "dim", "output", "num_features", "weighted", "pooling_factor",
    "num_poolings", "sequence_length",
)  # fmt: skip


def model_files(
    stats: Sequence[StatsTable], name: str, dtype: str, optimizer: str, exchange: str = "fp32"
) -> tuple[str, str]:
    """The text of a model.yaml and of the tables.csv that it names.

    What TorchRec calls *Num Indices* is the ids of a sample over all features of a table:
    features × poolings × pooling factor (or × sequence length).

    Parameters
    ----------
    stats : sequence of StatsTable
    name : str
        Of the model.
    dtype, optimizer, exchange : str
        Element type and optimizer of all tables, and element type on the wire: the printout says
        none of them.

    Raises
    ------
    BadInput
        For columns the printout lacks, cells that are no numbers, or tables of several batches.
    """
    names = _short([table.name for table in stats])
    rows = [_row(table, short) for table, short in zip(stats, names, strict=True)]
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({**row, "weighted": str(row["weighted"]).lower()} for row in rows)
    head: dict[str, Any] = {
        "name": name,
        "source": "TorchRec's printed statistics",
        "workload": {"batch_per_rank": _batch(stats), "exchange_dtype": exchange},
        "defaults": {"dtype": dtype, "optimizer": optimizer},
        "tables": {"csv": "tables.csv"},
    }
    tables = [{**head["defaults"], **{k: v for k, v in row.items() if v != ""}} for row in rows]
    Model.from_dict({**head, "tables": tables} | {"defaults": {}}, "the printout")
    return yaml.safe_dump(head, sort_keys=False), text.getvalue()


def _row(table: StatsTable, short: str) -> dict[str, Any]:
    for column in NEEDED:
        if column not in table.cell:
            raise BadInput(f"{table.where}: the printout has no column {column!r}")
    cell = table.cell
    ids, poolings = (_number(cell[key], key, table.where) for key in NEEDED[:2])
    features = max(1, round(_number(cell["Features"], "Features", table.where)))
    sequence = cell["Output"] == "sequence"
    return {
        "name": short,
        "rows": table.rows,
        "dim": table.dim,
        "output": cell["Output"],
        "num_features": features,
        "weighted": cell["Weighted"] == "weighted",
        "pooling_factor": "" if sequence else _digits(ids / poolings if poolings else 0.0),
        "num_poolings": "" if sequence or not poolings else _digits(poolings / features),
        "sequence_length": _digits(ids / features) if sequence else "",
    }


def _number(text: str, what: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e15:
        raise BadInput(f"{where}: {what} is {text!r}; needs a number")
    return value


def _digits(value: float) -> float:
    return float(f"{value:.6g}")


def _batch(stats: Sequence[StatsTable]) -> int:
    """The batch a rank that the tables name most; ``2560*4`` is that of four features."""
    named = [table.cell["Batch Sizes"].partition("*")[0].partition(",")[0] for table in stats]
    sizes = Counter(int(text) for text in named if text.strip().isdigit())
    if not sizes:
        raise BadInput("the printout names no batch size")
    return sizes.most_common(1)[0][0]


def _short(names: Sequence[str]) -> list[str]:
    """Names without the module path that all of them begin with."""
    parts = [name.split(".") for name in names]
    shared = 0
    while all(len(p) > shared + 1 and p[shared] == parts[0][shared] for p in parts):
        shared += 1
    return [".".join(p[shared:]) for p in parts]
