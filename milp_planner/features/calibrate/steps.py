"""Random training steps to measure: tables (size, width, pooling, skew), batch and optimizer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from milp_planner.features.calibrate.machine import ELEMENT
from milp_planner.files import Facts

OPTIMIZERS = ("sgd", "rowwise_adagrad", "adam")
"""Optimizers that a calibration measures; the costs of the planner's others lie between."""
LEAST_BYTES = 2**16
"""Fewest bytes of a drawn table."""


@dataclass(frozen=True)
class StepTable:
    """One table, and how a step reads it."""

    rows: int
    dim: int
    pooling: int
    """Ids per bag."""
    alpha: float
    """Zipf exponent of the ids; 0: uniform."""

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.rows * self.dim


@dataclass(frozen=True)
class StepSpec(Facts):
    """One training step: lookups, a small DLRM above them, gradients and updates."""

    tables: tuple[StepTable, ...]
    batch: int
    """Samples."""
    optimizer: str
    """Optimizer of the tables."""

    @property
    def name(self) -> str:
        """A unique name."""
        shapes: dict[StepTable, int] = {}
        for table in self.tables:
            shapes[table] = shapes.get(table, 0) + 1
        parts = [f"{n} x {t.rows}x{t.dim} P{t.pooling} a{t.alpha:g}" for t, n in shapes.items()]
        return f"step B{self.batch} {self.optimizer}: {', '.join(parts)}"

    @property
    def columns(self) -> int:
        """Floats in a sample's joined embeddings."""
        return sum(table.dim for table in self.tables)

    @property
    def moved_bytes(self) -> int:
        """Bytes of the rows that the lookups read."""
        return sum(self.batch * t.pooling * t.dim * ELEMENT for t in self.tables)


@dataclass(frozen=True)
class Ranges:
    """The ranges that steps are drawn from; sizes and batches are uniform in the logarithm."""

    tables: tuple[int, ...]
    dims: tuple[int, ...]
    poolings: tuple[int, ...]
    alphas: tuple[float, ...]
    optimizers: tuple[str, ...]
    batches: tuple[int, int]
    alike: bool
    """Whether the tables of a step are equal."""


FITTED = Ranges(
    tables=(1, 2, 4), dims=(32, 64, 128, 256), poolings=(1, 2, 8, 20), alphas=(0.0, 0.9, 1.2),
    optimizers=OPTIMIZERS, batches=(256, 8192), alike=True,
)  # fmt: skip
"""Ranges of the steps that a profile is fitted to."""
TRAINING = Ranges(
    tables=(1, 4, 12, 26), dims=(32, 64, 128, 256), poolings=(1, 8, 20, 50), alphas=(0.0, 0.9, 1.2),
    optimizers=OPTIMIZERS, batches=(8193, 65536), alike=False,
)  # fmt: skip
"""The same at training size, for a GPU: in small steps its dispatch hides its work."""


def draw_steps(
    ranges: Ranges, count: int, *, most: int, moved: int, seed: int = 0
) -> list[StepSpec]:
    """Draw steps at random, cycling through the optimizers.

    Parameters
    ----------
    most : int
        Most elements of all tables of a step together.
    moved : int
        Most bytes that a step's lookups may read.
    """
    generator = np.random.default_rng(seed)
    found: list[StepSpec] = []
    while len(found) < count:
        spec = _draw(
            ranges, generator, most, ranges.optimizers[len(found) % len(ranges.optimizers)]
        )
        fits = sum(t.size for t in spec.tables) <= most and spec.moved_bytes <= moved
        if fits and spec not in found:
            found.append(spec)
    return found


def _draw(ranges: Ranges, generator: np.random.Generator, most: int, optimizer: str) -> StepSpec:
    number = int(generator.choice(ranges.tables))
    different = 1 if ranges.alike else number

    def table() -> StepTable:
        dim = int(generator.choice(ranges.dims))
        size = _even(generator, LEAST_BYTES, most * ELEMENT)
        return StepTable(
            max(size // (dim * ELEMENT), 2), dim, int(generator.choice(ranges.poolings)),
            float(generator.choice(ranges.alphas)),
        )  # fmt: skip

    tables = [table() for _ in range(different)] * (number // different)
    return StepSpec(tuple(tables), _even(generator, *ranges.batches), optimizer)


def _even(generator: np.random.Generator, low: int, high: int) -> int:
    """A whole number whose logarithm is uniform."""
    return int(np.exp(generator.uniform(np.log(low), np.log(high))))


class Uniform(Protocol):
    """Source of uniform random numbers, as numpy's generators are."""

    def random(self, count: int, /) -> Any:
        """``count`` float64 numbers of [0, 1), as an array of the module that draws."""


def draw_ids(table: StepTable, count: int, generator: Uniform, arrays: Any = np) -> Any:
    """Draw row ids by Zipf's law, with popular rows scattered over the table; an int64 array.

    Uses rejection-inversion with the integral of x^−alpha: exact, and without an array over the
    rows. ``arrays`` is the module of the generator's arrays, numpy or torch.

    References
    ----------
    W. Hörmann, G. Derflinger, "Rejection-inversion to generate variates from monotone discrete
    distributions", ACM TOMACS 6(3), 1996, doi:10.1145/235025.235029.
    """

    def whole(values: Any) -> Any:
        return arrays.asarray(values, dtype=arrays.int64)

    if table.alpha == 0:
        return whole(arrays.floor(generator.random(count) * table.rows))
    power = 1.0 - table.alpha

    def area(x: Any, log: Any = np.log) -> Any:
        return log(x) if power == 0 else (x**power - 1) / power

    low, high = float(area(1.5)) - 1.0, float(area(table.rows + 0.5))
    found, left = [], count
    while left > 0:
        drawn = low + (high - low) * generator.random(left)
        inverse = arrays.exp(drawn) if power == 0 else (1 + drawn * power) ** (1 / power)
        rank = arrays.clip(arrays.round(inverse), 1, table.rows)
        kept = drawn >= area(rank + 0.5, arrays.log) - rank**-table.alpha
        found.append(rank[kept])
        left -= len(found[-1])
    return (whole(arrays.concatenate(found)) - 1) * _stride(table.rows) % table.rows


def _stride(rows: int) -> int:
    """An odd number near the golden section of ``rows`` and coprime to it."""
    stride = int(rows * 0.618) | 1
    while np.gcd(stride, rows) != 1:
        stride += 2
    return stride
