"""Production-like models of any size; the same seed gives the same model on every machine.

A table has the rows, the ids a sample and the popularity of one of the 856 tables of Meta's DLRM
data set, drawn evenly from those that ship as ``dlrm-856``. The data set tells no widths: they are
drawn evenly from those that NeuroShard's tasks give its tables. Which kind a table is, and its
output, are assumed.
"""

from __future__ import annotations

import random
from typing import Any

from milp_planner.errors import BadInput
from milp_planner.inputs import Model
from milp_planner.inputs.problems import choice
from milp_planner.inputs.quantities import parse_count
from scenarios.literature import known_tables

KINDS = ("torchrec", "dynamicemb", "mixed")
MAX_TABLES = 100_000

DIMS = (4, 8, 16, 32, 64, 128)
"""Dims, drawn evenly, as in daochenzha/neuroshard, ``tools/gen_tasks.py``."""

LEAST_ROWS, MOST_ROWS = 100, 12_543_670
"""Rows of the smallest and the largest of the 856 tables."""

SEQUENCE_SHARE = 0.2
"""Share of the dynamicemb tables that return sequences instead of sums."""


def generate(
    tables: int,
    seed: int = 0,
    kind: str = "torchrec",
    *,
    batch: int = 1024,
    max_rows: int = MOST_ROWS,
) -> Model:
    """Generate a model whose tables are drawn from ``dlrm-856``, with dims of NeuroShard's tasks.

    The first n tables of a model are the model of n tables with the same seed.

    Parameters
    ----------
    tables
        Number of tables, up to 100,000.
    seed
        Seed of the random numbers.
    kind
        ``torchrec``, ``dynamicemb``, or ``mixed`` (each table is either, with equal chance).
    batch
        Samples per rank and step.
    max_rows
        Rows of the largest table that can be drawn, at least 10,000; all others are scaled with it,
        but have at least 100. By default 12,543,670, as published.

    Raises
    ------
    BadInput
        For a number out of range or an unknown kind.
    """
    if kind not in KINDS:
        raise BadInput(f"generated model: kind: found {kind!r}; {choice(kind, KINDS)}")
    _check_range("tables", tables, 0, MAX_TABLES)
    _check_range("batch", batch, 1, 2**31)
    _check_range("max_rows", max_rows, 10**4, 2**50)
    draw = random.Random(seed)
    return Model.from_dict(
        {
            "name": f"generated-{tables}-{seed}-{kind}",
            "description": "Synthetic: tables drawn from the 856 of Meta's DLRM data set "
            "(dlrm-856), dims from those of NeuroShard's tasks; kind and output are assumed.",
            "source": f"scenarios.generator, tables={tables}, seed={seed}, kind={kind}, "
            f"batch={batch}, max_rows={max_rows}",
            "workload": {"batch_per_rank": batch},
            "tables": [_table(number, draw, kind, max_rows) for number in range(tables)],
        }
    )


def from_text(text: str) -> Model:
    """The model that ``tables=1000,seed=0,kind=torchrec`` describes.

    Raises
    ------
    BadInput
        For an unknown or repeated key, a missing number of tables, or a wrong value.
    """
    where = f"generated:{text}"
    options: dict[str, Any] = {}
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or key not in _READERS:
            raise BadInput(f"{where}: found {part!r}, not key=value; {choice(key, _READERS)}")
        if key in options:
            raise BadInput(f"{where}: the key {key} is written twice")
        try:
            options[key] = _READERS[key](value)
        except ValueError as error:
            raise BadInput(f"{where}: {key}: {error}") from None
    if "tables" not in options:
        raise BadInput(f"{where}: tables is missing; write for instance generated:tables=1000")
    return generate(**options)


_READERS: dict[str, Any] = {
    "tables": parse_count,
    "seed": parse_count,
    "kind": str,
    "batch": parse_count,
    "max_rows": parse_count,
}


def _table(number: int, draw: random.Random, kind: str, max_rows: int) -> dict[str, Any]:
    """One table; always the same number of draws, so that later tables do not depend on it."""
    which, dim, library, shape = (draw.random() for _ in range(4))
    drawn = known_tables()[int(which * len(known_tables()))]
    dynamic = kind == "dynamicemb" or (kind == "mixed" and library < 0.5)
    sequence = dynamic and shape < SEQUENCE_SHARE
    return {
        "name": f"t{number:05d}",
        "rows": max(LEAST_ROWS, drawn["rows"] * max_rows // MOST_ROWS),
        "dim": DIMS[int(dim * len(DIMS))],
        "kind": "dynamicemb" if dynamic else "torchrec",
        "output": "sequence" if sequence else "pooled",
        "sequence_length" if sequence else "pooling_factor": drawn["pooling_factor"],
        "optimizer": "adam" if dynamic else "rowwise_adagrad",
        "access": drawn["access"],
    }


def _check_range(name: str, value: int, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise BadInput(f"generated model: {name}: found {value!r}; allowed: {low} to {high}")
