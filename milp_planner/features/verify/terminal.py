"""A verification on a terminal: one line a claim."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from formulations.result.verify import Verification
from milp_planner.features.verify.facts import summary

_MARK = {True: ("✓", "green"), False: ("✗", "bold red"), None: ("·", "yellow")}


def draw_claims(result: Verification, title: str) -> RenderableType:
    """✓ re-derived, ✗ refuted, · only the solver's word; then the sentence."""
    table = Table(box=None, pad_edge=False, show_header=False, title=title, title_justify="left")
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for claim in result.claims:
        mark, style = _MARK[claim.ok]
        table.add_row(Text(mark, style=style), claim.name, claim.text)
    return Group(table, Text(summary(result), style="green" if result.ok else "bold red"))
