"""Drawings as inline SVG: colours come from the page's style sheet, so both themes share them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from math import ceil, floor, log2, log10

WIDTH = 920


@dataclass
class Drawing:
    """An SVG picture under construction.

    Attributes
    ----------
    title, about : str
        Its accessible name and description.
    height : float
    """

    title: str
    about: str
    height: float
    width: float = WIDTH
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
        box = f"0 0 {_n(self.width)} {_n(self.height)}"
        body = "".join(self.parts)
        return f'<svg role="img" aria-label="{label}" viewBox="{box}">{body}</svg>'


@dataclass(frozen=True)
class Scale:
    """Values to coordinates, with round ticks."""

    low: float
    high: float
    start: float
    stop: float
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
    """Grid lines with labels, and what each axis measures."""
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
