"""Bars of text: a glyph for each mode as well as a colour, so that NO_COLOR loses nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

#: Glyph and colour of each mode, from all HBM to none.
MODE_STYLE = {
    "HBM_ONLY": ("█", "blue"),
    "HYBRID": ("▓", "green"),
    "CACHING": ("▒", "yellow"),
    "HOST_ONLY": ("░", "magenta"),
    "other": ("▪", ""),
}
FREE = ("·", "dim")
#: The shortest bar worth drawing.
_LEAST = 10


def stack(parts: Iterable[tuple[int, tuple[str, str]]], full: int, width: int) -> Text:
    """Amounts one after the other, each with its glyph and colour; ``full`` fills the width."""
    text, amount, drawn = Text(), 0, 0
    for part, (glyph, style) in parts:
        amount += part
        end = min(width, round(width * amount / full)) if full else 0
        text.append(glyph * (end - drawn), style)
        drawn = max(drawn, end)
    return text


def bar_rows(
    labels: Sequence[str], bars: Sequence[Text], notes: Sequence[Text | str], length: int
) -> Group:
    """Label, bar and note on a line each, aligned; ``length`` is that of the longest bar."""
    left = max(map(len, labels), default=0)
    lines: list[RenderableType] = []
    for label, bar, note in zip(labels, bars, notes, strict=True):
        line = Text(f"{label:>{left}} ")
        line.append_text(bar)
        line.append(" " * (length - len(bar) + 1))
        line.append_text(note if isinstance(note, Text) else Text(note))
        lines.append(line)
    return Group(*lines)


def room(width: int, labels: Sequence[str], notes: Sequence[Text | str]) -> int:
    """Columns left for bars between labels and notes."""
    taken = max(map(len, labels), default=0) + max(map(len, notes), default=0)
    return max(_LEAST, width - taken - 2)


def legend(modes: Iterable[str], *more: tuple[tuple[str, str], str]) -> Text:
    """What the glyphs mean."""
    text = Text()
    known = [(MODE_STYLE[mode], mode) for mode in modes]
    for (glyph, style), name in (*known, *more):
        text.append(f"{glyph} ", style).append(f"{name}  ")
    return text
