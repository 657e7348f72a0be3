"""Tables for terminal and page, the page around them (nothing is fetched), results that show it.

On the terminal tables always fit: text gives way, figures never do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from io import StringIO

from rich.console import Console, RenderableType
from rich.table import Table

from milp_planner.drawing.units import UNKNOWN, shorten_all

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

    @classmethod
    def of(
        cls, id: str, name: str, caption: str, head: Sequence[str],
        values: Sequence[Sequence[str | Cell]],
    ) -> Grid:  # fmt: skip
        """From headings, a leading ``#`` marking numbers, and cells, given as text or whole."""
        columns = tuple(Column(each.removeprefix("#"), each.startswith("#")) for each in head)
        rows = (tuple(Cell(v) if isinstance(v, str) else v for v in row) for row in values)
        return cls(id, name, caption, columns, tuple(rows))

    def filled(self) -> Grid:
        """The same without columns that are empty in every row."""
        texts = zip(*([cell.text for cell in row] for row in self.rows), strict=True)
        kept = [i for i, column in enumerate(texts) if any(t not in ("", UNKNOWN) for t in column)]
        return replace(
            self,
            columns=tuple(self.columns[i] for i in kept),
            rows=tuple(tuple(row[i] for i in kept) for row in self.rows),
        )


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


def sentence(text: str) -> str:
    """With a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


WIDTH = 100
_GAP = 2


def fitting_grid(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    least: Mapping[str, int],
    left: Sequence[str] = (),
    folded: Sequence[str] = (),
) -> Table:
    """A plain table at most 100 columns wide, of distinct headers.

    ``least`` are the columns that may be shortened, in the order in which they give way, each to
    its least width. Those ``left`` are aligned to the left; the text of those ``folded`` goes on
    below instead of being cut.
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


def draw_grid(
    grid: Grid, least: Mapping[str, int] | None = None, folded: Sequence[str] = ()
) -> Table:
    """A page's table on the terminal: numbers to the right, the rest to the left."""
    return fitting_grid(
        [column.name for column in grid.columns],
        [[cell.text for cell in row] for row in grid.rows],
        least or {},
        left=[column.name for column in grid.columns if not column.numeric],
        folded=folded,
    )


class Shown:
    """Base of results that know their drawing."""

    def drawing(self) -> RenderableType:
        """What the command line prints of it."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return _printed(self.drawing()).export_text(clear=False).rstrip()

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        form = '<pre style="line-height:normal;overflow-x:auto">{code}</pre>'
        return _printed(self.drawing()).export_html(code_format=form, inline_styles=True)


def _printed(drawing: RenderableType) -> Console:
    console = Console(file=StringIO(), width=WIDTH, record=True, force_jupyter=False)
    console.print(drawing)
    return console
