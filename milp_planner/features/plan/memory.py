"""What fills every rank's HBM and every machine's DDR: one stack per place.

If a plan's ledger is known, its entries are stacked against the whole memory; else modes are
stacked against what tables may use.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from formulations import Instance, Placement, Scope
from formulations.result.piles import piles
from milp_planner.drawing.charts import LETTER, WIDTH, Drawing, Scale
from milp_planner.drawing.units import memory_name, show_amount, show_share
from milp_planner.features.plan.ranks import FOLD_ABOVE
from milp_planner.features.plan.tables import MODES, facets_of
from milp_planner.files import Facts
from milp_planner.plans.compile import memories
from milp_planner.plans.ledger import LedgerInfo, PlaceBytes

#: The mode of tables whose option's name gives none (TorchRec's, the literature's).
OTHER = "other"


#: The kind that each entry of the ledger is drawn as; other entries are ``OUTSIDE``.
KINDS = {
    "weights": "weights",
    "stashed": "weights",
    "gathered_weights": "weights",
    "padded_weights": "weights",
    "state": "optimizer state",
    "metadata": "metadata, index",
    "old_keys": "metadata, index",
    "cache_index": "metadata, index",
    "dense_gradients": "gradients",
    "gradients": "gradients",
    "gradient_bucket": "gradients",
    "sent_gradients": "gradients",
    "held_gradients": "gradients",
    "activation_gradients": "gradients",
    "inputs": "ids",
    "lengths": "ids",
    "prefetch": "ids",
    "batch": "ids",
    "output": "embeddings sent",
    "send_buffer": "embeddings sent",
    "encoding": "embeddings sent",
    "activations": "embeddings received",
    "received": "embeddings received",
    "receive_buffer": "embeddings received",
    "host_tables": "weights",
}
OUTSIDE = "outside embeddings"
#: All kinds, in the order of their colours.
COLOURS = (*dict.fromkeys(KINDS.values()), OUTSIDE)


@dataclass(frozen=True)
class TierMemory:
    """One resource of ranks or machines, or their whole memory."""

    resource: str
    scope: str
    parts: tuple[str, ...]
    """The parts of the stacks, in a fixed order: modes, or entries of the ledger in use."""
    used: tuple[tuple[int, ...], ...]
    """Bytes of each part at each place."""
    capacity: tuple[int, ...]
    kept: tuple[int, ...] | None = None
    """With a ledger: how much of the capacity must stay free at each place."""

    def limit(self, place: int) -> int:
        """The capacity that may be used at a place."""
        return self.capacity[place] - (0 if self.kept is None else self.kept[place])

    def kind(self, part: str) -> str:
        """The kind that a part is drawn as: the mode itself, or the kind of the ledger's entry."""
        return part if self.kept is None else KINDS.get(part, OUTSIDE)

    def style(self, part: str) -> str:
        """CSS class of a part's colour."""
        kind = self.kind(part)
        return f"m-{kind}" if self.kept is None else f"e{COLOURS.index(kind)}"

    @property
    def share(self) -> tuple[float, ...]:
        """Use over capacity at each place; infinite where something uses a capacity of 0."""
        pairs = zip(self.used, self.capacity, strict=True)
        return tuple(
            sum(u) / c if c else (float("inf") if sum(u) else 0.0) for u, c in pairs
        )  # fmt: skip


@dataclass(frozen=True)
class MemoryInfo(Facts):
    """All tiers of ranks or machines; cluster-wide resources appear in the verdict only."""

    tiers: tuple[TierMemory, ...]
    machines: tuple[tuple[int, ...], ...]

    @property
    def shown(self) -> tuple[TierMemory, ...]:
        """Tiers with use or capacity; of the resources of one memory, the fullest."""
        fullest: dict[str, TierMemory] = {}
        for tier in self.tiers:
            if any(map(sum, tier.used)) or any(tier.capacity):
                name = memory_name(tier.resource)
                known = fullest.get(name)
                if known is None or max(tier.share) > max(known.share):
                    fullest[name] = tier
        return tuple(fullest.values())


def memory_of(
    instance: Instance, placement: Placement, ledger: LedgerInfo | None = None
) -> MemoryInfo:
    """Stacks of a well-formed placement, taken from its ledger if that is known."""
    if ledger is not None:
        tiers = tuple(_whole(*each, [*ledger.meaning]) for each in ledger.memories)
        return MemoryInfo(tiers, instance.machines)
    names = [*MODES, OTHER]
    use = np.zeros((len(names), instance.num_ranks, len(instance.resources)), dtype=np.int64)
    for table in range(instance.num_tables):
        option = instance.option_names[int(placement.options[table])]
        facets = facets_of(option)
        mode = names.index(OTHER if facets is None else facets.mode)
        use[mode] += piles(instance, placement, [table]).use
    kept = [m for m in range(len(names)) if use[m].any()]
    found = []
    for index, resource in memories(instance):
        if resource.scope == Scope.CLUSTER:
            continue
        stacks = use[kept][:, :, index]
        if resource.scope == Scope.MACHINE:
            stacks = np.stack(
                [stacks[:, list(ranks)].sum(axis=1) for ranks in instance.machines], axis=1
            )
        found.append(
            TierMemory(
                resource=resource.name,
                scope=resource.scope.value,
                parts=tuple(names[m] for m in kept),
                used=tuple(tuple(row) for row in stacks.T.tolist()),
                capacity=tuple(int(c) for c in resource.capacity),
            )
        )
    return MemoryInfo(tuple(found), instance.machines)


def _whole(
    name: str, scope: str, places: Sequence[PlaceBytes], entries: Sequence[str]
) -> TierMemory:
    """A memory at its fullest moment, with entries of one kind next to each other."""
    here = [entry for entry in entries if any(entry in place.entries for place in places)]
    here.sort(key=lambda entry: COLOURS.index(KINDS.get(entry, OUTSIDE)))
    return TierMemory(
        name, scope, tuple(here),
        tuple(tuple(place.entries.get(entry, 0) for entry in here) for place in places),
        tuple(place.whole for place in places),
        tuple(place.headroom for place in places),
    )  # fmt: skip


LEFT = 84
#: Most places drawn as labelled bars; up to ``FOLD_ABOVE``, they are columns.
MOST_BARS = 16
#: From this many tenths of the capacity, a cell's figure has the background's colour.
ON_DARK = 9
_ROW_HEIGHT = 25.0
#: Width of the column of shares to the right of the bars and their figures.
_SHARE_WIDTH = 56
_COLUMNS_HEIGHT = 230.0


def memory_svg(info: MemoryInfo, tier: TierMemory, unit: str) -> Drawing:
    """Stacks against capacity; above 64 ranks, a heat map with one row per machine."""
    if folds(tier):
        return _heat_map(info, tier, unit)
    return (_bars if len(tier.capacity) <= MOST_BARS else _columns)(tier, unit)


def folds(tier: TierMemory) -> bool:
    """Whether places are cells of a heat map, without stacks."""
    return tier.scope == "rank" and len(tier.capacity) > FOLD_ABOVE


def _bars(tier: TierMemory, unit: str) -> Drawing:
    drawing = _named(f"of each {tier.scope}", tier, unit, _ROW_HEIGHT * len(tier.capacity) + 8)
    words = [
        f"{show_amount(sum(used), unit)} of {show_amount(capacity, unit)}"
        for used, capacity in zip(tier.used, tier.capacity, strict=True)
    ]
    across = Scale(0, _top(tier), LEFT, WIDTH - _SHARE_WIDTH - 14 - LETTER * max(map(len, words)))
    for place in range(len(tier.capacity)):
        y = 4 + place * _ROW_HEIGHT
        tip = _tip(tier, place, unit)
        drawing.text(LEFT - 8, y + 15, f"{tier.scope} {place}", "end")
        full, limit = across.at(tier.capacity[place]), across.at(tier.limit(place))
        drawing.rect(LEFT, y, full - LEFT, _ROW_HEIGHT - 6, "room", tip)
        drawing.rect(limit, y, full - limit, _ROW_HEIGHT - 6, "kept", tip)
        for part, low, high in _stack(tier, place):
            x = across.at(low)
            drawing.rect(x, y, across.at(high) - x, _ROW_HEIGHT - 6, tier.style(part), tip)
        drawing.line([(limit, y - 2), (limit, y + _ROW_HEIGHT - 4)], "limit")
        used, capacity = sum(tier.used[place]), tier.capacity[place]
        style = "over" if used > tier.limit(place) else ""
        drawing.text(WIDTH - _SHARE_WIDTH, y + 15, words[place], "end", style)
        drawing.text(WIDTH, y + 15, show_share(used, capacity), "end", f"strong {style}")
    return drawing


def _columns(tier: TierMemory, unit: str) -> Drawing:
    drawing = _named(f"of each {tier.scope}", tier, unit, _COLUMNS_HEIGHT)
    foot = _COLUMNS_HEIGHT - 36
    up = Scale(0, _top(tier), foot, 10, 2 if unit == "ps" else 10)
    step = (WIDTH - 10 - LEFT) / len(tier.capacity)
    bar = step * 0.76
    for value in up.ticks(4):
        drawing.line([(LEFT, up.at(value)), (WIDTH - 10, up.at(value))], "grid")
        drawing.text(LEFT - 8, up.at(value) + 4, show_amount(round(value), unit), "end")
    for place, capacity in enumerate(tier.capacity):
        x = LEFT + place * step + (step - bar) / 2
        tip = _tip(tier, place, unit)
        limit = up.at(tier.limit(place))
        drawing.rect(x, up.at(capacity), bar, foot - up.at(capacity), "room", tip)
        drawing.rect(x, up.at(capacity), bar, limit - up.at(capacity), "kept", tip)
        for part, low, high in _stack(tier, place):
            drawing.rect(x, up.at(high), bar, up.at(low) - up.at(high), tier.style(part), tip)
        drawing.line([(x - 2, limit), (x + bar + 2, limit)], "limit")
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
            fits = sum(tier.used[rank]) <= tier.limit(rank)
            level = min(10, int(share * 10)) if fits else 11
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
    """The non-empty parts at a place, each with its start and end."""
    low = 0
    for part, amount in zip(tier.parts, tier.used[place], strict=True):
        if amount:
            yield part, low, low + amount
            low += amount


def _tip(tier: TierMemory, place: int, unit: str) -> str:
    used, capacity = sum(tier.used[place]), tier.capacity[place]
    parts = [
        f"{part.replace('_', ' ') if tier.kept else part} {show_amount(high - low, unit)}"
        for part, low, high in _stack(tier, place)
    ]
    share = show_share(used, capacity)
    text = f"{tier.scope} {place}: {show_amount(used, unit)} of {show_amount(capacity, unit)}"
    return f"{text} ({share})" + (f": {', '.join(parts)}" if parts else "")
