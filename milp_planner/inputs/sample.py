"""From a sample of keys to classes of rows of equal popularity."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuda_routing.key_files import KeyFiles

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CLASSES = 64
"""Most classes that are told apart, so that pricing stays fast."""
ENOUGH = 100
"""Rows seen equally often whose number needs no smoothing."""


def bins_of(path: Path, rows: int, arrays: bool) -> tuple[tuple[float, float], ...]:
    """Shares of the rows and of the lookups, class by class, that a sample of keys speaks for.

    Of n keys, f_k rows were seen k times each. Good–Turing: rows not seen share f_1/n of the
    lookups, and one seen k times counts as (k + 1) f_{k+1}/f_k, with f smoothed (a power of k,
    fitted) from where fewer than a hundred rows were seen equally often. A row seen more often is
    never taken to be less popular.

    Parameters
    ----------
    path : Path
        File of keys (:class:`cuda_routing.key_files.KeyFiles`).
    rows : int
        Of the table.
    arrays : bool
        Whether keys are rows of an array, 0 … rows − 1; else any, but not more than rows.

    Raises
    ------
    ValueError
        One clause: the file is absent, empty, of an unknown kind, or keys are not the table's.

    References
    ----------
    I. J. Good, "The population frequencies of species and the estimation of population parameters",
    Biometrika 40, 1953; W. Gale, G. Sampson, "Good–Turing frequency estimation without tears",
    Journal of Quantitative Linguistics 2, 1995 (the smoothing).
    """
    seen = _counts(path, rows, arrays)
    times, number = np.unique(seen, return_counts=True)
    counts, lookups = _turing(times, number, rows)
    place = np.floor(np.log(times) / max(np.log(times[-1]), 1e-9) * (CLASSES - 2)).astype(np.int64)
    place = np.concatenate(([0], np.unique(place, return_inverse=True)[1] + 1))
    classes = _rising(np.bincount(place, counts), np.bincount(place, lookups))
    return tuple((part / rows, mass) for part, mass in classes if part)


def _counts(path: Path, rows: int, arrays: bool) -> Integers:
    """How often each different key of a file appears."""
    parts = [(np.empty(0, np.int64), np.empty(0, np.int64))]
    for piece in _pieces(path):
        low, high = int(piece.min()), int(piece.max())
        if arrays and not 0 <= low <= high < rows:
            found = low if low < 0 else high
            raise ValueError(f"{path}: found the key {found}; allowed: rows 0 to {rows - 1:,}")
        parts.append(np.unique(piece, return_counts=True))
        if sum(len(keys) for keys, _ in parts[1:]) > len(parts[0][0]):
            parts = [_joined(path, parts, rows)]
    counts = _joined(path, parts, rows)[1]
    if not len(counts):
        raise ValueError(f"{path}: holds no key; allowed: at least one")
    return counts


def _joined(
    path: Path, parts: list[tuple[Integers, Integers]], rows: int
) -> tuple[Integers, Integers]:
    """Different keys of all parts and how often each appears."""
    keys, place = np.unique(np.concatenate([each for each, _ in parts]), return_inverse=True)
    if len(keys) > rows:
        raise ValueError(f"{path}: found more than {rows:,} different keys; allowed: one a row")
    return keys, np.bincount(place, np.concatenate([n for _, n in parts])).astype(np.int64)


def _pieces(path: Path) -> Iterator[Integers]:
    try:
        yield from (piece.astype(np.int64) for piece in KeyFiles([path]) if len(piece))
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from None


def _turing(times: Integers, number: Integers, rows: int) -> tuple[Floats, Floats]:
    """Rows of each class and their share of the lookups, rows not seen first."""
    unseen = rows - int(number.sum())
    fresh = float(number[times == 1].sum() / (times @ number)) if unseen else 0.0
    around = np.concatenate(([0], times, 2 * times[-1:] - np.append(0, times)[-2:-1]))
    density = 2 * number / (around[2:] - around[:-2])
    slope = np.polyfit(np.log(times), np.log(density), 1)[0] if len(times) > 1 else -1.0
    lookups = number * times * (1 + 1 / times) ** (min(float(slope), -1.0) + 1)
    many = np.logical_and.accumulate((number >= ENOUGH) & (times == np.arange(len(times)) + 1))
    few = np.flatnonzero(many[1:])
    lookups[few] = times[few + 1] * number[few + 1]
    lookups *= (1 - fresh) / lookups.sum()
    return np.append(unseen, number).astype(float), np.append(fresh, lookups)


def _rising(counts: NDArray[Any], lookups: NDArray[Any]) -> list[tuple[float, float]]:
    """Classes joined until lookups a row rise (pool adjacent violators)."""
    classes: list[tuple[float, float]] = []
    for rows, mass in zip(counts.tolist(), lookups.tolist(), strict=True):
        while classes and classes[-1][1] * rows >= mass * classes[-1][0]:
            before = classes.pop()
            rows, mass = rows + before[0], mass + before[1]
        classes.append((rows, mass))
    return classes
