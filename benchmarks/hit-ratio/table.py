"""The simulator's hit ratios at Zipf exponents of 1.8 and more, for which no formula is claimed.

Rewrites milp_planner/pricing/simulated.json (2 minutes).

python benchmarks/hit-ratio/table.py
"""

import json
from functools import reduce
from importlib import resources
from itertools import product
from operator import add
from pathlib import Path

import numpy as np

from benchmarks.simulator.streams import drawn
from benchmarks.simulator.tiers import Shape, Tiers
from milp_planner.inputs.constraints import Mode
from milp_planner.pricing.popularity import zipf

ROWS = 102_400
ALPHAS = [1.8, 2.0, 2.5, 3.0]
RATIOS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.95]
BATCHES = [-3.0, -2.0, -1.0, 0.0, 1.0]
PASSES = 8


def simulated(mode: Mode, batch: float, alpha: float, ratio: float, frequency: bool) -> float:
    """Hit ratio of the last third of at least 8 lookups a row and 6 batches."""
    generator = np.random.default_rng(0)
    stream, ids = drawn(zipf(ROWS, alpha)), generator.permutation(ROWS)
    lookups, slots = round(ROWS * 10**batch), round(ROWS * ratio)
    count = max(PASSES * ROWS // lookups, 6)
    tiers = Tiers(Shape(mode, slots, ROWS - slots, frequency), np.arange(ROWS))
    for _ in range(count - count // 3):
        tiers.step(ids[stream.draw(lookups, generator)])
    steps = [tiers.step(ids[stream.draw(lookups, generator)]) for _ in range(count // 3)]
    return reduce(add, steps).hit_ratio


def main() -> None:
    """Simulate the grid and store it."""
    document: dict[str, object] = {}
    modes: tuple[Mode, ...] = ("CACHING", "HYBRID")
    for mode, score in product(modes, ("lru", "lfu")):
        values = []
        for batch, alpha in product(BATCHES, ALPHAS):
            found = [simulated(mode, batch, alpha, ratio, score == "lfu") for ratio in RATIOS]
            values += [*found, 1.0]
            print(mode, score, batch, alpha, [round(v, 4) for v in found], flush=True)
        axes = [BATCHES, ALPHAS, [*RATIOS, 1.0]]
        name = f"{mode.lower()}-{score}"
        document[name] = {"axes": axes, "values": [round(1e4 * value) for value in values]}
    target = resources.files("milp_planner.pricing") / "simulated.json"
    text = json.dumps(document, separators=(",", ":"))
    Path(str(target)).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
