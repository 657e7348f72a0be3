"""Hit-ratio formulas against the simulator: every mode, eviction rule, skew and cache ratio.

    python benchmarks/hit-ratio/run.py [--quick] [--out results/FILE.json]

A table of 20,480 rows with its ids at random, batches of 1/50 of the rows and of as many lookups as
rows (``--quick``: fewer points). Hit ratios of the 10th lookup per row on average; the formulas
get the same numbers.
"""

import argparse
import json
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.simulator.streams import drawn
from benchmarks.simulator.tiers import Shape, Tiers
from milp_planner.inputs.constraints import Mode
from milp_planner.pricing.hit_ratios import (
    FITS,
    frequency_curve,
    overflow_curve,
    recency_curve,
)
from milp_planner.pricing.hybrid import hybrid_hits, overfull_hits
from milp_planner.pricing.popularity import Popularity, zipf

ROWS = 20_480
PASSES = 10
PER_PASS = 50
ALPHAS = [0.0, 0.4, 0.7, 1.0, 1.2, 1.4, 1.8]
RATIOS = [0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95]


def simulated(
    alpha: float, ratio: float, mode: Mode, frequency: bool, batch: int
) -> tuple[float, int]:
    """Hit ratio over the last pass, and the slots HBM has."""
    generator = np.random.default_rng(0)
    stream, ids = drawn(zipf(ROWS, alpha)), generator.permutation(ROWS)
    slots = round(ROWS * ratio)
    tiers = Tiers(Shape(mode, slots, ROWS - slots, frequency), np.arange(ROWS))
    total = None
    for number in range(PASSES * ROWS // batch):
        step = tiers.step(ids[stream.draw(batch, generator)])
        if number >= (PASSES - 1) * ROWS // batch:
            total = step if total is None else total + step
    assert total is not None
    return total.hit_ratio, tiers.shape.hbm_buckets * tiers.shape.hbm_bucket


def formula(known: Popularity, slots: int, mode: Mode, frequency: bool, batch: int) -> float:
    """The same by formula."""
    if mode == "HYBRID":
        before = (PASSES - 1) * ROWS if batch == ROWS else (PASSES - 0.5) * ROWS
        if known.distinct(batch) > FITS * slots:
            sizes = np.array([slots], dtype=np.float64)
            return float(overfull_hits(known, sizes, before, batch, frequency)[0])
        return hybrid_hits(known, slots, before, batch, frequency)
    if slots < known.distinct(batch):
        sizes = np.array([slots], dtype=np.float64)
        return float(overflow_curve(known, sizes, batch, PASSES - 1).hits[0])
    curve = (frequency_curve if frequency else recency_curve)(known, batch)
    return float(curve.hits_at(np.array(slots)))


def main() -> None:
    """Run every point and store it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    alphas, ratios = (ALPHAS[1::3], RATIOS[1::3]) if arguments.quick else (ALPHAS, RATIOS)
    points: list[dict[str, Any]] = []
    small = ROWS // PER_PASS
    modes: list[Mode] = ["HYBRID", "CACHING"]
    for mode, batch, frequency, alpha in product(modes, (small, ROWS), (False, True), alphas):
        for ratio in ratios:
            found, slots = simulated(alpha, ratio, mode, frequency, batch)
            said = formula(zipf(ROWS, alpha), slots, mode, frequency, batch)
            points.append(
                {"mode": mode, "score": "lfu" if frequency else "lru", "alpha": alpha,
                 "batch": batch, "x": slots / ROWS,
                 "simulated": round(found, 4), "formula": round(said, 4)}
            )  # fmt: skip
        print(mode, "lfu" if frequency else "lru", alpha, flush=True)
    result = {"date": date.today().isoformat(), "rows": ROWS, "passes": PASSES,
              "batches_per_pass": PER_PASS, "points": points}  # fmt: skip
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=0) + "\n", encoding="utf-8")
    errors = np.array([abs(p["formula"] - p["simulated"]) for p in points])
    print(f"mean |error| {errors.mean():.4f}, worst {errors.max():.4f} of {len(points)} points")


if __name__ == "__main__":
    main()
