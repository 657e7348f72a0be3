"""One HTML file around sections: styles, script and drawings inside, nothing fetched."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from milp_planner.report.html.parts import Fact, Section

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

    here = files("milp_planner.report.html")
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
