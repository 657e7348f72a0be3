"""Pricing's hit ratio against the simulator at points drawn at random.

    python benchmarks/hit-ratio/pricing.py [--points 160] [--edges 40] [--out FILE]

Zipf α 0–3, tiers of 2% to 95% of 51,200 rows, batches of 1/100 to 30 lookups per row, both modes
and scores: the region of every source but ``unchecked``. Further points lie on HYBRID's edge:
distinct rows of a batch within 10% of what HBM holds. Each point is simulated twice, with other ids
and lookups, as long as prices assume; the second run shows how far the simulator repeats itself.
"""

import argparse
import json
from datetime import date
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.simulator.streams import drawn
from benchmarks.simulator.tiers import Shape, Tiers
from milp_planner.inputs.access import Zipf
from milp_planner.pricing.hit_ratios import FITS, CachePolicy, hit_ratios
from milp_planner.pricing.hybrid import long_run
from milp_planner.pricing.popularity import zipf

ROWS, BUCKET, SEEDS = 51_200, 1024, (1, 2)
ENOUGH = 20_000
"""A hit ratio is measured over at least this many lookups, and over a batch at least."""


def simulated(alpha: float, slots: int, policy: CachePolicy, seed: int) -> float:
    """Hit ratio after the lookups that prices assume."""
    generator, batch = np.random.default_rng(seed), round(policy.batch)
    stream, ids = drawn(zipf(ROWS, alpha)), generator.permutation(ROWS)
    tiers = Tiers(Shape(policy.mode, slots, ROWS - slots, policy.frequency), np.arange(ROWS))
    for _ in range(round(long_run(ROWS, batch) / batch)):
        tiers.step(ids[stream.draw(batch, generator)])
    counted = range(-(-ENOUGH // batch))
    return reduce(add, (tiers.step(ids[stream.draw(batch, generator)]) for _ in counted)).hit_ratio


def drawn_policy(generator: np.random.Generator) -> tuple[float, int, CachePolicy]:
    """Skew, slots and policy from anywhere in the region."""
    alpha = round(float(generator.uniform(0, 3)), 2)
    ratio = 10 ** generator.uniform(np.log10(0.02), np.log10(0.95))
    slots = max(round(ROWS * ratio / BUCKET), 1) * BUCKET
    batch = round(ROWS * 10 ** generator.uniform(-2, 1.5))
    hybrid, frequency = generator.choice([True, False]), bool(generator.integers(2))
    return alpha, slots, CachePolicy("HYBRID" if hybrid else "CACHING", frequency, batch)


def drawn_edge(generator: np.random.Generator) -> tuple[float, int, CachePolicy]:
    """Skew, slots and a HYBRID policy whose batch just fits or just does not."""
    while True:
        alpha, slots, policy = drawn_policy(generator)
        known, wanted = zipf(ROWS, alpha), slots * generator.uniform(0.9, 1.1)
        batches = np.geomspace(ROWS / 100, 30 * ROWS, 400)
        distinct = np.array([known.distinct(batch) for batch in batches])
        if distinct[0] < wanted < distinct[-1]:
            return (
                alpha,
                slots,
                CachePolicy(
                    "HYBRID", policy.frequency, float(np.rint(np.interp(wanted, distinct, batches)))
                ),
            )


def point(alpha: float, slots: int, policy: CachePolicy, edge: bool) -> dict[str, Any]:
    """What pricing says, and what two simulations found."""
    access = Zipf(kind="zipf", alpha=alpha)
    said = hit_ratios(access, ROWS, np.array([slots / ROWS]), policy)
    cover = zipf(ROWS, alpha).distinct(policy.batch) / slots
    return {
        "mode": policy.mode, "score": "lfu" if policy.frequency else "lru", "alpha": alpha,
        "x": slots / ROWS, "batch": policy.batch, "cover": round(cover, 3), "edge": edge,
        "source": said.sources[0], "overfull": bool(cover > FITS),
        "priced": round(float(said.values[0]), 4),
        "simulated": [round(simulated(alpha, slots, policy, seed), 4) for seed in SEEDS],
    }  # fmt: skip


def main() -> None:
    """Draw, simulate and store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=160)
    parser.add_argument("--edges", type=int, default=40)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    generator = np.random.default_rng(11)
    edges = [False] * arguments.points + [True] * arguments.edges
    points = []
    for number, edge in enumerate(edges, 1):
        points.append(point(*(drawn_edge if edge else drawn_policy)(generator), edge))
        print(f"{number}/{len(edges)}", points[-1], flush=True)
    errors = np.array([abs(p["priced"] - np.mean(p["simulated"])) for p in points])
    print(f"mean |error| {errors.mean():.4f}, worst {errors.max():.4f} of {len(points)} points")
    if arguments.out:
        result = {"date": date.today().isoformat(), "rows": ROWS, "points": points}
        arguments.out.write_text(json.dumps(result, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
