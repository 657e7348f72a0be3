"""Bucketize on the CPU against FBGEMM's operator, one process, runs alternated A/B.

``python benchmarks/routing/cpu.py -o benchmarks/routing/results/DATE.json`` (needs the extras
``routing`` and ``torchrec``). Both return lengths, keys and the unbucketize permutation.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cuda_routing.features import make_features
from cuda_routing.numba_path import bucketize_numba
from cuda_routing.rules import Rule
from milp_planner.features.calibrate.machine import processor

FEATURES = 26
KEY_RANGE = 1 << 40


@dataclass(frozen=True)
class Cell:
    """One measured combination.

    Rates are in million keys a second of wall clock. Ratios are FBGEMM's time over ours, of the
    alternated pairs: of wall clock, and (one thread only) of the thread's own processor time, which
    other work on the machine disturbs less.
    """

    keys: int
    row_length: int
    ranks: int
    rule: str
    threads: int
    runs: int
    fbgemm_mkeys_s: float | None
    ours_mkeys_s: float
    ratio_median: float | None
    ratio_min: float | None
    ratio_max: float | None
    cpu_ratio_median: float | None


def batch(keys: int, row_length: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of equal length over 26 features, uniform keys below 2**40."""
    rows = FEATURES * max(1, keys // (row_length * FEATURES))
    lengths = np.full(rows, row_length, np.int64)
    return lengths, np.random.default_rng(0).integers(0, KEY_RANGE, size=rows * row_length)


def contenders(
    lengths: np.ndarray, keys: np.ndarray, ranks: int, rule: Rule, threads: int
) -> tuple[Callable[[], Any] | None, Callable[[], Any]]:
    """FBGEMM's call (None where it has no such rule) and ours."""
    block = -(-KEY_RANGE // ranks)
    features = make_features(FEATURES, lengths.size, ranks, rule, block_sizes=block)

    def ours() -> Any:
        return bucketize_numba(lengths, keys, features, threads=threads)

    if rule not in (Rule.ROUNDROBIN, Rule.CONTINUOUS):
        return None, ours
    import fbgemm_gpu  # noqa: F401 - registers the operator

    tensors = torch.from_numpy(lengths), torch.from_numpy(keys)
    keep = rule is Rule.ROUNDROBIN  # blocks of 1 that keep their ids are roundrobin
    blocks = torch.full((FEATURES,), 1 if keep else block, dtype=torch.int64)

    def theirs() -> Any:
        return torch.ops.fbgemm.block_bucketize_sparse_features(
            *tensors, False, True, blocks, ranks, None, keep_orig_idx=keep
        )

    return theirs, ours


def check(theirs: Callable[[], Any], ours: Callable[[], Any]) -> None:
    """Both must return the same before anything is timed."""
    reference, found = theirs(), ours()
    for tensor, array in zip(
        (reference[0], reference[1], reference[4]),
        (found.lengths, found.keys, found.permute),
        strict=True,
    ):
        np.testing.assert_array_equal(tensor.numpy(), array)


def measure(keys: int, row_length: int, ranks: int, rule: Rule, threads: int, runs: int) -> Cell:
    """Alternate the two for some runs."""
    theirs, ours = contenders(*batch(keys, row_length), ranks, rule, threads)
    if theirs is not None:
        check(theirs, ours)
    else:
        ours()
    first, second = [], []
    for _ in range(runs):
        if theirs is not None:
            first.append(seconds(theirs))
        second.append(seconds(ours))
    count = batch_keys(keys, row_length)
    ratios = sorted(a[0] / b[0] for a, b in zip(first, second, strict=False))
    own = [a[1] / b[1] for a, b in zip(first, second, strict=False)] if threads == 1 else []
    return Cell(
        count, row_length, ranks, rule.dist_type, threads, runs,
        round(count / statistics.median(a for a, _ in first) / 1e6, 2) if first else None,
        round(count / statistics.median(b for b, _ in second) / 1e6, 2),
        round(statistics.median(ratios), 3) if ratios else None,
        round(ratios[0], 3) if ratios else None,
        round(ratios[-1], 3) if ratios else None,
        round(statistics.median(own), 3) if own else None,
    )  # fmt: skip


def batch_keys(keys: int, row_length: int) -> int:
    """Keys of the batch after rounding to whole rows."""
    return FEATURES * max(1, keys // (row_length * FEATURES)) * row_length


def seconds(call: Callable[[], Any]) -> tuple[float, float]:
    """Wall clock and this thread's processor time of one call; its result is freed afterwards."""
    start, own = time.perf_counter(), time.thread_time()
    result = call()
    took = time.perf_counter() - start, time.thread_time() - own
    del result
    return took


def grid(cores: int) -> list[tuple[int, int, int, Rule, int]]:
    """Combinations: roundrobin everywhere, one thread; then all cores; then the other rules."""
    small, large = 1_000_000, 10_000_000
    sizes = [(n, length) for n in (small, large) for length in (6000, 200, 20)]
    sizes += [(small, 2), (large, 2)]  # the heaviest last: P · N / 2 output lengths
    cells = [(n, length, p, Rule.ROUNDROBIN, 1) for n, length in sizes for p in (8, 64)]
    others = [(large, length, p, Rule.ROUNDROBIN, cores) for length in (6000, 20) for p in (8, 64)]
    others += [(small, 200, p, rule, 1)
               for rule in (Rule.CONTINUOUS, Rule.HASH_ROUNDROBIN, Rule.HASH_INDEPENDENT)
               for p in (7, 64)]  # fmt: skip
    others.append((small, 200, 7, Rule.ROUNDROBIN, 1))
    return [*cells[:-2], *others, *cells[-2:]]


def environment() -> dict[str, Any]:
    """Where this was measured."""
    import numba

    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "processor": processor(), "cores": os.cpu_count(), "load_average": os.getloadavg(),
        "python": platform.python_version(), "numpy": np.__version__, "numba": numba.__version__,
        "torch": torch.__version__, "fbgemm-gpu-cpu": _version("fbgemm-gpu-cpu"),
    }  # fmt: skip


def _version(name: str) -> str:
    from importlib.metadata import version

    return version(name)


def main() -> None:
    """Measure the grid and write it after every cell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=11)
    parser.add_argument("--resume", action="store_true", help="keep cells that are stored already")
    arguments = parser.parse_args()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    cores = os.cpu_count() or 1
    result: dict[str, Any] = {"environment": environment(), "cells": []}
    if arguments.resume and arguments.output.exists():
        result = json.loads(arguments.output.read_text())
    for keys, length, ranks, rule, threads in grid(cores)[len(result["cells"]) :]:
        torch.set_num_threads(threads)
        cell = measure(keys, length, ranks, rule, threads, arguments.runs)
        result["cells"].append(asdict(cell))
        print(cell, flush=True)
        arguments.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
