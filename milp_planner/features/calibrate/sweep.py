"""Raw sweeps: times of one lookup by mode and x, written by a calibration or published by others.

A file is JSON (all fields below, or what calibrate writes as .raw.json) or CSV with the columns
``mode``, ``x``, ``ms`` and optionally ``spread``; lines with equal mode and x are repeats.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from math import hypot, isfinite
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Literal, cast

from pydantic import BeforeValidator, Field

from milp_planner.errors import BadInput
from milp_planner.features.calibrate.machine import MAX_SPREAD, TooNoisy, quiet
from milp_planner.inputs.access import Share
from milp_planner.inputs.constraints import Mode
from milp_planner.inputs.files import build, read_document
from milp_planner.inputs.problems import choice
from milp_planner.inputs.spec import Bandwidth, Spec, as_tuple
from milp_planner.inputs.strict_yaml import csv_lines, plain_scalar
from milp_planner.pricing.profile import EfficiencyCurve, Positive, Profile, Spreadable

Over = Literal["cache_ratio", "hit_ratio", "batch_cover"]


class SweepPoint(Spec):
    """One measured time."""

    mode: Mode
    """Where the table lives."""
    x: Annotated[float, Field(ge=0)]
    """Position on the mode's curve (see ``over``); 1 for HBM_ONLY, 0 for HOST_ONLY."""
    ms: Positive
    """Milliseconds."""
    spread: Share = 0.0
    """Relative spread of the time, 0.1 for ±10%; 0: not stated."""

    @property
    def name(self) -> str:
        """The point's name in messages."""
        return f"{self.mode} at x = {self.x:g}"


def _whole(value: Any) -> Any:
    """JSON has no other way to write a large number shortly than 1e9."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


class Sweep(Spec):
    """Times of the same lookup in different modes."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    """Name of the profile fitted to it."""
    source: str
    """Where the times come from."""
    base: str = "torchrec-default"
    """Profile that supplies the numbers missing from the sweep."""
    hbm: Bandwidth | None = None
    """Bandwidth that x_eff = 1 stands for; default: that of the base profile."""
    host_link: Bandwidth | None = None
    """Bandwidth that x_eff = 0 stands for; default: that of the base profile."""
    moved_bytes: Annotated[int, Field(ge=1), BeforeValidator(_whole)] | None = None
    """Bytes that the lookup moves, as the planner counts them, if known; they give the divisor of
    dynamicemb lookups."""
    over: dict[Mode, Over] = Field(default_factory=dict)
    """Meaning of ``x`` by mode; default: cache_ratio."""
    points: Annotated[tuple[SweepPoint, ...], BeforeValidator(as_tuple), Field(min_length=2)]
    """The times."""


def read_sweep(path: str | Path) -> Sweep:
    """Read a sweep from a JSON or CSV file, by the name's ending; BadInput names what is wrong."""
    file = Path(path)
    if file.suffix.lower() == ".json":
        document = read_document(file)
        if isinstance(inside := document.data.get("sweep"), dict):
            return Sweep.from_dict(inside, f"{file}: sweep")
        return build(Sweep, document)
    if file.suffix.lower() == ".csv":
        sweep = _from_csv(file)
        return sweep.model_copy(update={"points": merge(list(sweep.points))})
    raise BadInput(f"{file}: a raw sweep is a .json or .csv file")


def merge(points: list[SweepPoint]) -> tuple[SweepPoint, ...]:
    """Merge repeats of one mode and x: their median, with half their range as spread if wider."""
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


def _from_csv(file: Path) -> Sweep:
    lines = csv_lines(file)
    header = next(lines, (1, []))[1]
    for column in header:
        if column not in SweepPoint.model_fields:
            allowed = choice(column, list(SweepPoint.model_fields))
            raise BadInput(f"{file}:1: unknown column {column!r}: {allowed}")
    missing = [column for column in ("mode", "x", "ms") if column not in header]
    if missing:
        raise BadInput(f"{file}:1: the column {missing[0]} is missing; allowed: mode,x,ms[,spread]")
    points: list[dict[str, Any]] = []
    for number, cells in lines:
        if len(cells) != len(header):
            raise BadInput(
                f"{file}:{number}: found {len(cells)} cells; allowed: {len(header)}, as in line 1"
            )
        try:
            values = [_cell(cell) for cell in cells]
            row = dict(zip(header, values, strict=True))
        except ValueError as error:
            raise BadInput(f"{file}:{number}: {error}") from None
        points.append(SweepPoint.from_dict(row, f"{file}:{number}").to_dict())
    data = {"name": file.stem, "source": f"the file {file.name}", "points": points}
    return Sweep.from_dict(data, str(file))


def _cell(text: str) -> Any:
    """A cell as it is, or a number such as 1e-3."""
    try:
        return plain_scalar(text, in_yaml=False)
    except ValueError:
        if "e" not in text.lower() or not isfinite(float(text)):
            raise
        return float(text)


SLACK = 0.03
"""Relative difference up to which two times never contradict each other."""
CURVES: dict[Mode, Spreadable] = {"CACHING": "caching", "HYBRID": "hybrid"}
"""The profile's field of a mode's curve."""


@dataclass(frozen=True)
class Fit:
    """The profile values that a sweep determines."""

    curves: dict[str, EfficiencyCurve]
    """:class:`~milp_planner.pricing.profile.EfficiencyCurve` by mode (CACHING, HYBRID)."""
    host_only: float | None
    """x_eff of HOST_ONLY."""
    divisor: float | None
    """Divisor of dynamicemb lookups; None if the sweep does not state the bytes moved."""
    spread: dict[Spreadable, float] = field(default_factory=dict)
    """Relative spread of x_eff by the profile's field names, if the sweep states spreads."""


def fit_sweep(sweep: Sweep, base: Profile, max_spread: float = MAX_SPREAD) -> Fit:
    """Fit the curve of every mode in the sweep; ``base`` supplies bandwidths that it lacks.

    Raises BadInput without an HBM_ONLY time (the reference for x_eff = 1), or for an x that its
    mode cannot have. Raises TooNoisy if a time spreads beyond ``max_spread``, or if times
    contradict each other beyond their spread: a tiered lookup that is faster than HBM, slower than
    the host link, or slower at a larger x.
    """
    quiet(sweep.points, max_spread)
    hbm, link = sweep.hbm or base.hbm, sweep.host_link or base.host_link
    if link >= hbm:
        raise BadInput(
            f"{sweep.name}: host_link ({link / 1e9:.4g} GB/s) is not below hbm "
            f"({hbm / 1e9:.4g} GB/s): nothing separates the tiers"
        )
    reference = _single(sweep, "HBM_ONLY", 1.0)
    if reference is None:
        raise BadInput(f"{sweep.name}: needs one point of mode HBM_ONLY (x = 1) to compare with")
    host = _single(sweep, "HOST_ONLY", 0.0)
    share = link / hbm
    curves: dict[str, EfficiencyCurve] = {}
    spread: dict[Spreadable, float] = {}
    for mode, name in CURVES.items():
        points = sorted((p for p in sweep.points if p.mode == mode), key=lambda p: p.x)
        if not points:
            continue
        if host is not None and points[0].x > 0:
            points.insert(0, host)
        _check_order(sweep, mode, points)
        curves[mode] = EfficiencyCurve(
            over=sweep.over.get(mode, "cache_ratio"),
            points=tuple((p.x, _x_eff(sweep, p, reference, share)) for p in points),
            origin=sweep.source,
        )
        spread[name] = _relative(points, reference, share)
    host_only = None if host is None else _x_eff(sweep, host, reference, share)
    if host_only:
        spread["host_only"] = _relative([cast(SweepPoint, host)], reference, share)
    divisor = None if sweep.moved_bytes is None else hbm * reference.ms / 1e3 / sweep.moved_bytes
    known = {name: min(value, 0.99) for name, value in spread.items() if value > 0}
    return Fit(curves, host_only, divisor, known)


def fitted_profile(sweep: Sweep, base: Profile, max_spread: float = MAX_SPREAD) -> Profile:
    """The base profile with the values that :func:`fit_sweep` determines."""
    fit = fit_sweep(sweep, base, max_spread)
    hbm, link = sweep.hbm or base.hbm, sweep.host_link or base.host_link
    kernel = base.kernel
    if fit.divisor is not None:
        kernel = kernel.model_copy(update={"dynamicemb_divisor": fit.divisor})
    origin = {**base.origin}
    stated = {"hbm": sweep.hbm, "host_link": sweep.host_link, "host_only": fit.host_only}
    origin.update({name: sweep.source for name, value in stated.items() if value is not None})
    made = base.model_copy(
        update={
            "name": sweep.name,
            "description": f"x_eff fitted to a sweep: {sweep.source}",
            "hbm": hbm,
            "host_link": link,
            "kernel": kernel,
            "caching": fit.curves.get("CACHING", base.caching),
            "hybrid": fit.curves.get("HYBRID", base.hybrid),
            "host_only": base.host_only if fit.host_only is None else fit.host_only,
            "spread": {**base.spread, **fit.spread},
            "origin": origin,
        }
    )
    return Profile.from_dict(made.to_dict())


def _single(sweep: Sweep, mode: Mode, x: float) -> SweepPoint | None:
    """The point of a mode that allows only one x."""
    found = [point for point in sweep.points if point.mode == mode]
    for point in found:
        if point.x != x:
            raise BadInput(f"{sweep.name}: {mode} at x = {point.x:g}; allowed: {x:g}")
    if len(found) > 1:
        raise BadInput(f"{sweep.name}: {len(found)} points of mode {mode}; allowed: one")
    return found[0] if found else None


def _check_order(sweep: Sweep, mode: Mode, points: list[SweepPoint]) -> None:
    for below, above in pairwise(points):
        if above.x == below.x:
            raise BadInput(
                f"{sweep.name}: two points of mode {mode} at x = {below.x:g}; allowed: one (in a "
                "CSV file, repeats are merged)"
            )
        allowed = _allowed(below, above)
        if above.ms > below.ms * allowed:
            raise TooNoisy(
                f"{sweep.name}: {mode} takes {above.ms:.3g} ms at x = {above.x:g} but "
                f"{below.ms:.3g} ms at x = {below.x:g}, more than their spread explains: "
                "these times contradict each other and nothing is fitted to them"
            )


def _x_eff(sweep: Sweep, point: SweepPoint, reference: SweepPoint, share: float) -> float:
    speed = reference.ms / point.ms
    allowed = _allowed(point, reference)
    if speed > allowed or speed * allowed < share:
        limit = "faster than HBM_ONLY" if speed > 1 else "slower than the host link alone"
        raise TooNoisy(
            f"{sweep.name}: {point.name} takes {point.ms:.3g} ms, which is "
            f"{limit} ({reference.ms if speed > 1 else reference.ms / share:.3g} ms): these times "
            "contradict the bandwidths and nothing is fitted to them"
        )
    return round(min(max((speed - share) / (1 - share), 0.0), 1.0), 6)


def _allowed(first: SweepPoint, second: SweepPoint) -> float:
    """Largest ratio of two times that is not a contradiction.

    Spreads count only up to the usual limit: raising it accepts noise, but not a table that is
    faster than HBM.
    """
    return 1 + SLACK + 2 * hypot(min(first.spread, MAX_SPREAD), min(second.spread, MAX_SPREAD))


def _relative(points: list[SweepPoint], reference: SweepPoint, share: float) -> float:
    """Spread of a curve's x_eff over x_eff itself, both summed over its points.

    A ratio per point would be meaningless where x_eff is close to 0.
    """
    speeds = [reference.ms / point.ms for point in points]
    error = sum(v * hypot(p.spread, reference.spread) for v, p in zip(speeds, points, strict=True))
    return error / max(sum(max(v - share, 0.0) for v in speeds), 1e-9)
