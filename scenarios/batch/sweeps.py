"""The plans' objectives, and samples per second, against the swept axes of a suite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from milp_planner.drawing.charts import (
    COLOURS,
    Drawing,
    Line,
    LogScale,
    Mark,
    NameScale,
    PlaceScale,
    Scale,
    chart,
    padded,
)
from milp_planner.drawing.page import Part, Section
from milp_planner.drawing.units import show_axis, show_cost, show_rate
from scenarios.batch.curves import Curve, Row

RATE = "samples a second"


@dataclass(frozen=True)
class Swept:
    """One chart: the plans of one model on one cluster against one axis."""

    axis: str
    objective_kind: str
    measure: str
    """The objective minimised, or ``samples a second``."""
    where: str
    """Model and cluster, and also the values of other axes if one line per value is too many."""
    curves: tuple[Curve, ...]
    """One per formulation and values of the other axes; points are (value of the axis, median
    result over seeds). Scenarios share a line only if they differ in nothing but axis and seed."""
    names: tuple[str, ...] = ()
    """Values of an axis without an order; points hold positions in this tuple."""


def sweeps_of(rows: Sequence[Row]) -> tuple[Swept, ...]:
    """The charts for every axis with several values, and for every objective."""
    found: list[Swept] = []
    for axis in dict.fromkeys(axis for row in rows for axis in row.axes):
        names = _names([row.axes[axis] for row in rows if axis in row.axes])
        for kind in dict.fromkeys(row.objective_kind for row in rows):
            mine = [r for r in rows if axis in r.axes and r.objective_kind == kind]
            mine = [row for row in mine if row.objective is not None]
            found += _figures(axis, kind, kind, mine, names)
            timed = [row for row in mine if row.per_second is not None]
            if len({row.samples for row in timed}) > 1:
                found += _figures(axis, kind, RATE, timed, names)
    return tuple(found)


def _figures(
    axis: str, kind: str, measure: str, rows: Sequence[Row], names: tuple[str, ...]
) -> Iterator[Swept]:
    """One chart per model and cluster, with few enough lines to tell them apart."""
    series = len({row.series for row in rows}) > 1
    others = [a for a in dict.fromkeys(a for row in rows for a in row.axes) if a != axis]
    others = [a for a in others if len({str(row.axes.get(a)) for row in rows}) > 1]
    apart = len({(r.series, *(str(r.axes.get(a)) for a in others)) for r in rows}) > COLOURS
    figures: dict[str, dict[str, dict[float, list[float]]]] = {}
    for row in rows:
        other_values = [f"{a} {show_axis(a, row.axes.get(a))}" for a in others]
        where = ", ".join([f"{row.model} on {row.cluster}", *(other_values if apart else [])])
        line = ", ".join([*([row.series] if series else []), *([] if apart else other_values)])
        points = figures.setdefault(where, {}).setdefault(line or row.series, {})
        value = str(row.axes[axis])
        place = float(names.index(value)) if names else float(value)
        points.setdefault(place, []).append(_value(row, measure))
    for where, lines in figures.items():
        if len({place for points in lines.values() for place in points}) > 1:
            curves = [
                Curve(name, tuple((x, median(values)) for x, values in sorted(points.items())))
                for name, points in lines.items()
            ]
            yield Swept(axis, kind, measure, where, tuple(curves), names)


def _value(row: Row, measure: str) -> float:
    value = row.per_second if measure == RATE else row.objective
    assert value is not None
    return value


def _names(values: Sequence[object]) -> tuple[str, ...]:
    """The values of an axis in their order; none if all are numbers, such as 25 or "25"."""
    try:
        ordered = not any(isinstance(value, bool) for value in values)
        [float(str(value)) for value in values]
    except ValueError:
        ordered = False
    return () if ordered else tuple(dict.fromkeys(map(str, values)))


#: Most charts per axis and measure on the page.
MOST_CHARTS = 12


def sweeps_section(sweeps: Sequence[Swept]) -> Section | None:
    """One heading per axis and measure; the charts of all but the first model are folded."""
    groups: dict[tuple[str, str, str], list[Swept]] = {}
    for each in sweeps:
        groups.setdefault((each.axis, each.objective_kind, each.measure), []).append(each)
    if not groups:
        return None
    text = (
        "The plans' objectives against the swept axes and, where a step has more samples in "
        "some scenarios than in others, samples per second through the embedding part. A "
        "line joins scenarios that differ only in the axis (median over seeds); a value "
        "without a plan is left out."
    )
    if max(map(len, groups.values())) > MOST_CHARTS:
        text += (
            f" Only the first {MOST_CHARTS} charts of each kind are drawn; report --json has all."
        )
    parts = tuple(part for group in groups.values() for part in _parts(group))
    return Section("sweeps", "Time against what is swept", text, parts=parts)


def _parts(group: Sequence[Swept]) -> Iterator[Part]:
    """The charts; if there are several, each can be folded, and only the first is open."""
    for index, swept in enumerate(group[:MOST_CHARTS]):
        kind = swept.objective_kind
        asked = "" if swept.measure == kind else f", minimising {kind}"
        heading = f"{swept.measure} against {swept.axis}{asked}"
        several = len(group) > 1
        shown = heading if several else f"{heading}: {swept.where}"
        drawing = _draw(swept)
        yield Part(
            "" if index else shown, drawing.render(), drawing.about,
            fold=swept.where if several else "", open=not index,
        )  # fmt: skip


def _draw(swept: Swept) -> Drawing:
    """A chart with lines for a numeric axis and dots for named values."""

    def place_text(place: float) -> str:
        if swept.names:
            return swept.names[int(place)]
        return show_axis(swept.axis, int(place) if place == int(place) else place)

    def value_text(value: float) -> str:
        return show_rate(value) if swept.measure == RATE else show_cost(round(value), "ps")

    lines = [
        Line(curve.series, () if swept.names else curve.points, colour, straight=True)
        for colour, curve in enumerate(swept.curves)
    ]
    marks = [
        Mark(x, y, f"dot s{colour % COLOURS}",
             f"{curve.series}, {place_text(x)}: {value_text(y)}", 5 if swept.names else 3)
        for colour, curve in enumerate(swept.curves) for x, y in curve.points
    ]  # fmt: skip
    places, values = zip(*(point for c in swept.curves for point in c.points), strict=True)
    low, high = min(values), max(values)
    up = LogScale(low, high) if low > 0 and high > 20 * low else Scale(*padded(low, high))
    across: Scale = PlaceScale(min(places), max(places), places=tuple(set(places)))
    if swept.names:
        across = NameScale(-0.5, len(swept.names) - 0.5)
    about = "; ".join(
        f"{c.series}: {value_text(c.points[0][1])} to {value_text(c.points[-1][1])}"
        for c in swept.curves
    )
    return chart(
        f"{swept.measure} against {swept.axis}, {swept.where}", about, lines, (across, up),
        (swept.axis, swept.measure), (place_text, value_text), marks,
    )  # fmt: skip
