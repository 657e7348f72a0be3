"""What differs between two things of a kind, key by key: two plans, or two batches.

A diff says what it shows once, as blocks; terminal and page draw these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rich.console import Group, RenderableType
from rich.text import Text

from milp_planner.drawing.grid import Grid, headed
from milp_planner.drawing.page import Fact, Part, Section, Shown, fill
from milp_planner.drawing.units import listed
from milp_planner.files import Facts


@dataclass(frozen=True)
class Change:
    """Something that both have, differently, or one of them alone."""

    key: str
    before: Any
    after: Any
    """Values, or facts; None where one lacks it."""


@dataclass(frozen=True)
class Changes:
    """What differs between two collections with keys."""

    changed: tuple[Change, ...]
    """What both have, differently, in the order of the second."""
    alike: int
    """How many both have and are equal."""
    removed: tuple[str, ...]
    added: tuple[str, ...]
    """Keys that only the first, or only the second, has."""

    @property
    def both(self) -> int:
        """How many both have."""
        return len(self.changed) + self.alike


def changes(
    before: Mapping[str, Any], after: Mapping[str, Any], same: Callable[[Any, Any], bool]
) -> Changes:
    """Match two collections by their keys; ``same`` says what is no difference."""
    both = [key for key in after if key in before]
    changed = [Change(k, before[k], after[k]) for k in both if not same(before[k], after[k])]
    return Changes(
        changed=tuple(changed),
        alike=len(both) - len(changed),
        removed=tuple(key for key in before if key not in after),
        added=tuple(key for key in after if key not in before),
    )


def joined(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    """Every key of either, with both values."""
    for key in dict.fromkeys([*before, *after]):
        yield Change(key, before.get(key), after.get(key))


def change_of(before: float | None, after: float | None) -> str:
    """``+3.21%``, ``same``, or nothing where a value is missing or the first is 0."""
    if before is None or after is None:
        return ""
    if before == after:
        return "same"
    return f"{(after - before) / before:+.2%}" if before else ""


@dataclass(frozen=True)
class Block:
    """One part of what a diff shows."""

    id: str
    title: str
    lines: Sequence[str] = ()
    """Sentences; a terminal shows the first as the title."""
    grid: Grid | None = None
    rows: int | None = None
    columns: int | None = None
    """The most of the grid that a terminal shows; the page has all."""

    def drawing(self) -> RenderableType:
        """As a terminal shows it."""
        parts: list[RenderableType] = [*self.lines[1:]]
        if self.grid is not None:
            parts.append(self.grid.first(self.rows, self.columns))
            hidden = len(self.grid.rows) - (self.rows or len(self.grid.rows))
            more = f"… and {hidden:,} more {self.id} (the page and --json have all)"
            parts += [more] if hidden > 0 else []
        return headed(self.lines[0] if self.lines else self.title, *parts)

    def section(self) -> Section:
        """As a page shows it."""
        points = tuple(f"{line[:1].upper()}{line[1:]}." for line in self.lines)
        parts = () if self.grid is None else (Part(table=self.grid),)
        return Section(self.id, self.title, points=points, parts=parts)


@dataclass(frozen=True, repr=False)
class Diff(Facts, Shown):
    """Two of a kind side by side, a and b."""

    kind: ClassVar[str]
    """``plans`` or ``batches``."""
    names: tuple[str, str]
    """Files or folders."""
    titles: tuple[str, str]
    """What each is."""
    standings: tuple[str, str]
    """What is proved of each, or which version made it."""
    rows: Changes
    """Their tables, or scenarios."""

    def blocks(self) -> Iterator[Block]:
        """What is shown, in order."""
        raise NotImplementedError

    def strip(self) -> list[Fact]:
        """The most important figures, for the head of the page."""
        raise NotImplementedError

    def drawing(self) -> RenderableType:
        """The terminal's drawing."""
        sides = zip("ab", self.names, self.titles, self.standings, strict=True)
        lines = (Text(f"{side} {name}: {title}; {word}") for side, name, title, word in sides)
        return Group(*lines, *(block.drawing() for block in self.blocks()))

    def page(self) -> str:
        """The page as text: self-contained, with styles and script inside."""
        sides = zip("ab", self.names, self.titles, strict=True)
        return fill(
            title=f"Two {self.kind}",
            subtitle=" ".join(f"{side}: {name}, {title}." for side, name, title in sides),
            strip=self.strip(),
            sections=[block.section() for block in self.blocks()],
            footer=f"Written by milp-planner. a: {self.standings[0]}. b: {self.standings[1]}.",
        )

    def only(self) -> list[str]:
        """Which rows only one has, in words."""
        names = (("only in a", self.rows.removed), ("only in b", self.rows.added))
        return [f"{what}: {listed(keys, 6)}" for what, keys in names if keys]
