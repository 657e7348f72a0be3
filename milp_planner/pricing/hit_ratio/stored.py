"""Hit ratios stored for Zipf popularity: values over a grid of axes, interpolated.

``hybrid.json`` holds the fluid of :mod:`milp_planner.pricing.hit_ratio.hybrid` on a grid (it takes
milliseconds a point, too long for thousands of tables). ``simulated.json`` holds what the simulator
measured at skews beyond those the formulas are claimed for; its script is
``benchmarks/hit-ratio/table.py``.

    python -m milp_planner.pricing.hit_ratio.stored      writes hybrid.json anew (two minutes)
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import product
from pathlib import Path

import numpy as np

from milp_planner.pricing.hit_ratio.hybrid import hybrid_hits
from milp_planner.pricing.popularity import zipf
from milp_planner.pricing.units import FloatArray

HORIZON = 30.0
"""Lookups a row has seen on average when hit ratios are quoted: a long run."""
LEAST_BATCHES = 10.0
"""Batches that are at least behind a long run, however large they are."""

_FOLDER = resources.files("milp_planner.pricing.hit_ratio")
_ALPHA = [round(0.1 * i, 1) for i in range(21)]
_SMALL = [0.0, 1e-4, 1e-3, 3e-3, 0.01, 0.02, 0.03, 0.05]
_RATIO = [*_SMALL, *(round(0.1 * i, 1) for i in range(1, 10)), 0.95, 1.0]
_ROWS = [3.0, 4.0, 5.0, 6.0, 8.0, 10.0]
_BATCH = [-6.0, -4.0, -3.0, -2.0, -1.0, 0.0]


@dataclass(frozen=True, eq=False)
class Grid:
    """Values over a grid.

    Attributes
    ----------
    axes : tuple of float arrays
        Rising points of each axis, the cache ratio last.
    values : float array
        One dimension an axis.
    """

    axes: tuple[FloatArray, ...]
    values: FloatArray

    def at(self, point: tuple[float, ...], ratios: FloatArray) -> FloatArray:
        """Straight lines between the grid's points, level outside; float array [ratios]."""
        values = self.values
        for axis, coordinate in zip(self.axes[:-1], point, strict=True):
            high = int(np.clip(np.searchsorted(axis, coordinate), 1, len(axis) - 1))
            low, top = axis[high - 1], axis[high]
            share = float(np.clip((coordinate - low) / (top - low), 0.0, 1.0))
            values = (1 - share) * values[high - 1] + share * values[high]
        return np.interp(ratios, self.axes[-1], values)


@lru_cache(maxsize=8)
def grid(file: str, name: str) -> Grid:
    """One of the stored grids, such as ``lfu`` of ``hybrid.json``."""
    document = json.loads((_FOLDER / file).read_text(encoding="utf-8"))[name]
    axes = tuple(np.array(axis, dtype=np.float64) for axis in document["axes"])
    shape = [len(axis) for axis in axes]
    return Grid(axes, np.array(document["values"], dtype=np.float64).reshape(shape) / 1e4)


def long_run(rows: float, batch: float) -> float:
    """Lookups of a table before its hit ratio is quoted: 30 a row, and ten batches at least."""
    return max(HORIZON * rows, LEAST_BATCHES * batch)


def main() -> None:
    """Compute the fluid on its grid and write it."""
    document = {}
    for name, batches in (("lru", [0.0]), ("lfu", _BATCH)):
        values = [
            _fluid(alpha, rows, batch, ratio, name == "lfu")
            for batch, alpha, rows, ratio in product(batches, _ALPHA, _ROWS, _RATIO)
        ]
        axes = [batches, _ALPHA, _ROWS, _RATIO] if name == "lfu" else [_ALPHA, _ROWS, _RATIO]
        document[name] = {"axes": axes, "values": [round(1e4 * value) for value in values]}
    text = json.dumps(document, separators=(",", ":"))
    Path(str(_FOLDER / "hybrid.json")).write_text(text + "\n", encoding="utf-8")


def _fluid(alpha: float, rows: float, batch: float, ratio: float, frequency: bool) -> float:
    if ratio in (0.0, 1.0):
        return ratio
    count = round(10**rows)
    lookups = 10**batch * count
    return hybrid_hits(zipf(count, alpha), ratio * count, HORIZON * count, lookups, frequency)


if __name__ == "__main__":
    main()
