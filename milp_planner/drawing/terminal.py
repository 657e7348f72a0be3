"""Terminal parts: tables that always fit (text gives way, figures never do), and stacked bars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from milp_planner.drawing.units import shorten_all

WIDTH = 100
_GAP = 2


def fitting_grid(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    least: Mapping[str, int],
    left: Sequence[str] = (),
    folded: Sequence[str] = (),
) -> Table:
    """A plain table at most 100 columns wide.

    Parameters
    ----------
    headers : sequence of str
        Distinct.
    rows : sequence of sequences of str
    least : mapping of header to int
        Columns that may be shortened, in the order in which they give way, each to its least
        width.
    left : sequence of str
        Headers aligned to the left.
    folded : sequence of str
        Headers whose text goes on below instead of being cut.
    """
    widths = {
        header: max([len(header), *(len(row[i]) for row in rows)])
        for i, header in enumerate(headers)
    }
    excess = sum(widths.values()) + _GAP * (len(headers) - 1) - WIDTH
    for header, smallest in least.items():
        if excess > 0 and header in widths:
            give = min(excess, max(0, widths[header] - smallest))
            widths[header] -= give
            excess -= give
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    for header in headers:
        table.add_column(
            header, justify="left" if header in left else "right", no_wrap=header not in folded,
            width=widths[header],
        )  # fmt: skip
    columns = (
        [
            column if header in folded else shorten_all(column, widths[header])
            for header, column in zip(headers, zip(*rows, strict=True), strict=True)
        ]
        if rows
        else []
    )
    for cells in zip(*columns, strict=True):
        table.add_row(*cells)
    return table


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
