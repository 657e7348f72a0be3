"""Points of the micro-DLRM and how one of them is measured."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import product
from random import Random
from typing import Any

import numpy as np

from benchmarks.prediction.micro_dlrm import DENSE, MicroDlrm, Shape
from milp_planner.features.calibrate.machine import Lap, Load, Probe

FEATURES = 3
WIDEST = 256
STEPS = 2
"""Steps that one timing spans, each on ids of its own."""
CALIBRATION = {
    "rows": (2_000, 16_000, 64_000, 250_000, 2_000_000), "width": (32, 64, 128, 256),
    "batch": (1024, 4096, 8192), "alpha": (0.0, 0.9, 1.2), "pooling": (1, 8),
}  # fmt: skip
HELD_OUT = {
    "rows": (6_000, 30_000, 120_000, 600_000, 1_500_000), "width": (48, 96, 192, 256),
    "batch": (1500, 3000, 6000), "alpha": (0.0, 0.6, 1.05, 1.3), "pooling": (1, 8),
}  # fmt: skip


@dataclass(frozen=True)
class Point:
    """One configuration: three features that read one table of Zipf popularity."""

    rows: int
    width: int
    batch: int
    alpha: float
    pooling: int
    held_out: bool

    @property
    def name(self) -> str:
        """Unique text."""
        kind = "held out" if self.held_out else "calibration"
        return f"{kind} {self.rows}x{self.width} B{self.batch} a{self.alpha:g} P{self.pooling}"

    @property
    def shape(self) -> Shape:
        """Of the micro-DLRM."""
        return Shape(FEATURES, self.width, Load(self.batch, self.pooling))

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def points(count: int, held_out: bool, seed: int = 0) -> list[Point]:
    """A seeded sample of one grid; they share the widest width, alpha 0 and the bags alone."""
    grid = list(product(*(HELD_OUT if held_out else CALIBRATION).values()))
    Random(seed).shuffle(grid)
    return [Point(*values, held_out) for values in grid[:count]]


@lru_cache(maxsize=64)
def cumulated(rows: int, alpha: float) -> np.ndarray:
    """Cumulated Zipf shares of the rows, most popular first."""
    shares = np.arange(1, rows + 1, dtype=np.float64) ** -alpha
    total = np.cumsum(shares)
    return total / total[-1]


def draw(point: Point, generator: np.random.Generator) -> np.ndarray:
    """Rows that one feature reads in a step; popular rows are scattered over the table."""
    count = point.batch * point.pooling
    if point.alpha == 0:
        return generator.integers(point.rows, size=count)
    rank = np.searchsorted(cumulated(point.rows, point.alpha), generator.random(count))
    stride = int(point.rows * 0.618) | 1
    while np.gcd(stride, point.rows) != 1:
        stride += 2
    return np.minimum(rank, point.rows - 1) * stride % point.rows


def probe(point: Point, storage: Any) -> Probe:
    """Steps of one point on a slice of the large table; one untimed step fills the caches."""
    import torch

    table = storage[: point.rows * point.width].view(point.rows, point.width)
    model = MicroDlrm(point.shape, [table] * FEATURES, torch.Generator().manual_seed(0))

    def batch(number: int, step: int) -> tuple[Any, list[Any]]:
        generator = np.random.default_rng([number, step])
        ids = [torch.from_numpy(draw(point, generator)) for _ in range(FEATURES)]
        return torch.rand(point.batch, DENSE), ids

    def prepare(number: int) -> list[Any]:
        batches = [batch(number, step) for step in range(STEPS + 1)]
        model.forward(batches[0], lambda _: None)
        return batches[1:]

    def run(batches: list[Any], lap: Lap) -> None:
        for each in batches:
            model.forward(each, lap)

    return Probe(point.name, prepare, run, STEPS)
