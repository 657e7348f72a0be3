"""Raw sweeps: times of one lookup by mode and x, as a calibration writes them or others publish.

A file is JSON (all fields below, or what calibrate writes as .raw.json) or CSV with the columns
``mode``, ``x``, ``ms`` and perhaps ``spread``; lines of equal mode and x are repeats. Two published
sweeps ship (:func:`shipped`).
"""

from __future__ import annotations

import csv
import io
import json
from importlib import resources
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from milp_planner.errors import BadInput
from milp_planner.inputs.files import build, read_document
from milp_planner.inputs.problems import choice
from milp_planner.inputs.spec import Bandwidth, Spec, as_tuple
from milp_planner.inputs.strict_yaml import plain_scalar
from milp_planner.inputs.text_files import read_text
from milp_planner.pricing.profile import Positive, Share

Mode = Literal["HBM_ONLY", "CACHING", "HYBRID", "HOST_ONLY"]
Over = Literal["cache_ratio", "hit_ratio", "batch_cover"]


class SweepPoint(Spec):
    """One measured time."""

    mode: Mode
    """Where the table lives."""
    x: Annotated[float, Field(ge=0)]
    """What the mode's curve is given over (``over``); 1 for HBM_ONLY, 0 for HOST_ONLY."""
    ms: Positive
    """Milliseconds."""
    spread: Share = 0.0
    """Relative spread of the time, 0.1 for ±10%; 0: not stated."""

    @property
    def name(self) -> str:
        """Which of a sweep's times it is."""
        return f"{self.mode} at x = {self.x:g}"


class Sweep(Spec):
    """Times of one and the same lookup in different modes."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    """Name of the profile fitted to it."""
    source: str
    """Where the times come from."""
    base: str = "torchrec-default"
    """Profile whose numbers stand where the sweep has none."""
    hbm: Bandwidth | None = None
    """Bandwidth that x_eff = 1 stands for; default: that of the base profile."""
    host_link: Bandwidth | None = None
    """Bandwidth that x_eff = 0 stands for; default: that of the base profile."""
    moved_bytes: Annotated[int, Field(ge=1)] | None = None
    """Bytes that the lookup moves in the planner's account, where they are known: gives the
    divisor of dynamicemb lookups."""
    over: dict[Mode, Over] = Field(default_factory=dict)
    """What x is, by mode; default cache_ratio."""
    points: Annotated[tuple[SweepPoint, ...], BeforeValidator(as_tuple), Field(min_length=2)]
    """The times."""


_SHIPPED = resources.files("milp_planner.features.calibrate") / "sweeps"


def shipped(name: str) -> Sweep:
    """A published sweep that ships: ``a10`` or ``h100``."""
    return Sweep.from_dict(json.loads((_SHIPPED / f"{name}.json").read_text()), name)


def read_sweep(path: str | Path) -> Sweep:
    """A sweep from a JSON or CSV file, by the name's ending.

    Raises
    ------
    BadInput
        One sentence: file, line or field, what was found, what is allowed.
    """
    file = Path(path)
    if file.suffix.lower() == ".json":
        document = read_document(file)
        if isinstance(inside := document.data.get("sweep"), dict):
            return Sweep.from_dict(inside, f"{file}: sweep")
        return build(Sweep, document)
    if file.suffix.lower() == ".csv":
        return _merged(_from_csv(file))
    raise BadInput(f"{file}: a raw sweep is a .json or .csv file")


def merge(points: list[SweepPoint]) -> tuple[SweepPoint, ...]:
    """Repeats of one mode and x as one point: the median, and half the range where wider."""
    groups: dict[tuple[str, float], list[SweepPoint]] = {}
    for point in points:
        groups.setdefault((point.mode, point.x), []).append(point)
    merged = []
    for same in groups.values():
        times = [point.ms for point in same]
        middle = median(times)
        stated = max(point.spread for point in same)
        seen = (max(times) - min(times)) / 2 / middle
        merged.append(
            same[0].model_copy(update={"ms": middle, "spread": min(max(stated, seen), 1.0)})
        )
    return tuple(merged)


def _merged(sweep: Sweep) -> Sweep:
    return sweep.model_copy(update={"points": merge(list(sweep.points))})


def _from_csv(file: Path) -> Sweep:
    lines = list(csv.reader(io.StringIO(read_text(file), newline="")))
    header = [cell.strip() for cell in lines[0]] if lines else []
    for column in header:
        if column not in SweepPoint.model_fields:
            allowed = choice(column, list(SweepPoint.model_fields))
            raise BadInput(f"{file}:1: unknown column {column!r}: {allowed}")
    missing = [column for column in ("mode", "x", "ms") if column not in header]
    if missing:
        raise BadInput(f"{file}:1: the column {missing[0]} is missing; allowed: mode,x,ms[,spread]")
    points: list[dict[str, Any]] = []
    for number, line in enumerate(lines[1:], start=2):
        if not any(cell.strip() for cell in line):
            continue
        if len(line) != len(header):
            raise BadInput(
                f"{file}:{number}: found {len(line)} cells; allowed: {len(header)}, as in line 1"
            )
        try:
            row = {k: plain_scalar(cell.strip()) for k, cell in zip(header, line, strict=True)}
        except ValueError as error:
            raise BadInput(f"{file}:{number}: {error}") from None
        points.append(SweepPoint.from_dict(row, f"{file}:{number}").to_dict())
    data = {"name": file.stem, "source": f"the file {file.name}", "points": points}
    return Sweep.from_dict(data, str(file))
