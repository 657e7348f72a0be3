"""Memory on a terminal: a stack of modes for every place, or how many places are how full."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from milp_planner.report.memory import MemoryInfo, TierMemory
from milp_planner.report.terminal.bars import FREE, MODE_STYLE, bar_rows, legend, room, stack
from milp_planner.report.units import memory_name, show_amount, show_share

#: Places drawn one by one; more are counted.
MOST_PLACES = 16


def draw_memory(info: MemoryInfo, unit: str, width: int) -> RenderableType:
    """Every memory of ranks and machines against its capacity."""
    parts: list[RenderableType] = []
    modes: dict[str, None] = {}
    for tier in info.shown:
        if not any(map(sum, tier.used)):
            parts.append(Text(f"{memory_name(tier.resource).upper()}: none in use"))
            continue
        many = len(tier.capacity) > MOST_PLACES
        parts.append(_title(tier, many))
        parts.append(_counted(tier, width) if many else _stacks(tier, unit, width))
        modes.update({} if many else dict.fromkeys(tier.modes))
    if modes:
        parts.append(legend(modes, (FREE, "free")))
    return Group(*parts)


def _title(tier: TierMemory, many: bool) -> Text:
    name = memory_name(tier.resource).upper()
    words = f"{name} in use: {tier.scope}s by share of capacity" if many else (
        f"{name} of each {tier.scope}"
    )  # fmt: skip
    return Text(words, style="bold")


def _stacks(tier: TierMemory, unit: str, width: int) -> Group:
    labels = [f"{tier.scope} {place}" for place in range(len(tier.capacity))]
    totals = [sum(used) for used in tier.used]
    shown = [
        (show_amount(u, unit), show_amount(c, unit), show_share(u, c))
        for u, c in zip(totals, tier.capacity, strict=True)
    ]
    wide = [max(len(row[i]) for row in shown) for i in range(3)]
    notes = [
        Text(f"{u:>{wide[0]}} of {c:>{wide[1]}} {s:>{wide[2]}}", "bold red" if t > k else "")
        for (u, c, s), t, k in zip(shown, totals, tier.capacity, strict=True)
    ]
    length = room(width, labels, notes)
    full = max(*totals, *tier.capacity, 1)
    glyphs = [MODE_STYLE[mode] for mode in tier.modes]
    bars = [
        stack([*zip(used, glyphs, strict=True), (max(0, c - sum(used)), FREE)], full, length)
        for used, c in zip(tier.used, tier.capacity, strict=True)
    ]
    return bar_rows(labels, bars, notes, length)


def _counted(tier: TierMemory, width: int) -> Group:
    counts = tier.tenths
    kept = [i for i in range(11) if counts[i]]
    span = range(kept[0], kept[-1] + 1)
    labels = ["over 100%" if i == 10 else f"{10 * i}–{10 * (i + 1)}%" for i in span]
    notes = [f"{counts[i]:,} {tier.scope}{'' if counts[i] == 1 else 's'}" for i in span]
    length = room(width, labels, notes)
    bars = [
        stack([(counts[i], ("█", "red" if i == 10 else "blue"))], max(counts), length) for i in span
    ]
    return bar_rows(labels, bars, notes, length)
