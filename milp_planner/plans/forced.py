"""What no plan avoids: ranks that overflow, because of tables that must lie on every rank; tables
that share a cache, and have no ratio in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from milp_planner.drawing.units import listed, show_bytes, show_ranks
from milp_planner.files import Facts
from milp_planner.pricing.entries import ROWS, SHARD_NAMES, alive, moments_of
from milp_planner.pricing.options import Options, ratio_text
from milp_planner.pricing.outside import capacities
from milp_planner.pricing.price import fits_somewhere, select
from milp_planner.pricing.units import IntArray

EVERYWHERE = ("row_wise", "data_parallel")
"""Sharding types that put a shard on every rank."""
NAMED = 3
"""Most tables that a sentence names."""


@dataclass(frozen=True)
class TableLeast:
    """The least bytes of one table on the rank."""

    name: str
    least: int
    """Bytes."""
    buffers: int
    """Bytes of ids, embeddings and gradients, in the worst batch."""


@dataclass(frozen=True)
class Forced(Facts):
    """The ranks with the largest overflow that no plan avoids."""

    ranks: tuple[int, ...]
    all_ranks: int
    moment: str
    """Moment of the step."""
    least: int
    """The least bytes of all tables there."""
    room: int
    """Bytes available to them there."""
    tables: tuple[TableLeast, ...]
    """The largest first."""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Forced:
        """The inverse of :meth:`to_dict`."""
        tables = tuple(TableLeast(**each) for each in data["tables"])
        return cls(**{**data, "ranks": tuple(data["ranks"]), "tables": tables})

    def __str__(self) -> str:
        named = [f"{t.name} {show_bytes(t.least)}" for t in self.tables]
        buffers = sum(t.buffers for t in self.tables)
        each = "each of " if len(self.ranks) > 1 else ""
        return (
            f"in the {self.moment.replace('_', ' ')} tables put at least {show_bytes(self.least)} "
            f"on {each}{_named(self.ranks, self.all_ranks)}, where they may use "
            f"{show_bytes(self.room)}: {listed(named, NAMED)}; {show_bytes(buffers)} of it are "
            "buffers of the worst batch"
        )


def _named(ranks: tuple[int, ...], count: int) -> str:
    shown = show_ranks(ranks, count)
    return f"{shown} ranks" if shown.startswith("all") else f"rank{'s' * (len(ranks) > 1)} {shown}"


def forced_overflow(options: Options) -> Forced | None:
    """The ranks that overflow in every plan; None if this simple argument shows none.

    If all options of a table lie on every rank, each rank holds at least the smallest share that
    any of them puts there; options too large for a rank or machine are left out. Other tables are
    counted as 0. With ``buffers: largest_collective`` the result is None.
    """
    model, cluster = options.model, options.cluster
    if cluster.cpu_only or model.workload.buffers != "additive" or not len(options):
        return None
    options = select(options, fits_somewhere(options))
    ledger = options.entries.ledger
    moments = moments_of(model.grows)
    use = np.stack([ledger @ alive(moment) for moment in moments], axis=1)
    room = capacities(model, cluster)
    left = np.array([room[moment] for moment in moments], dtype=np.int64).T
    spread = [c.sharding in EVERYWHERE and c.pinned is None for c in options.choices]
    stuck = [t for t in range(len(model.tables)) if all(spread[o] for o in options.of(t))]
    least = np.zeros_like(left)
    for table in stuck:
        shares = [_on_ranks(options, option, use) for option in options.of(table)]
        least += np.min(shares, axis=0)
    over = least - left
    rank, moment = np.unravel_index(int(over.argmax()), over.shape)
    if over[rank, moment] <= 0:
        return None
    stays = ledger @ np.isin(SHARD_NAMES, ROWS).astype(np.int64)
    place = int(rank), int(moment)
    tables = [_at(options, table, use, stays, place) for table in stuck]
    return Forced(
        ranks=tuple(np.flatnonzero(over[:, moment] == over[rank, moment]).tolist()),
        all_ranks=cluster.num_ranks,
        moment=moments[int(moment)],
        least=int(least[rank, moment]),
        room=int(left[rank, moment]),
        tables=tuple(sorted((t for t in tables if t.least), key=lambda t: -t.least)),
    )


def without_ratio(options: Options) -> tuple[str, int] | None:
    """Tables that share a cache in every plan, and for which no ratio is left: a sentence, and the
    number of one of them. None if there are no such."""
    shared: dict[int, dict[int, set[Fraction]]] = {}
    for table in range(len(options.model.tables)):
        groups = {int(options.group[option]) for option in options.of(table)}
        if len(groups) == 1 and (group := groups.pop()) >= 0:
            ratios = {options.choices[option].ratio for option in options.of(table)}
            shared.setdefault(group, {})[table] = ratios
    for found in shared.values():
        if set.intersection(*found.values()):
            continue
        for table in [*reversed(found)]:  # fewest that have none in common
            rest = [ratios for other, ratios in found.items() if other != table]
            if rest and not set.intersection(*rest):
                del found[table]
        each = [
            f"{options.model.tables[table].name} ({' or '.join(map(ratio_text, sorted(ratios)))})"
            for table, ratios in found.items()
        ]
        told = f"no cache ratio is left for {listed(each, NAMED)}: in every plan they share a "
        return told + "kernel's cache on a rank, which has one ratio", max(found)
    return None


def _on_ranks(options: Options, option: int, values: IntArray) -> IntArray:
    """Values of an option's shard entries, one for each rank; array [ranks, …]."""
    first = options.entries.first
    rows = slice(int(first[option]), int(first[option + 1]))
    repeat = options.entries.repeat[rows]
    ranks = options.cluster.num_ranks
    return np.repeat(values[rows], ranks if len(repeat) == 1 else repeat, axis=0)


def _at(
    options: Options, table: int, use: IntArray, stays: IntArray, place: tuple[int, int]
) -> TableLeast:
    """The least bytes of a table on one rank at one moment, with its buffers listed separately."""
    rank, moment = place
    amounts = [
        (int(_on_ranks(options, o, use[:, moment])[rank]), int(_on_ranks(options, o, stays)[rank]))
        for o in options.of(table)
    ]
    least, rows = min(amounts)
    return TableLeast(options.model.tables[table].name, least, least - rows)
