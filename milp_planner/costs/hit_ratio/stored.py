"""Hit ratios stored for Zipf popularity: values over a grid of axes, interpolated.

``hybrid.json`` holds the fluid of :mod:`milp_planner.costs.hit_ratio.hybrid` on a grid,
``overfull.json`` what :mod:`milp_planner.costs.hit_ratio.batches` says of batches that HBM does not
hold: both take milliseconds a point, too long for thousands of tables. ``simulated.json`` holds
what the simulator measured at skews beyond those the formulas are claimed for; its script is
``benchmarks/hit-ratio/table.py``.

    python -m milp_planner.costs.hit_ratio.stored hybrid      writes hybrid.json (a minute)
    python -m milp_planner.costs.hit_ratio.stored overfull    writes overfull.json (ten minutes)
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from itertools import product
from pathlib import Path

import numpy as np

from milp_planner.costs.hit_ratio.batches import overfull_hits
from milp_planner.costs.hit_ratio.hybrid import hybrid_hits
from milp_planner.costs.popularity import Popularity, zipf
from milp_planner.costs.units import FloatArray

HORIZON = 30.0
"""Lookups a row has seen on average when hit ratios are quoted: a long run."""
LEAST_BATCHES = 10.0
"""Batches that are at least behind a long run, however large they are."""

_FOLDER = resources.files("milp_planner.costs.hit_ratio")
_ALPHA = [round(0.1 * i, 1) for i in range(21)]
_SMALL = [0.0, 1e-4, 1e-3, 3e-3, 0.01, 0.02, 0.03, 0.05]
_RATIO = [*_SMALL, *(round(0.1 * i, 1) for i in range(1, 10)), 0.95, 1.0]
_ROWS = [3.0, 4.0, 5.0, 6.0, 8.0, 10.0]
_BATCH = [-6.0, -4.0, -3.0, -2.0, -1.0, 0.0]
_STEEP = [0.0, 0.3, 0.6, 0.8, 0.95, 1.1, 1.25, 1.4, 1.6, 2.0, 3.0]
_FULL = [0.02, 0.05, 0.1, 0.25, 0.5, 0.8, 0.95]
_SIZES = [3.0, 5.0, 7.0, 10.0]
_ABOVE = [0.0, 0.03, 0.06, 0.1, 0.15, 0.22, 0.3, 0.4, 0.55, 0.75, 1.0, 1.4, 2.0, 3.0]
_BEYOND = [-0.3, -0.1, -0.04, *_ABOVE]


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


def filling_batches(known: Popularity, sizes: FloatArray) -> FloatArray:
    """Lookups of the batch whose distinct rows just fill HBM of each size, float array [sizes].

    Straight lines in logarithms between 128 batches, of one lookup to 60 of the rarest row.
    """
    distinct, batches = _distinct_curve(known)
    return np.exp(np.interp(np.log(sizes), distinct, batches))


@lru_cache(maxsize=16384)
def _distinct_curve(known: Popularity) -> tuple[FloatArray, FloatArray]:
    rarest = float(known.shares[known.shares > 0].min())
    batches = np.geomspace(1.0, 60.0 / rarest, 128)
    distinct = [known.distinct(batch) for batch in batches.tolist()]
    return np.log(distinct), np.log(batches)


def main() -> None:
    """Compute one of the grids and write it."""
    makers = {"hybrid": _hybrid, "overfull": _overfull}
    wanted = sys.argv[1] if len(sys.argv) == 2 else ""
    if wanted not in makers:
        sys.exit(f"name one grid: {', '.join(makers)}")
    text = json.dumps(makers[wanted](), separators=(",", ":"))
    Path(str(_FOLDER / f"{wanted}.json")).write_text(text + "\n", encoding="utf-8")


def _hybrid() -> dict[str, object]:
    document: dict[str, object] = {}
    for name, batches in (("lru", [0.0]), ("lfu", _BATCH)):
        values = [
            _fluid(alpha, rows, batch, ratio, name == "lfu")
            for batch, alpha, rows, ratio in product(batches, _ALPHA, _ROWS, _RATIO)
        ]
        axes = [batches, _ALPHA, _ROWS, _RATIO] if name == "lfu" else [_ALPHA, _ROWS, _RATIO]
        document[name] = {"axes": axes, "values": [round(1e4 * value) for value in values]}
    return document


def _fluid(alpha: float, rows: float, batch: float, ratio: float, frequency: bool) -> float:
    if ratio in (0.0, 1.0):
        return ratio
    count = round(10**rows)
    lookups = 10**batch * count
    return hybrid_hits(zipf(count, alpha), ratio * count, HORIZON * count, lookups, frequency)


def _overfull() -> dict[str, object]:
    document: dict[str, object] = {}
    for name in ("lru", "lfu"):
        values = []
        for beyond, alpha, rows in product(_BEYOND, _STEEP, _SIZES):
            found = [_by_batches(alpha, rows, beyond, ratio, name == "lfu") for ratio in _FULL]
            values += [0.0, *found, 1.0]
        axes = [_BEYOND, _STEEP, _SIZES, [0.0, *_FULL, 1.0]]
        document[name] = {"axes": axes, "values": [round(1e4 * value) for value in values]}
    return document


def _by_batches(alpha: float, rows: float, beyond: float, ratio: float, frequency: bool) -> float:
    known = zipf(round(10**rows), alpha)
    size = ratio * known.rows
    batch = 10**beyond * float(filling_batches(known, np.array([size]))[0])
    return overfull_hits(known, size, long_run(known.rows, batch), batch, frequency)


if __name__ == "__main__":
    main()
