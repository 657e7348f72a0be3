"""Charts of several series: logarithmic scales, a legend with the lines as they are drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from milp_planner.report.html.svg import WIDTH, Drawing, Scale, axes

LEFT, RIGHT, BOTTOM, HEIGHT = 72, 20, 48, 300
COLOURS = 8
_LETTER, _SAMPLE, _ROW = 6.6, 34, 20
Points = Sequence[tuple[float, float]]
Show = Callable[[float], str]


@dataclass(frozen=True)
class LogScale(Scale):
    """Positive values by their logarithm; below ``low`` is drawn at ``low``."""

    def at(self, value: float) -> float:
        """Coordinate of a value."""
        span = log10(self.high / self.low)
        share = log10(max(value, self.low) / self.low) / span if span else 0.5
        return self.start + share * (self.stop - self.start)

    def ticks(self, count: int = 5) -> list[float]:
        """Powers of ten, with 2 and 5 between them where there are few."""
        first, last = floor(log10(self.low)), ceil(log10(self.high))
        steps = (1, 2, 5) if last - first <= count // 2 else (1,)
        skip = max(1, ceil((last - first) / (2 * count)))
        every = [m * 10.0**e for e in range(first, last + 1, skip) for m in steps]
        return [v for v in every if self.low * (1 - 1e-9) <= v <= self.high * (1 + 1e-9)]


@dataclass(frozen=True)
class Line:
    """One series: its points as (x, y), its colour's number, and whether it is drawn lighter."""

    name: str
    points: Points
    colour: int
    lower: bool = False


def chart(
    title: str,
    about: str,
    lines: Sequence[Line],
    scales: tuple[Scale, Scale],
    labels: tuple[str, str],
    show: tuple[Show, Show],
) -> Drawing:
    """Step curves with axes and legend; scales give values, this gives them their place."""
    named = [line for line in lines if line.name]
    drawing = Drawing(title, about, HEIGHT)
    top = legend(drawing, [(line.name, line.colour) for line in named])
    across, up = _placed(scales, top)
    axes(drawing, across, up, labels, show)
    for line in lines:
        style = f"series s{line.colour % COLOURS}" + (" lower" if line.lower else "")
        drawing.line(_steps(line.points, across, up), style)
    return drawing


def swarm(
    title: str,
    about: str,
    columns: Sequence[tuple[str, str, Sequence[tuple[float, str]]]],
    up: Scale,
    labels: tuple[str, str],
    show: Show,
) -> Drawing:
    """Columns of dots side by side: (label, words above it, dots as (value, tooltip))."""
    drawing = Drawing(title, about, HEIGHT)
    room = (WIDTH - LEFT - RIGHT) / max(1, len(columns))
    across, up = _placed((Scale(0, len(columns), 0, 0), up), 54)
    axes(drawing, across, up, labels, (lambda _: "", show))
    for number, (name, above, dots) in enumerate(columns):
        middle = LEFT + (number + 0.5) * room
        drawing.text(middle, up.start + 18, name, "middle")
        drawing.text(middle, up.stop - 12, above, "middle", "label")
        taken: dict[int, int] = {}
        for value, tip in sorted(dots):
            level = round(up.at(value) / 7)
            place = taken.get(level, 0)
            taken[level] = place + 1
            side = (place + 1) // 2 * (1 if place % 2 else -1)
            offset = max(-0.45 * room, min(0.45 * room, side * 7.0))
            drawing.dot(middle + offset, up.at(value), "dot s0", tip, 3.2)
    return drawing


def legend(drawing: Drawing, names: Sequence[tuple[str, int]]) -> float:
    """Line samples with names, in as many rows as they need; where the plot may begin."""
    x, y = float(LEFT), 12.0
    for name, colour in names:
        width = _SAMPLE + 8 + _LETTER * len(name) + 18
        if x > LEFT and x + width > WIDTH - RIGHT:
            x, y = float(LEFT), y + _ROW
        drawing.line([(x, y), (x + _SAMPLE, y)], f"series s{colour % COLOURS}")
        drawing.text(x + _SAMPLE + 8, y + 4, name)
        x += width
    return y + 34


def _placed(scales: tuple[Scale, Scale], top: float) -> tuple[Scale, Scale]:
    across, up = scales
    return (
        type(across)(across.low, across.high, LEFT, WIDTH - RIGHT),
        type(up)(up.low, up.high, HEIGHT - BOTTOM, top),
    )


def _steps(points: Points, across: Scale, up: Scale) -> list[tuple[float, float]]:
    """Horizontal, then vertical; the last value is kept to the right edge."""
    path: list[tuple[float, float]] = []
    for x, y in points:
        if path:
            path.append((across.at(x), path[-1][1]))
        path.append((across.at(x), up.at(y)))
    if path:
        path.append((across.stop, path[-1][1]))
    return path
