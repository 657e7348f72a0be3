"""Time of the tier simulator beside a bare gather over the same rows, in the same run.

    python benchmarks/simulator/run.py [--out results/FILE.json]      (about a minute)

For each case the tiers are warmed up, then batches alternate: simulated, gathered, simulated, …
The gather is a compiled loop that reads one number of every looked-up row's state, in the same
order. Processor time of the thread; the ratio is the median over the batches.
"""

from __future__ import annotations

import argparse
import json
import time
from datetime import date
from itertools import product
from pathlib import Path

import numpy as np
from numba import njit

from milp_planner.costs.popularity import zipf
from milp_planner.simulate.streams import drawn
from milp_planner.simulate.tiers import Shape, Tiers

BATCH, WARM, TIMED = 1 << 17, 24, 7
CASES = [(10**6, 1.2, 0.2), (10**6, 0.9, 0.2), (10**7, 1.2, 0.2)]


@njit
def gather(rows, keys):  # type: ignore[no-untyped-def]
    """Sum of one number a lookup."""
    total = 0
    for key in keys:
        total += rows[key, 0]
    return total


def measure(rows: int, alpha: float, ratio: float, mode: str, frequency: bool) -> dict[str, object]:
    """One case."""
    generator = np.random.default_rng(0)
    stream, ids = drawn(zipf(rows, alpha)), generator.permutation(rows)
    slots = round(rows * ratio)
    tiers = Tiers(Shape(mode, slots, rows - slots, frequency), np.arange(rows))
    for _ in range(WARM):
        tiers.step(ids[stream.draw(BATCH, generator)])
    ours, bare, hits = [], [], []
    for _ in range(TIMED):
        batch = ids[stream.draw(BATCH, generator)]
        other = ids[stream.draw(BATCH, generator)]
        start = time.thread_time()
        hits.append(tiers.step(batch).hit_ratio)
        middle = time.thread_time()
        gather(tiers._rows, other)
        ours.append(middle - start)
        bare.append(time.thread_time() - middle)
    return {
        "rows": rows, "alpha": alpha, "x": ratio, "mode": mode,
        "score": "lfu" if frequency else "lru", "hit": round(float(np.mean(hits)), 3),
        "simulated_ns": round(float(np.median(ours)) / BATCH * 1e9, 1),
        "gather_ns": round(float(np.median(bare)) / BATCH * 1e9, 1),
        "ratio": round(float(np.median(np.array(ours) / np.array(bare))), 2),
    }  # fmt: skip


def main() -> None:
    """Run all cases and store them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    measure(10**4, 1.0, 0.5, "HYBRID", False), measure(10**4, 1.0, 0.5, "CACHING", False)
    cases = []
    for case, (mode, frequency) in product(CASES, (("CACHING", False), ("CACHING", True),
                                                   ("HYBRID", False))):  # fmt: skip
        cases.append(measure(*case, mode, frequency))
        print(cases[-1], flush=True)
    if arguments.out:
        result = {"date": date.today().isoformat(), "batch": BATCH, "cases": cases}
        arguments.out.write_text(json.dumps(result, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
