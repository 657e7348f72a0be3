"""Every byte of the fullest rank and machine, and what has room to grow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.text import Text

from milp_planner.drawing.page import Cell, Grid, draw_grid
from milp_planner.drawing.units import listed, show_bytes, show_share
from milp_planner.files import Facts
from milp_planner.plans.growth import NAMED, GrowthInfo, growth_of
from milp_planner.plans.ledger import LedgerInfo, PlaceBytes, ledger_of
from milp_planner.plans.placement import Plan


@dataclass(frozen=True)
class HeldInfo(Facts):
    """The ledger of a plan, and what its HBM allows."""

    ledger: LedgerInfo
    growth: GrowthInfo | None

    @property
    def memories(self) -> Iterator[tuple[str, str, tuple[PlaceBytes, ...]]]:
        """Name, scope and places of each memory that holds anything."""
        for name, scope, places in (
            ("HBM", "rank", self.ledger.hbm),
            ("DDR", "machine", self.ledger.ddr),
        ):
            if any(place.used for place in places):
                yield name, scope, places


def held_info(plan: Plan) -> HeldInfo | None:
    """Of a plan whose Instance counts the bytes of this version's ledger."""
    ledger = ledger_of(plan)
    return None if ledger is None else HeldInfo(ledger, growth_of(plan))


def fullest(places: tuple[PlaceBytes, ...]) -> PlaceBytes:
    """The place with the least room, of equals the first."""
    return min(places, key=lambda place: (place.room, place.place))


def title_of(memory: str, scope: str, places: tuple[PlaceBytes, ...]) -> str:
    """Which place a ledger is of, and when."""
    place = fullest(places)
    when = f" in the {place.moment.replace('_', ' ')}" if place.moment else ""
    which = f"{scope} {place.place}" + (", the fullest," if len(places) > 1 else "")
    return f"{memory} of {which}{when}: {_of(place.used, place)} in use"


def _of(amount: int, place: PlaceBytes) -> str:
    return f"{show_bytes(amount)} of {show_bytes(place.whole)}"


def held_grid(info: LedgerInfo, memory: str, scope: str, places: tuple[PlaceBytes, ...]) -> Grid:
    """Entry by entry: the fullest place, its share of the whole memory, the mean of all places."""
    place = fullest(places)

    def row(name: str, amount: int, mean: float, what: str) -> list[str | Cell]:
        share = show_share(amount, place.whole)
        return [
            name.replace("_", " "), Cell(show_bytes(amount), amount),
            Cell(share, amount / max(1, place.whole)), Cell(show_bytes(round(mean)), mean), what,
        ]  # fmt: skip

    def mean(values: list[int]) -> float:
        return sum(values) / len(places)

    named = [name for name in info.meaning if any(name in each.entries for each in places)]
    rows = [
        row(name, place.entries.get(name, 0), mean([p.entries.get(name, 0) for p in places]),
            info.meaning[name])
        for name in named
    ]  # fmt: skip
    rows.append(row("headroom", place.headroom, mean([p.headroom for p in places]), KEPT))
    rows.append(row("free", place.room, mean([p.room for p in places]), "beyond the headroom"))
    head = ("entry", f"#{scope} {place.place}", "#share", f"#mean {scope}", "what it is")
    caption = title_of(memory, scope, places)
    return Grid.of(f"ledger-{memory.lower()}", f"{memory} entry", caption, head, rows).filled()


KEPT = "must stay free (min_headroom)"


def growth_text(info: GrowthInfo, headroom: str) -> list[str]:
    """Sentences: the batch, the burst and the sharding."""
    found = []
    if info.batch is not None:
        times = info.batch.at / info.batch.now
        found.append(
            f"a global batch of {info.batch.now:,.0f}; up to {info.batch.at:,.0f} "
            f"({times:.2f} times) every rank keeps {headroom}, above it rank {info.batch.rank} "
            "is the first that does not"
        )
    if info.burst is not None:
        found.append(
            f"ids of row-wise tables at {info.burst.now:.2f} times their mean on rank "
            f"{info.burst.rank} are planned for; up to {info.burst.at:.2f} times it keeps "
            f"{headroom}"
        )
        what = f"{listed(info.tables, NAMED)} would take more then"
        instead = f"; {' or '.join(info.instead)} would not" if info.instead else ""
        found.append(what + instead)
    return found


def draw_held(info: HeldInfo) -> RenderableType:
    """The ledger of the fullest rank and machine, what was assumed, and what may grow."""
    parts: list[RenderableType] = []
    for name, scope, places in info.memories:
        grid = held_grid(info.ledger, name, scope, places)
        parts += [Text(grid.caption, style="bold"), draw_grid(grid, {"what it is": 20})]
    if info.growth is not None:
        parts += [Text(line) for line in growth_text(info.growth, "the headroom")]
    if info.ledger.assumed is not None:
        parts.append(Text(info.ledger.assumed, style="yellow"))
    return Group(*parts)
