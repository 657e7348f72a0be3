"""What a page is made of: sections with drawings and tables."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cell:
    """One cell: its text, and the number it is sorted by (None: by its text)."""

    text: str
    value: float | None = None
    over: bool = False


@dataclass(frozen=True)
class Column:
    """One column's heading."""

    name: str
    numeric: bool = False


@dataclass(frozen=True)
class Grid:
    """A table that sorts and filters."""

    id: str
    name: str
    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True)
class Key:
    """One colour and what it means."""

    style: str
    text: str


@dataclass(frozen=True)
class Part:
    """A drawing with its heading and note, or a table."""

    heading: str = ""
    svg: str = ""
    note: str = ""
    table: Grid | None = None


@dataclass(frozen=True)
class Section:
    """A chapter of the page."""

    id: str
    title: str
    text: str = ""
    key: tuple[Key, ...] = ()
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True)
class Fact:
    """One box of the verdict strip."""

    label: str
    value: str
    note: str = ""
    style: str = ""


#: Rows before plain strings become cells.
Values = list[list["str | Cell"]]


def columns(*names: str) -> tuple[Column, ...]:
    """Columns by name; a leading ``#`` marks numbers."""
    return tuple(Column(n.removeprefix("#"), n.startswith("#")) for n in names)


def rows(values: Values) -> tuple[tuple[Cell, ...], ...]:
    """Plain strings become cells."""
    return tuple(tuple(Cell(v) if isinstance(v, str) else v for v in row) for row in values)
