"""Why nothing fits, on a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.text import Text

from milp_planner.report.shortage import ShortageInfo, Tier
from milp_planner.report.terminal.grid import fitting_grid
from milp_planner.report.units import UNKNOWN, show_amount

_MOST_NAMES = 12


def draw_shortage(info: ShortageInfo, unit: str = "ps") -> RenderableType:
    """Capacity, need and lack of every tier; what to drop; what is in conflict."""
    headers = ("tier", "there now", "needed everywhere", "short by", "")
    table = fitting_grid(
        headers, [_cells(t, unit) for t in info.tiers], {"tier": 18}, left=("tier", "")
    )
    title = Text("each tier, the others left as they are", style="bold")
    return Group(title, table, *(Text(line) for line in advice(info, unit)))


def advice(info: ShortageInfo, unit: str) -> Iterator[str]:
    """What is known from below, what to change, what to drop, what is in conflict: a line each."""
    yield from _not_below(info, unit)
    yield from _memory(info)
    yield from _drop(info)
    yield from _conflict(info)


def _cells(tier: Tier, unit: str) -> list[str]:
    there = show_amount(tier.smallest, unit)
    if tier.largest != tier.smallest:
        there += f" to {show_amount(tier.largest, unit)}"
    name = tier.resource if tier.scope == "cluster" else f"{tier.resource} of each {tier.scope}"
    if not tier.helps:
        return [name, there, UNKNOWN, UNKNOWN, certainty(tier)]
    needed, short = show_amount(tier.needed, unit), show_amount(tier.short_by, unit)
    return [name, there, needed, short, certainty(tier)]


def certainty(tier: Tier) -> str:
    """How well the need of a tier is known."""
    if not tier.helps:
        return "proved: it alone is never enough"
    if tier.needed is None:
        return "not found in the time limit"
    return "proved least" if tier.proved else "known to do; less may do"


def _not_below(info: ShortageInfo, unit: str) -> Iterator[str]:
    """How far from below the open answers are known."""
    for tier in info.tiers:
        if not tier.proved and tier.at_least:
            least = show_amount(tier.at_least, unit)
            yield f"no plan exists below {least} of {tier.resource} for each {tier.scope}"


def _memory(info: ShortageInfo) -> Iterator[str]:
    """What to write into the cluster's file: any one of these alone."""
    for tier in info.tiers:
        if tier.memory is not None:
            yield (
                f"in the cluster's file: {tier.resource}: {tier.memory} for each {tier.scope} "
                f"({show_amount(tier.memory, 'ps')}, reservations included)"
            )


def _drop(info: ShortageInfo) -> Iterator[str]:
    if info.drop_impossible:
        yield "proved: dropping tables does not help"
    elif info.drop is not None:
        proved = "proved: no fewer do" if info.drop_proved else "fewer may do"
        tables = "table" if len(info.drop) == 1 else "tables"
        yield f"or drop {len(info.drop)} {tables}: {_names(info.drop)} ({proved})"


def _conflict(info: ShortageInfo) -> Iterator[str]:
    if not info.conflict_tables:
        return
    word = "a conflict, maybe with more than it needs"
    if info.irreducible:
        word = "a smallest conflict" if info.smallest else "a conflict of which all is needed"
    limits = ", ".join(info.conflict_constraints) or "nothing else"
    yield f"{word}: {_names(info.conflict_tables)} against {limits}"


def _names(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:_MOST_NAMES])
    hidden = len(names) - _MOST_NAMES
    return shown if hidden <= 0 else f"{shown} … and {hidden} more"
