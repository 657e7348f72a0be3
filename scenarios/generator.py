"""Production-like models of any size; the same seed gives the same model on every machine."""

from __future__ import annotations

import math
import random
from typing import Any

from milp_planner.errors import BadInput
from milp_planner.inputs import Model
from milp_planner.inputs.problems import choice
from milp_planner.inputs.quantities import parse_count

KINDS = ("torchrec", "dynamicemb", "mixed")
MAX_TABLES = 100_000

DIMS = (16, 32, 64, 96, 128, 192, 256)
"""Dims, drawn uniformly."""

ROWS = (10**4, 10**8)
"""Range of the rows, drawn log-uniformly: every power of ten equally often."""

POOLING = (1.0, 50.0)
"""Range of the pooling factor, drawn log-uniformly: a mean of 49/ln 50 = 12.5, next to the 13.6
of the 788 production-like tables of facebookresearch/dlrm_datasets (2022)."""

ALPHA = (0.6, 1.2)
"""Range of the Zipf exponent, drawn uniformly; assumed, because no such statistic is published."""

SEQUENCE_SHARE = 0.2
"""Share of the dynamicemb tables that return sequences instead of sums."""


def generate(
    tables: int,
    seed: int = 0,
    kind: str = "torchrec",
    *,
    batch: int = 1024,
    max_rows: int = ROWS[1],
) -> Model:
    """Generate a model with log-uniform rows, mixed dims, pooling and skew.

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
        Largest number of rows, at least 10,000; the smallest is 10,000.

    Raises
    ------
    BadInput
        For a number out of range or an unknown kind.
    """
    if kind not in KINDS:
        raise BadInput(f"generated model: kind: found {kind!r}; {choice(kind, KINDS)}")
    _check_range("tables", tables, 0, MAX_TABLES)
    _check_range("batch", batch, 1, 2**31)
    _check_range("max_rows", max_rows, ROWS[0], 2**50)
    draw = random.Random(seed)
    return Model.from_dict(
        {
            "name": f"generated-{tables}-{seed}-{kind}",
            "description": "Synthetic: log-uniform rows, mixed dims, pooling and Zipf skew.",
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
    rows, dim, lookups, skew, which, shape = (draw.random() for _ in range(6))
    dynamic = kind == "dynamicemb" or (kind == "mixed" and which < 0.5)
    sequence = dynamic and shape < SEQUENCE_SHARE
    length = round(_log_uniform(lookups, *POOLING), 2)
    return {
        "name": f"t{number:05d}",
        "rows": round(_log_uniform(rows, ROWS[0], max_rows)),
        "dim": DIMS[int(dim * len(DIMS))],
        "kind": "dynamicemb" if dynamic else "torchrec",
        "output": "sequence" if sequence else "pooled",
        "sequence_length" if sequence else "pooling_factor": length,
        "optimizer": "adam" if dynamic else "rowwise_adagrad",
        "access": {"kind": "zipf", "alpha": round(ALPHA[0] + skew * (ALPHA[1] - ALPHA[0]), 3)},
    }


def _log_uniform(share: float, low: float, high: float) -> float:
    return low * math.exp(share * math.log(high / low))


def _check_range(name: str, value: int, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise BadInput(f"generated model: {name}: found {value!r}; allowed: {low} to {high}")
