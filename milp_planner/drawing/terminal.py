"""Terminal tables that always fit (figures never give way), and results that show themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import StringIO

from rich.console import Console, RenderableType
from rich.table import Table

from milp_planner.drawing.page import Grid
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


def draw_grid(grid: Grid, least: Mapping[str, int] | None = None) -> Table:
    """A page's table on the terminal: numbers to the right, the rest to the left."""
    return fitting_grid(
        [column.name for column in grid.columns],
        [[cell.text for cell in row] for row in grid.rows],
        least or {},
        left=[column.name for column in grid.columns if not column.numeric],
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
