"""HYBRID's fluid on a grid of Zipf exponents, rows, batches and cache ratios.

Rewrites milp_planner/pricing/hybrid.json (a minute).

python benchmarks/hit-ratio/grid.py
"""

import json
from importlib import resources
from itertools import product
from pathlib import Path

from milp_planner.pricing.hybrid import HORIZON, hybrid_hits
from milp_planner.pricing.popularity import zipf

ALPHA = [round(0.1 * i, 1) for i in range(21)]
SMALL = [0.0, 1e-4, 1e-3, 3e-3, 0.01, 0.02, 0.03, 0.05]
RATIO = [*SMALL, *(round(0.1 * i, 1) for i in range(1, 10)), 0.95, 1.0]
ROWS = [3.0, 4.0, 5.0, 6.0, 8.0, 10.0]
BATCH = [-6.0, -4.0, -3.0, -2.0, -1.0, 0.0]


def main() -> None:
    """Compute the fluid on its grid and write it."""
    document = {}
    for name, batches in (("lru", [0.0]), ("lfu", BATCH)):
        values = [
            fluid(alpha, rows, batch, ratio, name == "lfu")
            for batch, alpha, rows, ratio in product(batches, ALPHA, ROWS, RATIO)
        ]
        axes = [batches, ALPHA, ROWS, RATIO] if name == "lfu" else [ALPHA, ROWS, RATIO]
        document[name] = {"axes": axes, "values": [round(1e4 * value) for value in values]}
    target = Path(str(resources.files("milp_planner.pricing") / "hybrid.json"))
    target.write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="utf-8")


def fluid(alpha: float, rows: float, batch: float, ratio: float, frequency: bool) -> float:
    """Hit ratio of 10^rows rows after a long run, 10^batch lookups a row in each batch."""
    if ratio in (0.0, 1.0):
        return ratio
    count = round(10**rows)
    lookups = 10**batch * count
    return hybrid_hits(zipf(count, alpha), ratio * count, HORIZON * count, lookups, frequency)


if __name__ == "__main__":
    main()
