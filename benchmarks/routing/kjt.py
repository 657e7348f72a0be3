"""A KeyedJaggedTensor routed by ours and by TorchRec's call, in one process, call by call in turn.

``python benchmarks/routing/kjt.py -o benchmarks/routing/results/kjt/DATE.json`` (needs the extras
``routing`` and ``torchrec``; half a minute). TorchRec's call is
``bucketize_kjt_before_all2all``: FBGEMM's operator, then a KeyedJaggedTensor. Both return one with
weights, and the unbucketize indices; both are compared before anything is timed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torchrec.distributed.embedding_sharding import bucketize_kjt_before_all2all
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.routing.cpu import environment, seconds
from cuda_routing import bucketize_kjt

FEATURES, ROWS = 26, 40_000_000


@dataclass(frozen=True)
class Cell:
    """One batch and rule; milliseconds are medians, ratios TorchRec's time over ours by pair."""

    batch: int
    pooling: int
    ranks: int
    rule: str
    dtype: str
    torchrec_ms: float | None
    ours_ms: float
    ratio_median: float | None
    ratio_min: float | None
    ratio_max: float | None


def batch_of(batch: int, pooling: int, dtype: torch.dtype) -> Any:
    """26 features of ragged bags, 0 to twice ``pooling`` ids each, with weights."""
    generator = np.random.default_rng(0)
    lengths = generator.integers(0, 2 * pooling + 1, FEATURES * batch)
    keys = generator.integers(0, ROWS, int(lengths.sum()))
    return KeyedJaggedTensor(
        keys=[f"f{t}" for t in range(FEATURES)], values=torch.from_numpy(keys).to(dtype),
        lengths=torch.from_numpy(lengths), weights=torch.rand(len(keys)),
    )  # fmt: skip


def measure(batch: int, pooling: int, ranks: int, rule: str, dtype: str, runs: int) -> Cell:
    """Alternate the two for some runs; one rule for all features, or ``mixed``."""
    kjt = batch_of(batch, pooling, getattr(torch, dtype))
    block = -(-ROWS // ranks)
    whole = rule == "roundrobin"
    blocks = torch.full((FEATURES,), 1 if whole else block)
    rules: Any = ["continuous", "hash_roundrobin"] * (FEATURES // 2) if rule == "mixed" else rule

    def ours() -> Any:
        return bucketize_kjt(kjt, ranks=ranks, rule=rules, block_sizes=block, threads=1)

    def theirs() -> Any:
        return bucketize_kjt_before_all2all(
            kjt, ranks, blocks, output_permute=True, keep_original_indices=whole
        )

    known = rule in ("roundrobin", "continuous")
    if known:
        check(ours(), *theirs())
    ours()
    first, second = [], []
    for _ in range(runs):
        if known:
            first.append(1e3 * seconds(theirs)[0])
        second.append(1e3 * seconds(ours)[0])
    ratios = sorted(a / b for a, b in zip(first, second, strict=False))
    return Cell(
        batch, pooling, ranks, rule, dtype,
        round(statistics.median(first), 3) if known else None,
        round(statistics.median(second), 3),
        *(round(f(ratios), 2) if known else None for f in (statistics.median, min, max)),
    )  # fmt: skip


def check(ours: Any, theirs: Any, permute: Any) -> None:
    """Both must return the same before anything is timed."""
    for name in ("values", "lengths", "weights"):
        assert torch.equal(getattr(ours.kjt, name)(), getattr(theirs, name)()), name
    assert torch.equal(ours.unbucketize_permute, permute)


def main() -> None:
    """Measure the grid and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=15)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    grid = [(b, p, r, "roundrobin", "int64") for b, p in ((1024, 2), (8192, 2), (8192, 20))
            for r in (8, 64)]  # fmt: skip
    grid += [(8192, 20, r, "continuous", "int64") for r in (8, 64)]
    grid += [(8192, 20, 12, rule, dtype) for rule, dtype in (
        ("roundrobin", "int32"), ("hash_roundrobin", "int32"), ("mixed", "int64"))]  # fmt: skip
    cells = []
    for each in grid:
        cells.append(asdict(measure(*each, arguments.runs)))
        print(cells[-1], flush=True)
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    result = {"environment": environment(), "threads": 1, "runs": arguments.runs, "cells": cells}
    arguments.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
