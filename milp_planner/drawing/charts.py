"""Charts as inline SVG: colours come from the page's style sheet, so both themes share them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from math import ceil, floor, log2, log10

WIDTH = 920


@dataclass
class Drawing:
    """An SVG picture under construction."""

    title: str
    about: str
    """Its accessible name and description."""
    height: float
    parts: list[str] = field(default_factory=list)

    def rect(
        self, x: float, y: float, width: float, height: float, style: str, tip: str = ""
    ) -> None:
        """A filled rectangle, with a tooltip."""
        inner = f"<title>{escape(tip)}</title>" if tip else ""
        self.parts.append(
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(max(0.0, width))}" '
            f'height="{_n(max(0.0, height))}" class="{style}">{inner}</rect>'
        )

    def line(self, points: Sequence[tuple[float, float]], style: str) -> None:
        """A polyline."""
        path = " ".join(f"{_n(x)},{_n(y)}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" class="{style}"/>')

    def dot(self, x: float, y: float, style: str, tip: str = "", radius: float = 4.5) -> None:
        """A round mark."""
        inner = f"<title>{escape(tip)}</title>" if tip else ""
        self.parts.append(
            f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}" class="{style}">{inner}</circle>'
        )

    def text(self, x: float, y: float, words: str, anchor: str = "start", style: str = "") -> None:
        """A label; ``anchor`` is start, middle or end."""
        names = f"{anchor} {style}".strip()
        self.parts.append(f'<text x="{_n(x)}" y="{_n(y)}" class="{names}">{escape(words)}</text>')

    def render(self) -> str:
        """The SVG element, named for screen readers."""
        label = escape(f"{self.title}. {self.about}", quote=True)
        box = f"0 0 {WIDTH} {_n(self.height)}"
        body = "".join(self.parts)
        return f'<svg role="img" aria-label="{label}" viewBox="{box}">{body}</svg>'


@dataclass(frozen=True)
class Scale:
    """Values to coordinates, with round ticks."""

    low: float
    high: float
    start: float = 0
    stop: float = 0
    base: int = 10
    """2 for bytes: ticks then fall on round binary amounts."""

    def at(self, value: float) -> float:
        """Coordinate of a value."""
        span = self.high - self.low
        share = (value - self.low) / span if span else 0.5
        return self.start + share * (self.stop - self.start)

    def ticks(self, count: int = 5) -> list[float]:
        """About ``count`` round values within the scale."""
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        rough = span / count
        if self.base == 2:
            step = 2.0 ** ceil(log2(rough))
        else:
            size = 10.0 ** floor(log10(rough))
            step = next(m * size for m in (1, 2, 5, 10) if m * size >= rough * (1 - 1e-9))
        first = -(-self.low // step) * step
        found = []
        while first <= self.high + step * 1e-9:
            found.append(first + 0.0)  # never -0
            first += step
        return found


def axes(
    drawing: Drawing, across: Scale, up: Scale, labels: tuple[str, str],
    show: tuple[Callable[[float], str], Callable[[float], str]],
) -> None:  # fmt: skip
    """Grid lines with labels, and the title of each axis."""
    for value in up.ticks(4):
        y = up.at(value)
        drawing.line([(across.start, y), (across.stop, y)], "grid")
        drawing.text(across.start - 8, y + 4, show[1](value), "end")
    for value in across.ticks(6):
        x = across.at(value)
        drawing.line([(x, up.start), (x, up.start + 4)], "axis")
        drawing.text(x, up.start + 18, show[0](value), "middle")
    drawing.line([(across.start, up.start), (across.stop, up.start)], "axis")
    drawing.text(across.stop, up.start + 36, labels[0], "end", "label")
    drawing.text(across.start - 8, up.stop - 10, labels[1], "start", "label")


def _n(value: float) -> str:
    """A coordinate with at most one decimal."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


LEFT, RIGHT, BOTTOM, HEIGHT = 92, 24, 48, 300
COLOURS = 8
#: Upper estimate of the average width of a letter in a label.
LETTER = 6.6
_SAMPLE, _ROW = 34, 20
Points = Sequence[tuple[float, float]]
Show = Callable[[float], str]


@dataclass(frozen=True)
class LogScale(Scale):
    """Positive values by their logarithm; values below ``low`` are drawn at ``low``."""

    def at(self, value: float) -> float:
        """Coordinate of a value."""
        span = log10(self.high / self.low)
        share = log10(max(value, self.low) / self.low) / span if span else 0.5
        return self.start + share * (self.stop - self.start)

    def ticks(self, count: int = 5) -> list[float]:
        """Powers of ten, with 2 and 5 between them if there are few."""
        first, last = floor(log10(self.low)), ceil(log10(self.high))
        steps = (1, 2, 5) if last - first <= count // 2 else (1,)
        skip = max(1, ceil((last - first) / (2 * count)))
        every = [m * 10.0**e for e in range(first, last + 1, skip) for m in steps]
        return [v for v in every if self.low * (1 - 1e-9) <= v <= self.high * (1 + 1e-9)]


#: Least distance between the ticks of a PlaceScale.
_APART = 64.0


@dataclass(frozen=True)
class PlaceScale(LogScale):
    """Given values with a tick each, by their logarithm if they are far apart."""

    places: tuple[float, ...] = ()

    def at(self, value: float) -> float:
        """Coordinate of a value."""
        by_size = self.low > 0 and self.high >= 8 * self.low
        return super().at(value) if by_size else Scale.at(self, value)

    def ticks(self, count: int = 5) -> list[float]:
        """The places, except those whose label would overlap the previous one."""
        found: list[float] = []
        for place in sorted(self.places):
            if not found or self.at(place) - self.at(found[-1]) >= _APART:
                found.append(place)
        return found


@dataclass(frozen=True)
class NameScale(Scale):
    """Positions of names, from 0, each with a tick."""

    def ticks(self, count: int = 5) -> list[float]:
        """Every whole number."""
        return [float(v) for v in range(ceil(self.low), floor(self.high) + 1)]


@dataclass(frozen=True)
class Line:
    """One series: its points as (x, y) and its colour's number, or a style of its own."""

    name: str
    """Name in the legend; empty: not listed."""
    points: Points
    colour: int = 0
    lower: bool = False
    """Whether it is drawn lighter."""
    style: str = ""
    straight: bool = False
    """Whether it joins points by straight lines instead of steps."""


@dataclass(frozen=True)
class Mark:
    """A dot with a tooltip, and a line down to ``low`` if a lower bound is known."""

    x: float
    y: float
    style: str
    tip: str
    size: float = 4.5
    low: float | None = None


def chart(
    title: str,
    about: str,
    lines: Sequence[Line],
    scales: tuple[Scale, Scale],
    labels: tuple[str, str],
    show: tuple[Show, Show],
    marks: Sequence[Mark] = (),
) -> Drawing:
    """Curves and marks with axes and legend; places the given scales on the drawing."""
    named = [line for line in lines if line.name]
    drawing = Drawing(title, about, HEIGHT)
    top = legend(drawing, [(line.name, line.colour) for line in named]) if named else 34.0
    across = replace(scales[0], start=LEFT, stop=WIDTH - RIGHT)
    up = replace(scales[1], start=HEIGHT - BOTTOM, stop=top)
    axes(drawing, across, up, labels, show)
    for line in lines:
        style = line.style or f"series s{line.colour % COLOURS}" + (" lower" if line.lower else "")
        straight = [(across.at(x), up.at(y)) for x, y in line.points]
        drawing.line(straight if line.straight else _steps(line.points, across, up), style)
    for mark in marks:
        x, y = across.at(mark.x), up.at(mark.y)
        if mark.low is not None and mark.low < mark.y:
            drawing.line([(x, y), (x, up.at(max(up.low, mark.low)))], "gap")
        drawing.dot(x, y, mark.style, mark.tip, mark.size)
    return drawing


def padded(low: float, high: float) -> tuple[float, float]:
    """A range with some margin: from 0 if that is near, never so narrow that ticks read alike."""
    span = max(high - low, abs(high) * 0.02) or 1.0
    air = 0.08 * span + (span - (high - low)) / 2
    return 0.0 if 0 <= low < 0.35 * high else low - air, high + air


def legend(drawing: Drawing, names: Sequence[tuple[str, int]]) -> float:
    """Draw line samples with names, in as many rows as needed; returns where the plot may begin."""
    x, y = float(LEFT), 12.0
    for name, colour in names:
        width = _SAMPLE + 8 + LETTER * len(name) + 18
        if x > LEFT and x + width > WIDTH - RIGHT:
            x, y = float(LEFT), y + _ROW
        drawing.line([(x, y), (x + _SAMPLE, y)], f"series s{colour % COLOURS}")
        drawing.text(x + _SAMPLE + 8, y + 4, name)
        x += width
    return y + 34


def _steps(points: Points, across: Scale, up: Scale) -> list[tuple[float, float]]:
    """Horizontal, then vertical steps; the last value extends to the right edge."""
    path: list[tuple[float, float]] = []
    for x, y in points:
        if path:
            path.append((across.at(x), path[-1][1]))
        path.append((across.at(x), up.at(y)))
    if path:
        path.append((across.stop, path[-1][1]))
    return path
