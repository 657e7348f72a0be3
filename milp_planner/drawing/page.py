"""The self-contained page, and results that draw themselves in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from io import StringIO

from rich.console import Console, RenderableType

from milp_planner.drawing.grid import WIDTH, Grid

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
