"""Access statistics of a table's rows; samples and curves become histograms."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, model_validator

from cuda_routing.key_files import KeyFiles
from milp_planner.errors import BadInput
from milp_planner.inputs.problems import nearest, problem_at
from milp_planner.inputs.spec import Count, Many, Pair, Some, Spec
from milp_planner.inputs.strict_yaml import csv_lines

Points = tuple[tuple[int, float], ...]
"""Pairs (rank, share of the lookups that go to rows up to that rank), by rising rank."""

_FOLDER = resources.files("milp_planner.inputs") / "frequencies"
_HEADER = ["rank", "share"]


def curve_names() -> tuple[str, ...]:
    """Names of the shipped curves, sorted; the README.md in their folder describes them."""
    names = (entry.name for entry in _FOLDER.iterdir())
    return tuple(sorted(name[:-4] for name in names if name.endswith(".csv")))


def read_curve(name: str, folder: Path) -> Points:
    """A shipped curve by name, or a CSV file in the folder; else ValueError, one clause.

    The file has the columns ``rank`` and ``share``. Ranks and shares rise, and a row's share never
    rises with the rank.
    """
    if name.endswith(".csv"):
        return _points(folder / name)
    if name not in curve_names():
        close = nearest(name, curve_names())
        hint = f"; did you mean {close!r}?" if close else ""
        raise ValueError(f"found {name!r}{hint}; allowed: a .csv file, {', '.join(curve_names())}")
    with resources.as_file(_FOLDER / f"{name}.csv") as path:
        return _points(path)


def _points(path: Path) -> Points:
    try:
        lines = list(csv_lines(path))
    except BadInput as error:
        raise ValueError(str(error)) from None
    if not lines or lines[0][1] != _HEADER:
        raise ValueError(f"{path}: found other columns; allowed: the header rank,share")
    points: list[tuple[int, float]] = []
    steepest = float("inf")
    for number, cells in lines[1:]:
        try:
            (rank, share), before = (int(cells[0]), float(cells[1])), (points or [(0, 0.0)])[-1]
        except (ValueError, IndexError):
            raise ValueError(
                f"{path}:{number}: found {','.join(cells)}; allowed: a whole rank and a share"
            ) from None
        if rank <= before[0] or not before[1] < share <= 1:
            raise ValueError(f"{path}:{number}: allowed: rising ranks with shares rising up to 1")
        each = (share - before[1]) / (rank - before[0])
        if each > steepest * (1 + 1e-3):
            raise ValueError(f"{path}:{number}: allowed: shares of a row that fall with the rank")
        steepest = min(steepest, each)
        points.append((rank, share))
    if not points:
        raise ValueError(f"{path}: has no ranks; allowed: at least one")
    return tuple(points)


def bins_of_curve(points: Points, rows: int) -> tuple[tuple[float, float], ...]:
    """Shares of the rows and of the lookups by class, for a table of ``rows`` rows.

    A table smaller than the curve's has only the most popular rows, which share all lookups.
    Lookups that the curve does not cover fall evenly on the rows after its last rank, none of which
    is more popular than a row before it.
    """
    classes: list[tuple[float, float]] = []
    before, each = (0, 0.0), 1.0
    for rank, share in points:
        each = (share - before[1]) / (rank - before[0])
        count = min(rank, rows) - before[0]
        if count <= 0:
            break
        classes.append((count, count * each))
        before = (rank, share)
    if left := rows - min(before[0], rows):
        classes.append((left, min(1.0 - before[1], left * each)))
    total = sum(mass for _, mass in classes)
    return tuple((count / rows, mass / total) for count, mass in classes)


Share = Annotated[float, Field(ge=0, le=1)]
_EPSILON = 1e-6


class MeasuredSkew(Spec):
    """The load of the busiest rank, measured in a real run with the table sharded row-wise."""

    max_over_mean: Annotated[float, Field(ge=1)]
    """Lookups of the busiest rank divided by the mean over ranks."""
    ranks: Annotated[int, Field(ge=2)]
    """Number of ranks of that run."""


class WorstBatch(MeasuredSkew):
    """The same for the worst batch of that run."""

    deduplication: Literal["before", "after"] = "before"
    """Whether lookups were counted before or after each rank's equal ids were dropped, where
    they are. Before: the busiest rank may receive all of its share as different ids."""


class _Access(Spec):
    unique_fraction: Annotated[float, Field(gt=0, le=1)] | None = None
    """Measured share of distinct ids among the ids of one rank's batch; by default derived."""
    measured_skew: MeasuredSkew | None = None
    """Measured average row-wise load of the busiest rank; by default derived from the statistics.
    It determines time."""
    peak_skew: WorstBatch | None = None
    """The same in the worst batch, if that is more than the average plus six standard deviations,
    which are assumed in any case. It determines memory."""


class Unknown(_Access):
    """No statistics: every row is assumed to be accessed equally often."""

    kind: Literal["unknown"] = "unknown"
    """The word unknown."""


class Zipf(_Access):
    """The k-th most popular row is accessed in proportion to k to the power −alpha."""

    kind: Literal["zipf"]
    """The word zipf."""
    alpha: Annotated[float, Field(ge=0, le=10)]
    """Exponent; 0 is uniform."""
    hot_ids: Many[Annotated[int, Field(ge=0)]] = ()
    """Ids of the most popular rows, most popular first; leave it out if unknown."""


class Histogram(_Access):
    """Rows in classes of equal popularity."""

    kind: Literal["histogram"]
    """The word histogram."""
    bins: Some[Pair[Share, Share]]
    """Pairs (share of the rows, share of the lookups), in any order; each column sums to 1."""

    @model_validator(mode="after")
    def _sums(self) -> Histogram:
        for column, what in enumerate(("rows", "lookups")):
            total = sum(pair[column] for pair in self.bins)
            if abs(total - 1) > _EPSILON:
                raise ValueError(f"the shares of {what} sum to {total:.6g}; allowed: 1")
        if any(rows == 0 and lookups > 0 for rows, lookups in self.bins):
            raise ValueError("a bin has lookups but no rows; allowed: a share of rows above 0")
        return self


class HotId(Spec):
    """One popular row."""

    share: Annotated[float, Field(gt=0, le=1)]
    """Its share of the table's lookups."""
    id: Annotated[int, Field(ge=0)] | None = None
    """The id; leave it out if it is not known."""


class TopIds(_Access):
    """The most popular rows one by one; the rest of the lookups spread evenly."""

    kind: Literal["top_ids"]
    """The word top_ids."""
    ids: Some[HotId]
    """Popular rows with their shares of the lookups, which sum to at most 1."""

    @model_validator(mode="after")
    def _consistent(self) -> TopIds:
        total = sum(hot.share for hot in self.ids)
        if total > 1 + _EPSILON:
            raise ValueError(f"the shares of the hot ids sum to {total:.6g}; allowed: at most 1")
        known = [hot.id for hot in self.ids if hot.id is not None]
        if len(known) != len(set(known)):
            raise ValueError("a hot id is listed twice; allowed: every id once")
        return self


class MissRate(_Access):
    """A measured miss-rate curve of a cache in HBM."""

    kind: Literal["miss_rate"]
    """The word miss_rate."""
    points: Some[Pair[Share, Share]]
    """Pairs (cache ratio, share of lookups that miss), by rising cache ratio."""
    working_rows: Count | None = None
    """Number of distinct rows in the measurement; by default all rows of the table."""

    @model_validator(mode="after")
    def _falling(self) -> MissRate:
        for (x, miss), (next_x, next_miss) in zip(self.points, self.points[1:], strict=False):
            if next_x <= x or next_miss > miss:
                raise ValueError(
                    f"point ({next_x:g}, {next_miss:g}) follows ({x:g}, {miss:g}); "
                    "allowed: rising cache ratios with falling miss rates"
                )
        return self


class Sample(_Access):
    """Keys of real lookups; read with the model into a histogram."""

    kind: Literal["sample"]
    """The word sample."""
    keys: Annotated[str, Field(min_length=1)]
    """File of keys in the order of lookups; its path is relative to the model file."""


class Frequency(_Access):
    """Measured frequencies of the rows by popularity rank; read with the model into a histogram."""

    kind: Literal["frequency"]
    """The word frequency."""
    curve: Annotated[str, Field(min_length=1)]
    """A shipped curve (criteo, criteo-large), or a CSV file with the columns rank and share: the
    share of the lookups that go to the most popular rows up to that rank. Its path is relative to
    the model file."""


def name_as_kind(value: object) -> object:
    """The bare word ``unknown`` stands for ``{kind: unknown}``."""
    return {"kind": value} if isinstance(value, str) else value


Access = Annotated[
    Annotated[
        Unknown | Zipf | Histogram | TopIds | MissRate | Sample | Frequency,
        Field(discriminator="kind"),
    ],
    BeforeValidator(name_as_kind),
]


Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

CLASSES = 64
"""Most classes of a histogram, so that pricing stays fast."""
ENOUGH_ROWS = 100
"""If at least this many rows were seen equally often, their number is not smoothed."""


def bins_of(path: Path, rows: int, arrays: bool) -> tuple[tuple[float, float], ...]:
    """Shares of the rows and of the lookups by class, estimated from a sample of keys.

    Of n keys, f_k rows were seen k times each. Good–Turing: rows not seen share f_1/n of the
    lookups, and one seen k times counts as (k + 1) f_{k+1}/f_k, with f smoothed (by a fitted power
    of k) from the first k for which fewer than a hundred rows were seen k times. A row seen more
    often is never estimated to be less popular. With ``arrays``, keys are row numbers, 0 … rows −
    1; otherwise they are arbitrary, with at most ``rows`` different ones. ValueError, one clause,
    if keys are not the table's, or if :class:`cuda_routing.key_files.KeyFiles` cannot read the
    file.

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
    """How often each different key of a file occurs."""
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
        raise ValueError(f"{path}: has no keys; allowed: at least one")
    return counts


def _joined(
    path: Path, parts: list[tuple[Integers, Integers]], rows: int
) -> tuple[Integers, Integers]:
    """Different keys of all parts, and how often each occurs."""
    keys, place = np.unique(np.concatenate([each for each, _ in parts]), return_inverse=True)
    if len(keys) > rows:
        raise ValueError(f"{path}: found more than {rows:,} different keys; allowed: one per row")
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
    many = np.logical_and.accumulate((number >= ENOUGH_ROWS) & (times == np.arange(len(times)) + 1))
    few = np.flatnonzero(many[1:])
    lookups[few] = times[few + 1] * number[few + 1]
    lookups *= (1 - fresh) / lookups.sum()
    return np.append(unseen, number).astype(float), np.append(fresh, lookups)


def _rising(counts: NDArray[Any], lookups: NDArray[Any]) -> list[tuple[float, float]]:
    """Join classes until lookups per row rise (pool adjacent violators)."""
    classes: list[tuple[float, float]] = []
    for rows, mass in zip(counts.tolist(), lookups.tolist(), strict=True):
        while classes and classes[-1][1] * rows >= mass * classes[-1][0]:
            before = classes.pop()
            rows, mass = rows + before[0], mass + before[1]
        classes.append((rows, mass))
    return classes


def histogram_of(access: Sample | Frequency, folder: Path, rows: int, arrays: bool) -> Histogram:
    """The classes of popularity from a file; measured figures are kept."""
    try:
        if isinstance(access, Frequency):
            bins = bins_of_curve(read_curve(access.curve, folder), rows)
        else:
            bins = bins_of(folder / access.keys, rows, arrays)
    except ValueError as error:
        raise problem_at(str(error), "keys" if access.kind == "sample" else "curve") from None
    kept = {name: getattr(access, name) for name in _Access.model_fields}
    return Histogram(kind="histogram", bins=bins, **kept)
