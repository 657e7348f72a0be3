"""Time of the tier simulator beside two bare loops over the same state, in the same run.

    python benchmarks/simulator/run.py [--out results/FILE.json]      (two minutes)

For each case the tiers are warmed up, then pairs of batches are drawn, one simulated and one
gathered, each going first every other time, because the first one finds what drawing left in the
caches. ``gather`` only reads one number of the row's state. Then batches are touched, on the same
state, which no simulation uses any more: ``touch`` does only what any simulator must do per
lookup: read the row's slot, count the lookup in the row's state, write the slot's score (missing
rows have no slot). Both are compiled, take a batch of their own from the same stream, and find
neither hits nor victims. Times are the thread's processor time; ratios are those of the whole time,
because one simulated batch may search for many victims and the next for none.
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

from milp_planner.features.simulate.streams import drawn
from milp_planner.features.simulate.tiers import Shape, Tiers
from milp_planner.inputs.constraints import Mode
from milp_planner.pricing.popularity import zipf

BATCH, WARM, TIMED = 1 << 17, 24, 42
FILL = 10  # lookups a row before, in batches of 2^20: HBM is full in every case
CASES = [(10**6, 1.2, 0.2), (10**6, 0.9, 0.2), (10**7, 1.2, 0.2), (10**7, 1.05, 0.5)]
HARDER: list[tuple[int, float, float, Mode, bool, int]] = [
    (10**6, 0.6, 0.1, "CACHING", False, BATCH),
    (10**6, 0.9, 0.2, "CACHING", False, BATCH // 32),
    (10**6, 0.9, 0.2, "HYBRID", False, BATCH // 32),
]
"""What costs more a lookup: hardly any skew in a small cache, and small batches."""


@njit
def gather(rows, keys):  # type: ignore[no-untyped-def]
    """Sum of one number a lookup."""
    total = 0
    for key in keys:
        total += rows[key, 0]
    return total


@njit
def touch(rows, slots, keys, now):  # type: ignore[no-untyped-def]
    """Count each lookup in its row, and write the score of the row's slot."""
    for key in keys:
        rows[key, 2] += 1
        place = rows[key, 0]
        if 0 <= place < len(slots):
            slots[place] = now


def measure(
    rows: int, alpha: float, ratio: float, mode: Mode, frequency: bool, size: int = BATCH
) -> dict[str, object]:
    """One case."""
    generator = np.random.default_rng(0)
    stream, ids = drawn(zipf(rows, alpha)), generator.permutation(rows)
    slots = round(rows * ratio)
    tiers = Tiers(Shape(mode, slots, rows - slots, frequency), np.arange(rows))
    for _ in range(0, FILL * rows, 1 << 20):
        tiers.step(ids[stream.draw(1 << 20, generator)])
    for _ in range(WARM):
        tiers.step(ids[stream.draw(size, generator)])
    timed = TIMED * min(BATCH // size, 8)
    state, times, steps = tiers._rows, np.empty((timed, 3)), []
    for i in range(timed):
        batches = [ids[stream.draw(size, generator)] for _ in range(2)]
        for loop in (i % 2, 1 - i % 2):
            begin = time.thread_time()
            if loop:
                gather(state, batches[1])
            else:
                steps.append(tiers.step(batches[0]))
            times[i, loop] = time.thread_time() - begin
    scores = np.ones(tiers._hbm.held.size + tiers._host.held.size, np.int32)
    for i in range(timed):
        batch = ids[stream.draw(size, generator)]
        begin = time.thread_time()
        touch(state, scores, batch, i)
        times[i, 2] = time.thread_time() - begin
    ours, gathered, touched = times.mean(axis=0) / size * 1e9
    return {
        "rows": rows, "batch": size, "alpha": alpha, "x": ratio, "mode": mode,
        "score": "lfu" if frequency else "lru",
        "hit": round(float(np.mean([step.hit_ratio for step in steps])), 3),
        "evicted": round(float(np.mean([step.evicted.sum() for step in steps]))),
        "simulated_ns": round(float(ours), 1),
        "touch_ns": round(float(touched), 1), "gather_ns": round(float(gathered), 1),
        "touch_ratio": round(float(ours / touched), 2),
        "gather_ratio": round(float(ours / gathered), 2),
    }  # fmt: skip


def main() -> None:
    """Run all cases and store them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    measure(10**4, 1.0, 0.5, "HYBRID", False), measure(10**4, 1.0, 0.5, "CACHING", False)
    cases = []
    kinds: list[tuple[Mode, bool]] = [("CACHING", False), ("CACHING", True), ("HYBRID", False)]
    for case, (mode, frequency) in product(CASES, kinds):
        cases.append(measure(*case, mode, frequency))
        print(cases[-1], flush=True)
    harder = [measure(*case) for case in HARDER]
    print(*harder, sep="\n", flush=True)
    if arguments.out:
        result = {"date": date.today().isoformat(), "cases": cases, "harder": harder}
        arguments.out.write_text(json.dumps(result, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
