"""The small table that every result is shown as: named columns, cells of a value and its text.

A Grid draws itself on a terminal, is sorted and filtered on a page, and is a plain table in a
notebook. On a terminal it always fits: text is shortened, numbers never are.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from io import StringIO
from typing import Self

from rich.console import (
    Console,
    ConsoleOptions,
    Group,
    JustifyMethod,
    RenderableType,
    RenderResult,
)
from rich.table import Table
from rich.text import Text

from milp_planner.drawing.units import (
    UNKNOWN,
    shorten_all,
    show_amount,
    show_cost,
    show_gap,
    wrapped,
)

WIDTH = 100
"""Most columns of a terminal that a table takes."""
_GAP = 2


@dataclass(frozen=True)
class Cell:
    """One cell: its text, and the number it is sorted by (None: by its text)."""

    text: str
    value: float | None = None
    over: bool = False
    """Whether the value exceeds what is allowed."""
    strong: bool = False

    @classmethod
    def cost(cls, value: int | None, unit: str) -> Self:
        """An objective in the instance's unit."""
        return cls(show_cost(value, unit), value)

    @classmethod
    def amount(cls, value: int | None, unit: str = "ps") -> Self:
        """Bytes, or an amount of a resource without a unit."""
        return cls(show_amount(value, unit), value)

    @classmethod
    def gap(cls, value: float | None) -> Self:
        """A relative gap."""
        return cls(show_gap(value), value)

    @classmethod
    def count(cls, value: int | None) -> Self:
        """A number of things."""
        return cls(UNKNOWN if value is None else str(value), value)


Cells = Sequence[str | Cell]
"""Cells of one row, given as text where they have no value."""


@dataclass(frozen=True)
class Column:
    """One column's heading."""

    name: str
    numeric: bool = False
    whole: str = ""
    """The name on a page, which has more room; empty: the same."""

    @classmethod
    def of(cls, heading: str) -> Self:
        """From ``name`` or ``name|name on a page``; a leading ``#`` marks numbers."""
        name, _, whole = heading.removeprefix("#").partition("|")
        return cls(name, heading.startswith("#"), whole)


@dataclass(frozen=True)
class Grid:
    """A table that fits the terminal, and sorts and filters on a page."""

    id: str
    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    least: Mapping[str, int] = field(default_factory=dict)
    """Columns that a narrow terminal may narrow, in that order, with their least widths."""
    folded: tuple[str, ...] = ()
    """Columns whose text is wrapped between words there instead of being cut."""

    @classmethod
    def of(
        cls,
        id: str,
        name: str,
        caption: str,
        head: Sequence[str],
        values: Iterable[Cells],
        least: Mapping[str, int] | None = None,
        folded: Sequence[str] = (),
    ) -> Grid:
        """From headings, as in :meth:`Column.of`, and cells, given as text or as ``Cell``."""
        columns = tuple(map(Column.of, head))
        rows = (tuple(Cell(v) if isinstance(v, str) else v for v in row) for row in values)
        return cls(id, name, caption, columns, tuple(rows), least or {}, tuple(folded))

    @classmethod
    def plain(
        cls,
        head: Sequence[str],
        values: Iterable[Cells],
        least: Mapping[str, int] | None = None,
        folded: Sequence[str] = (),
    ) -> Grid:
        """A table that no page shows; as :meth:`of`."""
        return cls.of("", "", "", head, values, least, folded)

    def filled(self) -> Grid:
        """The same without columns that are empty in every row."""
        texts = zip(*([cell.text for cell in row] for row in self.rows), strict=True)
        return self._only(
            [i for i, column in enumerate(texts) if any(t not in ("", UNKNOWN) for t in column)]
        )

    def without(self, *names: str) -> Grid:
        """The same without some columns."""
        return self._only([i for i, column in enumerate(self.columns) if column.name not in names])

    def _only(self, kept: Sequence[int]) -> Grid:
        return replace(
            self,
            columns=tuple(self.columns[i] for i in kept),
            rows=tuple(tuple(row[i] for i in kept) for row in self.rows),
        )

    def first(self, rows: int | None) -> Grid:
        """Its first rows."""
        return replace(self, rows=self.rows[:rows])

    def html(self) -> str:
        """A plain table, escaped, for a notebook; empty without rows."""
        if not self.rows:
            return ""
        head = "".join(f"<th>{escape(column.name)}</th>" for column in self.columns)
        body = (
            "<tr>" + "".join(f"<td>{escape(cell.text)}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw for the available width."""
        yield self._fitted(min(WIDTH, options.max_width))

    def _fitted(self, width: int) -> Table:
        """The table in ``width`` columns: headings break first, then gaps and text shrink."""
        names = [column.name for column in self.columns]
        cells = list(zip(*self.rows, strict=True)) or [()] * len(names)
        body = [max((len(cell.text) for cell in column), default=0) for column in cells]
        words = [max(map(len, name.split()), default=0) for name in names]
        whole = [max([w, *map(len, name.split("\n"))]) for name, w in zip(names, body, strict=True)]
        gaps = len(whole) - 1
        broken = [max(pair) for pair in zip(body, words, strict=True)]
        widths = whole if sum(whole) + _GAP * gaps <= width else broken
        gap = _GAP if sum(widths) + _GAP * gaps <= width else 1
        for name, smallest in self.least.items():
            if name in names:
                i = names.index(name)
                excess = sum(widths) + gap * gaps - width
                widths[i] -= max(0, min(excess, widths[i] - smallest))
        table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0))
        for column, size in zip(self.columns, widths, strict=True):
            side: JustifyMethod = "right" if column.numeric else "left"
            table.add_column(Text(column.name), justify=side, width=size, overflow="fold")
        for row in zip(*map(self._texts, names, cells, widths), strict=True):
            table.add_row(*row)
        return table

    def _texts(self, name: str, column: Sequence[Cell], width: int) -> list[Text]:
        """A column's cells, no wider than ``width``."""
        texts = [cell.text for cell in column]
        if any(len(text) > width for text in texts):
            fold = name in self.folded
            texts = [wrapped(t, width) for t in texts] if fold else shorten_all(texts, width)
        styles = ("bold red" if cell.over else "bold" if cell.strong else "" for cell in column)
        return [Text(text, style=style) for text, style in zip(texts, styles, strict=True)]


def headed(title: str, *parts: RenderableType) -> Group:
    """Drawings and plain lines below a bold title."""
    shown = (Text(part) if isinstance(part, str) else part for part in parts)
    return Group(Text(title, style="bold"), *shown)


def csv_text(head: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """Rows of a CSV file below their names; unknown values (None) are empty."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(["" if value is None else value for value in row] for row in rows)
    return text.getvalue()
