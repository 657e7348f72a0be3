"""The parts of an HTML page and the page around them: nothing is fetched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from milp_planner.drawing.units import UNKNOWN

_PAGE, _SCRIPT = "page.html.j2", "page.js"
_STYLES = ("page.css", "series.css")


def fill(
    title: str,
    subtitle: str,
    strip: Sequence[Fact],
    sections: Sequence[Section | None],
    footer: str,
) -> str:
    """A page as text; sections that are None are left out."""
    from jinja2 import Environment, StrictUndefined

    here = files("milp_planner.drawing")
    page = Environment(autoescape=True, undefined=StrictUndefined).from_string(
        here.joinpath(_PAGE).read_text("utf-8")
    )
    return page.render(
        title=title,
        subtitle=subtitle,
        strip=strip,
        sections=[section for section in sections if section is not None],
        css="".join(here.joinpath(name).read_text("utf-8") for name in _STYLES),
        js=here.joinpath(_SCRIPT).read_text("utf-8"),
        footer=footer,
    )


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
    """A chapter of the page: text, points, colours, then drawings and tables."""

    id: str
    title: str
    text: str = ""
    key: tuple[Key, ...] = ()
    parts: tuple[Part, ...] = ()
    points: tuple[str, ...] = ()


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


def sentence(text: str) -> str:
    """With a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def filled(head: tuple[Column, ...], values: Values) -> tuple[tuple[Column, ...], Values]:
    """The same without columns that are empty in every row."""
    texts = [[v if isinstance(v, str) else v.text for v in row] for row in values]
    kept = [i for i in range(len(head)) if any(row[i] not in ("", UNKNOWN) for row in texts)]
    return tuple(head[i] for i in kept), [[row[i] for i in kept] for row in values]


def rows(values: Values) -> tuple[tuple[Cell, ...], ...]:
    """Plain strings become cells."""
    return tuple(tuple(Cell(v) if isinstance(v, str) else v for v in row) for row in values)
