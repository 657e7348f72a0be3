"""What every byte of the fullest rank and machine is for, and how far it can grow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.text import Text

from milp_planner.drawing.grid import Cell, Grid, headed
from milp_planner.drawing.units import listed, show_bytes, show_share
from milp_planner.files import Facts
from milp_planner.plans.growth import NAMED, GrowthInfo, growth_of
from milp_planner.plans.ledger import LedgerInfo, PlaceBytes, ledger_of
from milp_planner.plans.placement import Plan


@dataclass(frozen=True)
class HeldInfo(Facts):
    """The ledger of a plan, and the growth that its HBM allows."""

    ledger: LedgerInfo
    growth: GrowthInfo | None

    @property
    def memories(self) -> Iterator[tuple[str, str, tuple[PlaceBytes, ...]]]:
        """Name, scope and places of each memory that holds anything."""
        for name, scope, places in self.ledger.memories:
            if any(place.used for place in places):
                yield name.upper(), scope, places


def held_info(plan: Plan) -> HeldInfo | None:
    """The ledger of a plan; None if its Instance does not count this version's bytes."""
    ledger = ledger_of(plan)
    return None if ledger is None else HeldInfo(ledger, growth_of(plan))


def fullest(places: tuple[PlaceBytes, ...]) -> PlaceBytes:
    """The place with the least room (the first of equals)."""
    return min(places, key=lambda place: (place.room, place.place))


def title_of(memory: str, scope: str, places: tuple[PlaceBytes, ...]) -> str:
    """The title of a ledger: its place and moment."""
    place = fullest(places)
    when = f" in the {place.moment.replace('_', ' ')}" if place.moment else ""
    which = f"{scope} {place.place}" + (", the fullest," if len(places) > 1 else "")
    used, whole = show_bytes(place.used), show_bytes(place.whole)
    return f"{memory} of {which}{when}: {used} of {whole} in use"


def held_grid(info: LedgerInfo, memory: str, scope: str, places: tuple[PlaceBytes, ...]) -> Grid:
    """One row per entry: the fullest place, its share of the memory, the mean of all places."""
    place = fullest(places)

    def row(name: str, each: Callable[[PlaceBytes], int], what: str) -> tuple[str | Cell, ...]:
        amount, mean = each(place), sum(map(each, places)) / len(places)
        share = Cell(show_share(amount, place.whole), amount / max(1, place.whole))
        average = Cell(show_bytes(round(mean)), mean)
        return (name.replace("_", " "), Cell.amount(amount), share, average, what)

    rows = [
        row(name, lambda at, name=name: at.entries.get(name, 0), what)  # type: ignore[misc]
        for name, what in info.meaning.items()
        if any(name in each.entries for each in places)
    ]
    rows.append(row("headroom", lambda at: at.headroom, KEPT))
    rows.append(row("free", lambda at: at.room, "beyond the headroom"))
    head = ("entry", f"#{scope} {place.place}", "#share", f"#mean {scope}", "what it is")
    caption = title_of(memory, scope, places)
    name, least = f"ledger-{memory.lower()}", {"what it is": 20}
    return Grid.of(name, f"{memory} entry", caption, head, rows, least).filled()


#: Added if the model does not state how memory outside the embeddings grows with the batch.
CONSTANT = (
    "; less if memory outside the embeddings grows with the batch (activation_bytes_per_sample is "
    "not stated)"
)
#: Most tables whose buffers are listed.
MOST_TABLES = 3
KEPT = "must stay free (min_headroom)"


def notes(info: HeldInfo) -> list[str]:
    """Assumptions, and the batch and burst beyond which a first rank loses its headroom."""
    growth, found = info.growth, [*_buffers(info.ledger)]
    found.extend(
        f"{store}, an external store, keeps {show_bytes(amount)} of rows, which no memory here "
        "counts; reads from it are priced as from host memory"
        for store, amount in info.ledger.stores.items()
    )
    if info.ledger.assumed is not None:
        found.append(info.ledger.assumed)
    if growth is not None and growth.batch is not None:
        batch = growth.batch
        found.append(
            f"global batch {batch.now:,.0f}: up to {batch.at:,.0f} "
            f"({batch.at / batch.now:.2f} times) fits like this; beyond, rank {batch.rank} is the "
            f"first without its headroom{'' if growth.outside_follows else CONSTANT}"
        )
    if growth is not None and growth.burst is not None:
        burst, grows = growth.burst, listed(growth.tables, NAMED)
        text = (
            f"worst batch: {burst.now:.2f} times the mean of exchanged row-wise ids on rank "
            f"{burst.rank}, the first without its headroom from {burst.at:.2f} times; "
            f"that is {grows}"
        )
        instead = " or ".join(growth.instead)
        found.append(f"{text}: {instead} would not grow" if instead else text)
    return found


def _buffers(info: LedgerInfo) -> Iterator[str]:
    """The tables whose buffers take the most HBM."""
    most = sorted(info.tables, key=lambda each: -each.buffers)[:MOST_TABLES]
    largest = [
        f"{each.name} {show_bytes(each.buffers)} beside {show_bytes(each.rows)} of rows"
        for each in most
        if each.buffers
    ]
    if largest:
        yield f"largest buffers, on all ranks together: {', '.join(largest)}"


def draw_held(info: HeldInfo) -> RenderableType:
    """The ledger of the fullest rank and machine, the assumptions, and the room to grow."""
    grids = [held_grid(info.ledger, *each) for each in info.memories]
    return Group(*(headed(grid.caption, grid) for grid in grids), *map(Text, notes(info)))
