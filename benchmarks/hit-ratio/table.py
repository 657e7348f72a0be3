"""The simulator's hit ratios of caches whose batches do not fit: what no formula is claimed for.

python benchmarks/hit-ratio/table.py      rewrites milp_planner/costs/hit_ratio/simulated.json
"""

from __future__ import annotations

import json
from importlib import resources
from itertools import product
from pathlib import Path

import numpy as np

from milp_planner.costs.popularity import zipf
from milp_planner.simulate.streams import drawn
from milp_planner.simulate.tiers import Shape, Tiers

ROWS = 102_400
ALPHAS = [0.0, 0.4, 0.8, 1.2, 1.6, 2.0]
RATIOS = [0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95]
BATCHES = [-1.5, -1.0, -0.5, 0.0, 0.5, 1.0]


def simulated(batch: float, alpha: float, ratio: float, frequency: bool) -> float:
    """Hit ratio of the last third of at least 8 lookups a row and 6 batches."""
    generator = np.random.default_rng(0)
    stream, ids = drawn(zipf(ROWS, alpha)), generator.permutation(ROWS)
    lookups = round(ROWS * 10**batch)
    count = max(8 * ROWS // lookups, 6)
    tiers = Tiers(Shape("CACHING", round(ROWS * ratio), frequency=frequency), np.arange(ROWS))
    hits = asked = 0
    for number in range(count):
        step = tiers.step(ids[stream.draw(lookups, generator)])
        if number >= count - count // 3:
            hits, asked = hits + int(step.hits.sum()), asked + int(step.lookups.sum())
    return hits / asked


def main() -> None:
    """Simulate the grid and store it."""
    document: dict[str, object] = {}
    for name in ("lru", "lfu"):
        values = []
        for batch, alpha in product(BATCHES, ALPHAS):
            found = [simulated(batch, alpha, ratio, name == "lfu") for ratio in RATIOS]
            values += [0.0, *found, 1.0]
            print(name, batch, alpha, [round(v, 3) for v in found], flush=True)
        axes = [BATCHES, ALPHAS, [0.0, *RATIOS, 1.0]]
        document[name] = {"axes": axes, "values": [round(1e4 * value) for value in values]}
    target = resources.files("milp_planner.costs.hit_ratio") / "simulated.json"
    text = json.dumps(document, separators=(",", ":"))
    Path(str(target)).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
