"""The statistics that TorchRec prints for a plan, read back table by table.

The layout is that of ``EmbeddingStats`` of TorchRec (``planner/stats.py``, 1.0 to 1.9): between ``#
… #`` one row per table under the heading *Parameter Info*, columns separated by two blanks or more.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from milp_planner.errors import BadInput
from milp_planner.inputs import Model
from milp_planner.inputs.problems import one_of
from milp_planner.inputs.strict_yaml import dump
from milp_planner.pricing.options import MODE_OF_KERNEL

HEADING = "Parameter Info:"
SHARDING = {
    "DP": "data_parallel",
    "TW": "table_wise",
    "CW": "column_wise",
    "RW": "row_wise",
    "TWRW": "table_row_wise",
    "TWCW": "table_column_wise",
    "GS": "grid_shard",
}
_NEEDED = ("FQN", "Sharding", "Compute Kernel", "Emb Dim (CW Dim)", "Hash Size", "Ranks")
_APART = re.compile(r"\s{2,}")


@dataclass(frozen=True)
class StatsTable:
    """One row of the printout."""

    where: str
    """File and line, for error messages."""
    name: str
    """The module's path and the table, as printed."""
    sharding_type: str
    mode: str
    """Mode in this project's terms."""
    ratio: Fraction | None
    """Cache load factor of CACHING."""
    rows: int
    dim: int
    width: int | None
    """Columns of a shard, if columns are cut."""
    ranks: str
    """As printed, such as ``0-3,6``; TorchRec sorts them."""
    cell: dict[str, str]
    """All cells by their heading; dict of str to str."""


def is_stats(text: str) -> bool:
    """Whether a text is such a printout."""
    return text.lstrip().startswith("#") and HEADING in text


def read_stats(text: str, what: str) -> list[StatsTable]:
    """Every table of a printout; ``what`` is its name in error messages."""
    lines = _cells(text)
    header: list[str] | None = None
    found = []
    for number, cells in lines:
        if cells[0] == "FQN":
            header = cells
            _check_columns(header, _NEEDED, f"{what}:{number}")
        elif header is not None and not set("".join(cells)) <= {"-"}:
            if len(cells) != len(header):
                break
            found.append(_table(dict(zip(header, cells, strict=True)), f"{what}:{number}"))
    if header is None:
        raise BadInput(f"{what}: has no table under {HEADING!r}, as TorchRec's statistics have")
    if not found:
        raise BadInput(f"{what}: lists no table under {HEADING!r}")
    return _numbered(found)


def _numbered(tables: list[StatsTable]) -> list[StatsTable]:
    """Repeated names, as in anonymised printouts, get ``_2``, ``_3`` … appended."""
    seen, found = Counter[str](), []
    for table in tables:
        seen[table.name] += 1
        times = seen[table.name]
        found.append(table if times == 1 else replace(table, name=f"{table.name}_{times}"))
    return found


def _check_columns(there: Collection[str], needed: Sequence[str], where: str) -> None:
    for name in needed:
        if name not in there:
            raise BadInput(f"{where}: the printout has no column {name!r}")


def _cells(text: str) -> Iterator[tuple[int, list[str]]]:
    """Numbers and cells of the lines below the heading, up to an empty line."""
    below = False
    for number, line in enumerate(text.splitlines(), start=1):
        inner = line.strip().strip("#").strip()
        if inner == HEADING:
            below = True
        elif below and inner:
            yield number, _APART.split(inner)
        elif below:
            return


def _table(cell: dict[str, str], where: str) -> StatsTable:
    sharding = one_of(cell["Sharding"], SHARDING, f"{where}: Sharding")
    mode = one_of(cell["Compute Kernel"], MODE_OF_KERNEL, f"{where}: Compute Kernel")
    dim, _, width = cell["Emb Dim (CW Dim)"].partition(" ")
    return StatsTable(
        where=where,
        name=cell["FQN"],
        sharding_type=sharding,
        mode=mode,
        ratio=_ratio(cell.get("Cache Load Factor", ""), where) if mode == "CACHING" else None,
        rows=_whole(cell["Hash Size"], "Hash Size", where),
        dim=_whole(dim, "Emb Dim", where),
        width=_whole(width.strip("()"), "CW Dim", where) if width else None,
        ranks=cell["Ranks"],
        cell=cell,
    )


def _whole(text: str, what: str, where: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise BadInput(f"{where}: {what} is {text!r}; needs a whole number")
    return int(text)


def _ratio(text: str, where: str) -> Fraction:
    try:
        ratio = Fraction(text).limit_denominator(100)
    except (ValueError, ZeroDivisionError):
        ratio = Fraction(0)
    if not 0 < ratio < 1:
        raise BadInput(f"{where}: Cache Load Factor is {text!r}; needs one between 0 and 1")
    return ratio


#: Columns of the printout needed besides those that describe the plan.
NEEDED = ("Num Indices", "Sum Num Poolings", "Features", "Output", "Weighted", "Batch Sizes")
FIELDS = (
    "name", "rows", "dim", "output", "num_features", "weighted", "pooling_factor",
    "num_poolings", "sequence_length",
)  # fmt: skip


def model_files(
    stats: Sequence[StatsTable], name: str, dtype: str, optimizer: str, exchange: str = "fp32"
) -> tuple[str, str]:
    """The text of a model.yaml and of the tables.csv that it names.

    TorchRec's *Num Indices* are the ids of a sample over all features of a table: features ×
    poolings × pooling factor (or × sequence length). Element types and the optimizer are arguments
    because the printout does not contain them; lookups return the tables' type, as in its planner's
    estimates. BadInput for missing columns, cells that are not
    numbers, or tables of several batches.
    """
    if (batch := batch_of(stats)) is None:
        raise BadInput("the printout names no batch size")
    names = _short([table.name for table in stats])
    rows = [_model_row(table, short) for table, short in zip(stats, names, strict=True)]
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({**row, "weighted": str(row["weighted"]).lower()} for row in rows)
    head: dict[str, Any] = {
        "name": name,
        "source": "TorchRec's printed statistics",
        "workload": {"batch_per_rank": batch, "exchange_dtype": exchange},
        "defaults": {"dtype": dtype, "output_dtype": dtype, "optimizer": optimizer},
        "tables": {"csv": "tables.csv"},
    }
    tables = [{**head["defaults"], **{k: v for k, v in row.items() if v != ""}} for row in rows]
    Model.from_dict({**head, "tables": tables} | {"defaults": {}}, "the printout")
    return dump(head), text.getvalue()


def _model_row(table: StatsTable, short: str) -> dict[str, Any]:
    cell = table.cell
    _check_columns(cell, NEEDED, table.where)
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


def batch_of(stats: Sequence[StatsTable]) -> int | None:
    """The batch per rank that most tables name, if any; ``2560*4`` is that of four features."""
    named = [t.cell.get("Batch Sizes", "").partition("*")[0].partition(",")[0] for t in stats]
    sizes = Counter(int(text) for text in named if text.strip().isdigit())
    return sizes.most_common(1)[0][0] if sizes else None


def _short(names: Sequence[str]) -> list[str]:
    """Names without their common module path."""
    parts = [name.split(".") for name in names]
    shared = 0
    while all(len(p) > shared + 1 and p[shared] == parts[0][shared] for p in parts):
        shared += 1
    return [".".join(p[shared:]) for p in parts]
