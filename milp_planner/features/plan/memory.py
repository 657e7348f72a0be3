"""What fills every rank's HBM and every machine's DDR: one stack of modes a place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from formulations import Instance, Placement, Scope
from milp_planner.drawing.charts import LETTER, WIDTH, Drawing, Scale
from milp_planner.drawing.units import memory_name, show_amount, show_share
from milp_planner.features.plan.ranks import FOLD_ABOVE
from milp_planner.features.plan.tables import MODES, facets_of, piles
from milp_planner.files import Facts

#: Of tables whose option's name says no mode (TorchRec's, the literature's).
OTHER = "other"


@dataclass(frozen=True)
class TierMemory:
    """One resource of ranks or machines."""

    resource: str
    scope: str
    modes: tuple[str, ...]
    """What the stacks are of: modes in use, in a fixed order."""
    used: tuple[tuple[int, ...], ...]
    """Bytes of each mode at each place."""
    capacity: tuple[int, ...]

    @property
    def share(self) -> tuple[float, ...]:
        """Use over capacity at each place; infinite where something sits on no capacity."""
        pairs = zip(self.used, self.capacity, strict=True)
        return tuple(
            sum(u) / c if c else (float("inf") if sum(u) else 0.0) for u, c in pairs
        )  # fmt: skip


@dataclass(frozen=True)
class MemoryInfo(Facts):
    """All tiers with places; cluster-wide resources are in the verdict only."""

    tiers: tuple[TierMemory, ...]
    machines: tuple[tuple[int, ...], ...]

    @property
    def shown(self) -> tuple[TierMemory, ...]:
        """Tiers that hold or could hold anything; of one memory's resources the fullest."""
        fullest: dict[str, TierMemory] = {}
        for tier in self.tiers:
            if any(map(sum, tier.used)) or any(tier.capacity):
                name = memory_name(tier.resource)
                known = fullest.get(name)
                if known is None or max(tier.share) > max(known.share):
                    fullest[name] = tier
        return tuple(fullest.values())


def memory_of(instance: Instance, placement: Placement) -> MemoryInfo:
    """Stacks of a well-formed placement."""
    names = [*MODES, OTHER]
    use = np.zeros((len(names), instance.num_ranks, len(instance.resources)), dtype=np.int64)
    for table in range(instance.num_tables):
        option = instance.option_names[int(placement.options[table])]
        facets = facets_of(option)
        mode = names.index(OTHER if facets is None else facets.mode)
        use[mode] += piles(instance, placement, [table]).use
    kept = [m for m in range(len(names)) if use[m].any()]
    tiers = []
    for index, resource in enumerate(instance.resources):
        if resource.scope == Scope.CLUSTER:
            continue
        stacks = use[kept][:, :, index]
        if resource.scope == Scope.MACHINE:
            stacks = np.stack(
                [stacks[:, list(ranks)].sum(axis=1) for ranks in instance.machines], axis=1
            )
        tiers.append(
            TierMemory(
                resource=resource.name,
                scope=resource.scope.value,
                modes=tuple(names[m] for m in kept),
                used=tuple(tuple(row) for row in stacks.T.tolist()),
                capacity=tuple(int(c) for c in resource.capacity),
            )
        )
    return MemoryInfo(tuple(tiers), instance.machines)


LEFT = 84
#: Places drawn as labelled bars; up to ``FOLD_ABOVE`` they are columns.
MOST_BARS = 16
#: Tenths of the capacity from which a cell's figure has the colour of the ground.
ON_DARK = 9
_ROW = 25.0
#: Width of the column of shares, right of the bars and their figures.
_SHARE = 56
_COLUMNS = 230.0


def memory_svg(info: MemoryInfo, tier: TierMemory, unit: str) -> Drawing:
    """Stacks of modes against capacity; above 64 ranks a heat map, one row per machine."""
    if folds(tier):
        return _heat_map(info, tier, unit)
    return (_bars if len(tier.capacity) <= MOST_BARS else _columns)(tier, unit)


def folds(tier: TierMemory) -> bool:
    """Whether places are cells of a heat map, without modes."""
    return tier.scope == "rank" and len(tier.capacity) > FOLD_ABOVE


def _bars(tier: TierMemory, unit: str) -> Drawing:
    drawing = _named(f"of each {tier.scope}", tier, unit, _ROW * len(tier.capacity) + 8)
    words = [
        f"{show_amount(sum(used), unit)} of {show_amount(capacity, unit)}"
        for used, capacity in zip(tier.used, tier.capacity, strict=True)
    ]
    across = Scale(0, _top(tier), LEFT, WIDTH - _SHARE - 14 - LETTER * max(map(len, words)))
    for place in range(len(tier.capacity)):
        y = 4 + place * _ROW
        tip = _tip(tier, place, unit)
        drawing.text(LEFT - 8, y + 15, f"{tier.scope} {place}", "end")
        full = across.at(tier.capacity[place])
        drawing.rect(LEFT, y, full - LEFT, _ROW - 6, "room", tip)
        for mode, low, high in _stack(tier, place):
            x = across.at(low)
            drawing.rect(x, y, across.at(high) - x, _ROW - 6, f"m-{mode}", tip)
        drawing.line([(full, y - 2), (full, y + _ROW - 4)], "limit")
        used, capacity = sum(tier.used[place]), tier.capacity[place]
        style = "over" if used > capacity else ""
        drawing.text(WIDTH - _SHARE, y + 15, words[place], "end", style)
        drawing.text(WIDTH, y + 15, show_share(used, capacity), "end", f"strong {style}")
    return drawing


def _columns(tier: TierMemory, unit: str) -> Drawing:
    drawing = _named(f"of each {tier.scope}", tier, unit, _COLUMNS)
    foot = _COLUMNS - 36
    up = Scale(0, _top(tier), foot, 10, 2 if unit == "ps" else 10)
    step = (WIDTH - 10 - LEFT) / len(tier.capacity)
    bar = step * 0.76
    for value in up.ticks(4):
        drawing.line([(LEFT, up.at(value)), (WIDTH - 10, up.at(value))], "grid")
        drawing.text(LEFT - 8, up.at(value) + 4, show_amount(round(value), unit), "end")
    for place, capacity in enumerate(tier.capacity):
        x = LEFT + place * step + (step - bar) / 2
        tip = _tip(tier, place, unit)
        drawing.rect(x, up.at(capacity), bar, foot - up.at(capacity), "room", tip)
        for mode, low, high in _stack(tier, place):
            drawing.rect(x, up.at(high), bar, up.at(low) - up.at(high), f"m-{mode}", tip)
        drawing.line([(x - 2, up.at(capacity)), (x + bar + 2, up.at(capacity))], "limit")
        if step >= 17 or place % 4 == 0:
            drawing.text(x + bar / 2, foot + 17, str(place), "middle")
    drawing.text(WIDTH - 10, foot + 33, tier.scope, "end", "label")
    return drawing


def _heat_map(info: MemoryInfo, tier: TierMemory, unit: str) -> Drawing:
    widest = max(len(ranks) for ranks in info.machines)
    cell = min(64.0, (WIDTH - LEFT - 10) / widest)
    high = min(22.0, max(5.0, 640 / len(info.machines)))
    top = 44.0
    drawing = _named(
        "of each rank, one row per machine", tier, unit, top + high * len(info.machines) + 6
    )
    drawing.text(LEFT, 14, "share of capacity in use", "start", "label")
    for level in range(11):
        drawing.rect(LEFT + 178 + level * 18, 4, 17, 12, f"h{level}")
    drawing.text(LEFT + 170, 14, "0%", "end")
    drawing.text(LEFT + 384, 14, "100%")
    if cell >= 20:
        for local in range(widest):
            drawing.text(LEFT + (local + 0.5) * cell, top - 8, str(local), "middle", "label")
    for machine, ranks in enumerate(info.machines):
        y = top + machine * high
        if high >= 11 or machine % 4 == 0:
            drawing.text(LEFT - 8, y + high * 0.72, f"machine {machine}", "end")
        for local, rank in enumerate(ranks):
            share = tier.share[rank]
            level = min(10, int(share * 10)) if share <= 1 else 11
            x = LEFT + local * cell
            drawing.rect(x, y, cell - 1.5, high - 1.5, f"h{level}", _tip(tier, rank, unit))
            if cell >= 34 and high >= 16:
                words = show_share(sum(tier.used[rank]), tier.capacity[rank])
                style = "on-dark" if level >= ON_DARK else ""
                drawing.text(x + cell / 2 - 0.7, y + 14.5, words, "middle", style)
    return drawing


def _named(what: str, tier: TierMemory, unit: str, height: float) -> Drawing:
    place = max(range(len(tier.share)), key=lambda i: tier.share[i])
    title = f"{memory_name(tier.resource).upper()} {what}"
    return Drawing(title, "Fullest: " + _tip(tier, place, unit), height)


def _top(tier: TierMemory) -> int:
    return max([sum(used) for used in tier.used] + list(tier.capacity) + [1])


def _stack(tier: TierMemory, place: int) -> Iterator[tuple[str, int, int]]:
    """Modes that hold anything there, each with where it begins and ends."""
    low = 0
    for mode, amount in zip(tier.modes, tier.used[place], strict=True):
        if amount:
            yield mode, low, low + amount
            low += amount


def _tip(tier: TierMemory, place: int, unit: str) -> str:
    used, capacity = sum(tier.used[place]), tier.capacity[place]
    parts = [f"{mode} {show_amount(high - low, unit)}" for mode, low, high in _stack(tier, place)]
    share = show_share(used, capacity)
    text = f"{tier.scope} {place}: {show_amount(used, unit)} of {show_amount(capacity, unit)}"
    return f"{text} ({share})" + (f": {', '.join(parts)}" if parts else "")
