"""Streams of lookups: rows drawn by popularity, or keys read from files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cuda_routing.key_files import KeyFiles
from cuda_routing.rules import splitmix64
from milp_planner.errors import BadInput
from milp_planner.inputs.access import Histogram, Unknown
from milp_planner.inputs.model import Model
from milp_planner.pricing.popularity import Popularity
from milp_planner.pricing.units import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Drawn:
    """Independent random lookups; rows are numbered by descending popularity."""

    rows: int
    """Rows that can be drawn."""
    edges: FloatArray
    """Rows before each class of equal popularity, and their total; float array [classes + 1]."""
    mass: FloatArray
    """Share of the lookups before each class, and 1; float array [classes + 1]."""

    def draw(self, lookups: int, generator: np.random.Generator) -> IntArray:
        """Draw the rows of ``lookups`` lookups, int64 array."""
        places = np.interp(generator.random(lookups), self.mass, self.edges)
        return np.minimum(places.astype(np.int64), self.rows - 1)

    def thinned(self, rate: float) -> Drawn:
        """The same distribution over ``rate`` times the rows; lookups and slots must shrink alike.

        A stratified sample of rows in the manner of SHARDS (C. Waldspurger et al., "Efficient MRC
        construction with SHARDS", FAST 2015): in order of popularity, every 1/rate rows become one
        row with their mean popularity.
        """
        rows = max(round(self.rows * rate), 1)
        return Drawn(rows, self.edges * (rows / self.rows), self.mass)


def drawn(known: Popularity) -> Drawn:
    """Lookups that follow the classes of :func:`milp_planner.pricing.popularity.popularity`."""
    edges = np.concatenate(([0.0], np.cumsum(known.counts)))
    mass = np.concatenate(([0.0], np.cumsum(known.counts * known.shares)))
    rows = max(round(known.rows), 1)
    return Drawn(rows, edges * (rows / edges[-1]), mass / mass[-1])


def scattered(places: IntArray, rows: int, seed: int, first: Sequence[int] = ()) -> IntArray:
    """Ids of rows numbered by popularity: a random permutation of 0 … rows − 1, never stored.

    A Feistel network over the next power of four, walked until the id lies below ``rows`` (J.
    Black, P. Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002). ``first`` lists the
    known ids of the most popular rows; each swaps places with the id that the permutation gave its
    row.
    """
    ids = _permuted(places, rows, seed)
    if not first:
        return ids
    known = np.asarray(first, dtype=np.int64)
    swapped: dict[int, int] = {}
    for place, wanted in enumerate(known.tolist()):
        own = int(_permuted(np.array([place]), rows, seed)[0])
        now = swapped.get(own, own)
        swapped = {a: (now if b == wanted else b) for a, b in swapped.items()}
        swapped.setdefault(wanted, now)
        swapped[own] = wanted
    moved = np.array(sorted(swapped))
    at = np.minimum(np.searchsorted(moved, ids), len(moved) - 1)
    return np.where(moved[at] == ids, np.array([swapped[k] for k in moved.tolist()])[at], ids)


def read_keys(paths: Sequence[Path]) -> IntArray:
    """Read and join the keys of files (``.npy``, raw, text); BadInput when there are none."""
    parts = [piece.astype(np.int64) for piece in KeyFiles(paths)]
    if not parts:
        raise BadInput(f"{', '.join(map(str, paths))}: holds no key")
    return np.concatenate(parts)


def _permuted(places: IntArray, rows: int, seed: int) -> IntArray:
    half = np.uint64(max((max(rows - 1, 1).bit_length() + 1) // 2, 1))
    keys = [splitmix64(np.array([4 * seed + i]))[0] for i in range(4)]
    ids = _feistel(places.astype(np.uint64), half, keys)
    outside = np.flatnonzero(ids >= rows)
    while len(outside):
        ids[outside] = _feistel(ids[outside], half, keys)
        outside = outside[ids[outside] >= rows]
    return ids.astype(np.int64)


def _feistel(ids: np.ndarray, half: np.uint64, keys: list[np.uint64]) -> np.ndarray:
    low = (np.uint64(1) << half) - np.uint64(1)
    left, right = ids >> half, ids & low
    for key in keys:
        left, right = right, left ^ (splitmix64(right ^ key) & low)
    return (left << half) | right


LOOKUPS = {
    "dlrm-2021": (0.056, 0.043, 0.075, 0.099, 0.112, 0.091, 0.064, 0.052, 0.049, 0.05, 0.054,
                  0.058, 0.061, 0.052, 0.038, 0.026, 0.02),
    "dlrm-2022": (0.027, 0.023, 0.04, 0.068, 0.105, 0.12, 0.099, 0.07, 0.059, 0.054, 0.04, 0.071,
                  0.064, 0.047, 0.021, 0.017, 0.075),
}  # fmt: skip
"""Shares of a batch's lookups whose row is looked up once, twice, 3–4, 5–8, … 16,385–32,768 times
or more in the batch. All tables together (856 of 2021 at batch 65,536, 788 of 2022 at batch
131,072). Source: facebookresearch/dlrm_datasets (MIT), ``embedding_bag/{2021,2022}``,
``locality_stats.txt`` at 6f46ba7, files ``…_15.pt``; batches of a year differ in the third decimal
at most."""

REUSE = np.array([1.0, 2.0, 3.4, *(1.44 * 2.0**i for i in range(2, 15)), 1.44 * 2.0**15])
"""Mean lookups per row in each class. These are fitted: they give 7.5 and 12.5 lookups per row,
where the source states 7.6 and 12.7, and reproduce its share of rows in each class to 0.01."""


def published(name: str) -> Histogram:
    """The rows that one batch touches, in classes of equal popularity."""
    lookups = np.array(LOOKUPS[name])
    rows = lookups / REUSE
    rows, lookups = rows / rows.sum(), lookups / lookups.sum()
    bins = tuple(zip(rows.tolist(), lookups.tolist(), strict=True))
    return Histogram(kind="histogram", bins=bins)


def with_skew(model: Model, name: str) -> Model:
    """The model with published skew on tables without statistics; measured fields are kept."""
    access, tables = published(name), []
    for table in model.tables:
        if isinstance(known := table.access, Unknown):
            kept = {name: getattr(known, name) for name in ("unique_fraction", "measured_skew")}
            table = table.model_copy(update={"access": access.model_copy(update=kept)})
        tables.append(table)
    return model.model_copy(update={"tables": tuple(tables)})
