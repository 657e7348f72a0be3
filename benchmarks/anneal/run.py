"""Moves per second of the compiled search, and how long its loops take to compile or to load.

Usage: python benchmarks/anneal/run.py [TABLES RANKS]...   (by default 100 16, 300 32 and 1000 128)
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
import numpy as np

from benchmarks.ladder.make import synthetic
from formulations.presolve import usable
from formulations.proof.prove import symmetric_lp
from formulations.search.anneal import Choice, Sampler, Within

MOVES = 1_000_000


def main(sizes: list[int]) -> None:
    """Print one row a size."""
    before = time.process_time()
    import formulations.search.kernels  # noqa: F401

    print(f"loops ready after {time.process_time() - before:.1f} s of processor time\n")
    print("| tables × ranks | options | lowered s | moves/s | penalty at first | at last |")
    print("|---|---|---|---|---|---|")
    for tables, ranks in zip(sizes[::2], sizes[1::2], strict=True):
        print(row(tables, ranks))


def row(tables: int, ranks: int) -> str:
    """Anneal towards 2% above the LP bound, from every table's most chosen option."""
    instance = synthetic(tables, ranks)
    relaxed = symmetric_lp(instance)
    assert relaxed is not None
    options = [
        max(instance.options_of(t), key=lambda o: relaxed.shares.get(o, 0.0)) for t in range(tables)
    ]
    start = time.process_time()
    sampler = Sampler(instance)
    lowered = time.process_time() - start
    sampler.choose_from(usable(instance))
    within = Within([int(1.02 * relaxed.bound)])
    sampler.begin(Choice(np.asarray(options)), within)
    first = sampler.penalty
    start = time.process_time()
    sampler.run(None, within, [(0.1, 3e-4)], MOVES)
    rate = MOVES / (time.process_time() - start)
    return (
        f"| {tables:,} × {ranks} | {instance.num_options:,} | {lowered:.2f} | {rate:,.0f} | "
        f"{first:.3f} | {sampler.penalty:.3f} |"
    )


if __name__ == "__main__":
    main([int(x) for x in sys.argv[1:]] or [100, 16, 300, 32, 1000, 128])
