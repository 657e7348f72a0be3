"""Limits on moves, as far as the choice of options shows them."""

from __future__ import annotations

from formulations.aggregate.linear import LinearModel
from formulations.bounds.own import per_option, shard_counts
from formulations.instance import Instance


def add_move_rows(instance: Instance, model: LinearModel, column_of: dict[int, int]) -> None:
    """A table that leaves its current option moves; one that keeps it may stay (a relaxation)."""
    if instance.max_moved_tables is not None:
        stays = [column_of[c.option] for c in instance.current if c.option in column_of]
        low = len(instance.current) - instance.max_moved_tables
        if low > 0:
            model.row(stays, [1] * len(stays), low=low)
    if instance.max_moved_bytes is not None:
        moved = per_option(instance, instance.shard_move * shard_counts(instance))
        columns, sizes = [], []
        for now in instance.current:
            for option in instance.options_of(now.table):
                if option != now.option and option in column_of and moved[option]:
                    columns.append(column_of[option])
                    sizes.append(int(moved[option]))
        if columns:
            model.row(columns, sizes, high=instance.max_moved_bytes)
