"""What ties the tables of a neighbourhood to each other and to the rest: fusion and moves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from formulations.aggregate.linear import LinearModel
from formulations.bounds.own import per_option, shard_counts
from formulations.check import moved_bytes, moved_tables
from formulations.instance import Current, Instance
from formulations.placement import Placement
from formulations.search.seats import BlockSeats, seat_values


def add_fusion_rows(
    instance: Instance,
    model: LinearModel,
    placement: Placement,
    tables: Sequence[int],
    column_of: dict[int, int],
) -> None:
    """One level a group; groups used outside the neighbourhood stay at their level."""
    users: dict[tuple[int, int], list[int]] = {}
    for option, column in column_of.items():
        group = int(instance.option_group[option])
        if group >= 0:
            users.setdefault((group, int(instance.option_level[option])), []).append(column)
    if not users:
        return
    fixed = _outside_levels(instance, placement, tables)
    levels: dict[int, list[int]] = {}
    for (group, level), columns in users.items():
        if group in fixed:
            if fixed[group] != level:
                model.row(columns, [1] * len(columns), high=0)
            continue
        chosen = model.columns(1)
        levels.setdefault(group, []).append(chosen)
        for column in columns:
            model.row([column, chosen], [1, -1], high=0)
    for chosen_levels in levels.values():
        model.row(chosen_levels, [1] * len(chosen_levels), high=1)


def _outside_levels(
    instance: Instance, placement: Placement, tables: Sequence[int]
) -> dict[int, int]:
    outside = np.ones(instance.num_tables, dtype=bool)
    outside[list(tables)] = False
    options = placement.options[outside]
    options = options[instance.option_group[options] >= 0]
    return dict(
        zip(
            instance.option_group[options].tolist(),
            instance.option_level[options].tolist(),
            strict=True,
        )
    )


def add_move_rows(
    instance: Instance,
    model: LinearModel,
    placement: Placement,
    tables: Sequence[int],
    column_of: dict[int, int],
    seats_of: dict[int, list[BlockSeats]],
) -> None:
    """Limits on moves; a column per table is 1 only when the table stays put."""
    if instance.max_moved_tables is None and instance.max_moved_bytes is None:
        return
    inside = set(tables)
    open_now = [c for c in instance.current if c.table in inside]
    stays = {
        c.table: _stay_column(instance, model, c, column_of, seats_of)
        for c in open_now
        if c.option in column_of
    }
    outside = [t for t in moved_tables(instance, placement) if t not in inside]
    if instance.max_moved_tables is not None:
        low = len(open_now) - (instance.max_moved_tables - len(outside))
        model.row(list(stays.values()), [1] * len(stays), low=max(low, 0))
    if instance.max_moved_bytes is not None:
        room = instance.max_moved_bytes - moved_bytes(instance, placement, outside)
        _byte_row(instance, model, open_now, column_of, stays, room)


def _byte_row(
    instance: Instance,
    model: LinearModel,
    open_now: list[Current],
    column_of: dict[int, int],
    stays: dict[int, int],
    room: int,
) -> None:
    size = per_option(instance, instance.shard_move * shard_counts(instance))
    columns, sizes = [], []
    for now in open_now:
        for option in instance.options_of(now.table):
            if option in column_of:
                columns.append(column_of[option])
                sizes.append(int(size[option]))
        if now.table in stays:
            columns.append(stays[now.table])
            sizes.append(-int(size[now.option]))
    model.row(columns, sizes, high=room)


def _stay_column(
    instance: Instance,
    model: LinearModel,
    now: Current,
    column_of: dict[int, int],
    seats_of: dict[int, list[BlockSeats]],
) -> int:
    stay = model.columns(1)
    model.row([stay, column_of[now.option]], [1, -1], high=0)
    for seats, ranks in zip(seats_of[now.option], now.ranks, strict=True):
        if seats.fixed is not None:
            if sorted(seats.fixed.tolist()) != sorted(ranks):
                model.row([stay], [1], high=0)
        elif not _tie(instance, model, stay, seats, ranks):
            model.row([stay], [1], high=0)
    return stay


def _tie(
    instance: Instance, model: LinearModel, stay: int, seats: BlockSeats, ranks: Sequence[int]
) -> bool:
    """Staying needs exactly the current ranks (as a multiset); False when they are not open."""
    if seats.shards:
        at_rank: dict[int, list[int]] = {}
        for cells in seats.shards.values():
            for rank, column in cells:
                at_rank.setdefault(rank, []).append(column)
        needed = {rank: list(ranks).count(rank) for rank in set(ranks)}
    else:
        found = seat_values(instance, seats, np.asarray(ranks, dtype=np.int64))
        at_rank = {column: [column] for _, column in seats.machines}
        needed = {c: v for c, v in (found or {}).items() if v}
    for key, count in needed.items():
        if key not in at_rank:
            return False
        model.row([*at_rank[key], stay], [1] * len(at_rank[key]) + [-count], low=0)
    return True
