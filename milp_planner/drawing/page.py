"""Tables for terminal and page, the self-contained page around them, and results that show both.

On the terminal, tables always fit: text is shortened, numbers never are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from io import StringIO

from rich.console import (
    Console,
    ConsoleOptions,
    JustifyMethod,
    RenderableType,
    RenderResult,
)
from rich.table import Table
from rich.text import Text

from milp_planner.drawing.units import UNKNOWN, shorten_all, wrapped

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
        """From headings (a leading ``#`` marks numbers) and cells, given as text or as ``Cell``."""
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
    fold: str = ""
    """Label to click on to show or hide the drawing; empty: it is always shown."""
    open: bool = True
    """Whether a drawing that folds is shown at first."""


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
    """The text with a capital and a full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


WIDTH = 100
_GAP = 2


@dataclass(frozen=True)
class FittingGrid:
    """A plain table that takes the width of the terminal, at most 100 columns."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str | Text, ...], ...]
    least: Mapping[str, int]
    left: tuple[str, ...]
    folded: tuple[str, ...]

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw for the available width."""
        yield self.fitted(min(WIDTH, options.max_width))

    def fitted(self, width: int) -> Table:
        """The table in ``width`` columns: headings break first, then gaps and text shrink."""
        columns = list(zip(*self.rows, strict=True)) or [()] * len(self.headers)
        body = [max(map(len, column), default=0) for column in columns]
        words = [max(map(len, header.split()), default=0) for header in self.headers]
        whole = [max([w, *map(len, h.split("\n"))])
                 for h, w in zip(self.headers, body, strict=True)]  # fmt: skip
        gaps = len(whole) - 1
        broken = [max(pair) for pair in zip(body, words, strict=True)]
        widths = whole if sum(whole) + _GAP * gaps <= width else broken
        gap = _GAP if sum(widths) + _GAP * gaps <= width else 1
        for name, smallest in self.least.items():
            if name in self.headers:
                i = self.headers.index(name)
                excess = sum(widths) + gap * gaps - width
                widths[i] -= max(0, min(excess, widths[i] - smallest))
        table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0))
        for header, size in zip(self.headers, widths, strict=True):
            side: JustifyMethod = "left" if header in self.left else "right"
            table.add_column(header, justify=side, width=size, overflow="fold")
        for row in zip(*map(self._cells, self.headers, columns, widths), strict=True):
            table.add_row(*row)
        return table

    def _cells(self, header: str, column: Sequence[str | Text], width: int) -> list[str | Text]:
        """A column's cells, no wider than ``width``."""
        texts = [str(cell) for cell in column]
        if all(len(text) <= width for text in texts):
            return list(column)
        if header in self.folded:
            return [wrapped(text, width) for text in texts]
        return list(shorten_all(texts, width))


def fitting_grid(
    headers: Sequence[str],
    rows: Sequence[Sequence[str | Text]],
    least: Mapping[str, int],
    left: Sequence[str] = (),
    folded: Sequence[str] = (),
) -> FittingGrid:
    """A plain table that fits the terminal.

    ``least`` gives the columns that may be narrowed, in that order, with their least widths.
    Columns in ``left`` are aligned to the left; text of columns in ``folded`` is wrapped between
    words instead of being cut.
    """
    return FittingGrid(
        tuple(headers), tuple(tuple(row) for row in rows), least, tuple(left), tuple(folded)
    )


def draw_grid(
    grid: Grid, least: Mapping[str, int] | None = None, folded: Sequence[str] = ()
) -> FittingGrid:
    """A page's table on the terminal: numbers to the right, the rest to the left."""
    return fitting_grid(
        [column.name for column in grid.columns],
        [[cell.text for cell in row] for row in grid.rows],
        least or {},
        left=[column.name for column in grid.columns if not column.numeric],
        folded=folded,
    )


class Shown:
    """Base of results that can draw themselves."""

    def drawing(self) -> RenderableType:
        """The drawing that the command line prints."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return _printed(self.drawing()).export_text(clear=False).rstrip()

    def _repr_html_(self) -> str:
        """HTML for a notebook."""
        form = '<pre style="line-height:normal;overflow-x:auto">{code}</pre>'
        return _printed(self.drawing()).export_html(code_format=form, inline_styles=True)


def _printed(drawing: RenderableType) -> Console:
    console = Console(file=StringIO(), width=WIDTH, record=True, force_jupyter=False)
    console.print(drawing)
    return console
