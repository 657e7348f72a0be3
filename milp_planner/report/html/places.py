"""Drawings of ranks and machines: memory stacks, heat map, phase timeline."""

from __future__ import annotations

from milp_planner.report.html.svg import WIDTH, Drawing, Scale
from milp_planner.report.memory import MemoryInfo, TierMemory
from milp_planner.report.ranks import FOLD_ABOVE, RanksInfo
from milp_planner.report.units import show_amount, show_cost, show_share

LEFT, TOP, BOTTOM = 84, 34, 44
#: Ranks drawn in a timeline; with more, the slowest.
MOST_RANKS = 32


def draw_memory(info: MemoryInfo, tier: TierMemory, unit: str) -> Drawing:
    """Stacked bars against capacity; above 64 places a heat map, one row a machine."""
    if len(tier.capacity) > FOLD_ABOVE and tier.scope == "rank":
        return _heat_map(info, tier, unit)
    return _stacks(tier, unit)


def _stacks(tier: TierMemory, unit: str) -> Drawing:
    name = tier.resource.partition(":")[0].upper()
    drawing = Drawing(f"{name} of each {tier.scope}", _fullest(tier, unit), 270)
    top = max([sum(u) for u in tier.used] + list(tier.capacity) + [1])
    up = Scale(0, top, 270 - BOTTOM, TOP, 2 if unit == "ps" else 10)
    across = Scale(0, len(tier.capacity), LEFT, WIDTH - 10)
    step = (across.stop - across.start) / len(tier.capacity)
    bar = min(64.0, step * 0.72)
    for value in up.ticks(4):
        drawing.line([(LEFT, up.at(value)), (WIDTH - 10, up.at(value))], "grid")
        drawing.text(LEFT - 8, up.at(value) + 4, show_amount(round(value), unit), "end")
    for place, (used, capacity) in enumerate(zip(tier.used, tier.capacity, strict=True)):
        x = across.start + place * step + (step - bar) / 2
        tip = _tip(tier, place, unit)
        drawing.rect(x, up.at(capacity), bar, up.start - up.at(capacity), "room", tip)
        floor = 0
        for mode, amount in zip(tier.modes, used, strict=True):
            height = up.at(floor) - up.at(floor + amount)
            drawing.rect(x, up.at(floor + amount), bar, height, f"m-{mode}", tip)
            floor += amount
        drawing.line([(x - 3, up.at(capacity)), (x + bar + 3, up.at(capacity))], "limit")
        if step >= 17 or place % 4 == 0:
            drawing.text(x + bar / 2, up.start + 17, str(place), "middle")
    drawing.text(WIDTH - 10, up.start + 36, tier.scope, "end", "label")
    return drawing


def _heat_map(info: MemoryInfo, tier: TierMemory, unit: str) -> Drawing:
    name = tier.resource.partition(":")[0].upper()
    widest = max(len(ranks) for ranks in info.machines)
    cell = min(26.0, (WIDTH - LEFT - 10) / max(widest, 1))
    high = min(20.0, max(5.0, 640 / len(info.machines)))
    drawing = Drawing(
        f"{name} of each rank, one row a machine", _fullest(tier, unit),
        TOP + high * len(info.machines) + 12,
    )  # fmt: skip
    for machine, ranks in enumerate(info.machines):
        y = TOP + machine * high
        if high >= 11 or machine % 4 == 0:
            drawing.text(LEFT - 8, y + high * 0.75, f"machine {machine}", "end")
        for local, rank in enumerate(ranks):
            level = min(10, int(tier.share[rank] * 10)) if tier.share[rank] <= 1 else 11
            drawing.rect(
                LEFT + local * cell, y, cell - 1.5, high - 1.5, f"h{level}", _tip(tier, rank, unit)
            )
    x = LEFT + cell * widest + 24.0
    drawing.text(x, TOP + 10, "share of capacity in use", "start", "label")
    for level in range(11):
        drawing.rect(x + level * 15, TOP + 20, 14, 12, f"h{level}")
    drawing.text(x, TOP + 48, "0%")
    drawing.text(x + 165, TOP + 48, "100%", "end")
    return drawing


def draw_timeline(info: RanksInfo) -> Drawing:
    """Phases between barriers: every rank works, then waits for the slowest of the phase."""
    order = sorted(info.rows, key=lambda r: (-r.cost, r.rank))[:MOST_RANKS]
    rows = sorted(order, key=lambda r: r.rank)
    high = 22.0
    height = TOP + high * len(rows) + BOTTOM + 8
    total = max(1, sum(info.barriers))
    slowest = max(info.rows, key=lambda r: r.cost, default=None)
    about = f"step time {show_cost(sum(info.barriers), info.time_unit)}"
    if slowest is not None:
        about += f"; the busiest rank is {slowest.rank}"
    drawing = Drawing("Time of each rank in each phase, with barriers", about, height)
    across = Scale(0, total, LEFT, WIDTH - 14)
    foot = TOP + high * len(rows)
    edges = [0]
    for barrier in info.barriers:
        edges.append(edges[-1] + barrier)
    for index, row in enumerate(rows):
        y = TOP + index * high
        drawing.text(LEFT - 8, y + high * 0.68, f"rank {row.rank}", "end")
        for phase, (start, value) in enumerate(zip(edges, row.phases, strict=False)):
            if not value:
                continue
            style = f"p{phase % 6}" + (" critical" if row.critical[phase] else "")
            tip = f"rank {row.rank}, {info.phases[phase]}: {show_cost(value, info.time_unit)}"
            tip += " (slowest)" if row.critical[phase] else ""
            drawing.rect(
                across.at(start), y + 2, across.at(start + value) - across.at(start), high - 5,
                style, tip,
            )  # fmt: skip
    for edge in edges:
        drawing.line([(across.at(edge), TOP - 6), (across.at(edge), foot + 4)], "barrier")
    for tick in across.ticks(6):
        drawing.text(across.at(tick), foot + 20, show_cost(round(tick), info.time_unit), "middle")
    drawing.text(WIDTH - 14, foot + 40, "time from the start of the step", "end", "label")
    return drawing


def _fullest(tier: TierMemory, unit: str) -> str:
    place = max(range(len(tier.share)), key=lambda i: tier.share[i])
    return "fullest: " + _tip(tier, place, unit)


def _tip(tier: TierMemory, place: int, unit: str) -> str:
    used, capacity = sum(tier.used[place]), tier.capacity[place]
    parts = [
        f"{mode} {show_amount(amount, unit)}"
        for mode, amount in zip(tier.modes, tier.used[place], strict=True)
        if amount
    ]
    share = show_share(used, capacity)
    text = f"{tier.scope} {place}: {show_amount(used, unit)} of {show_amount(capacity, unit)}"
    return f"{text} ({share})" + (f": {', '.join(parts)}" if parts else "")
