"""Other tables and options in the arrays of an Instance, its constraints carried along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from formulations.bounds.own import members
from formulations.instance import Current, Instance, IntArray, Pin


def rearranged(
    instance: Instance, tables: Sequence[int], options: IntArray, table_options: IntArray
) -> Instance:
    """Some tables of an instance, with the options given in that order.

    Pins, forbidden options and the current plan of tables left out fall away.

    Parameters
    ----------
    instance : Instance
    tables : sequence of int
        Those kept, in their new order.
    options : int64 array
        Options kept, by table, in their new order.
    table_options : int64 array [tables + 1]
        Offsets into ``options``.
    """
    blocks, option_blocks = members(instance.option_blocks, options)
    entries, block_shards = members(instance.block_shards, blocks)
    current = _current(instance, tables, options)
    return replace(
        instance,
        table_names=tuple(instance.table_names[t] for t in tables),
        option_names=tuple(instance.option_names[o] for o in options.tolist()),
        table_options=table_options,
        option_blocks=option_blocks,
        option_group=instance.option_group[options],
        option_level=instance.option_level[options],
        block_where=instance.block_where[blocks],
        block_count=instance.block_count[blocks],
        block_distinct=instance.block_distinct[blocks],
        block_places=instance.block_places[blocks],
        block_shards=block_shards,
        shard_repeat=instance.shard_repeat[entries],
        shard_use=instance.shard_use[entries],
        shard_cost=instance.shard_cost[entries],
        shard_move=instance.shard_move[entries],
        pins=_pins(instance, tables, options),
        forbidden=_forbidden(instance, tables, options),
        current=current,
        max_moved_tables=instance.max_moved_tables if current else None,
        max_moved_bytes=instance.max_moved_bytes if current else None,
        reference=(),
    )


def appended(instance: Instance, extra: Instance) -> Instance:
    """The tables of another instance of the same places, resources and phases behind its own.

    The other has neither fusion groups nor constraints.
    """

    def behind(first: IntArray, second: IntArray) -> IntArray:
        return np.concatenate([first, second[1:] + first[-1]])

    places = extra.block_places.copy()
    places[places >= 0] += len(instance.place_sets)
    pairs: dict[str, Any] = {
        name: np.concatenate([getattr(instance, name), getattr(extra, name)])
        for name in (
            "option_group", "option_level", "block_where", "block_count", "block_distinct",
            "shard_repeat", "shard_use", "shard_cost", "shard_move",
        )
    }  # fmt: skip
    return replace(
        instance,
        table_names=instance.table_names + extra.table_names,
        option_names=instance.option_names + extra.option_names,
        table_options=behind(instance.table_options, extra.table_options),
        option_blocks=behind(instance.option_blocks, extra.option_blocks),
        block_shards=behind(instance.block_shards, extra.block_shards),
        block_places=np.concatenate([instance.block_places, places]),
        place_sets=instance.place_sets + extra.place_sets,
        **pairs,
    )


def _pins(instance: Instance, tables: Sequence[int], options: IntArray) -> tuple[Pin, ...]:
    table_of, option_of = _index(tables), _index(options.tolist())
    return tuple(
        Pin(table_of[p.table], option_of[p.option], p.ranks)
        for p in instance.pins
        if p.table in table_of
    )


def _forbidden(
    instance: Instance, tables: Sequence[int], options: IntArray
) -> tuple[tuple[int, int], ...]:
    table_of, option_of = _index(tables), _index(options.tolist())
    return tuple((table_of[t], option_of[o]) for t, o in instance.forbidden if t in table_of)


def _current(instance: Instance, tables: Sequence[int], options: IntArray) -> tuple[Current, ...]:
    table_of, option_of = _index(tables), _index(options.tolist())
    return tuple(
        Current(table_of[c.table], option_of.get(c.option, -1), c.ranks)
        for c in instance.current
        if c.table in table_of
    )


def _index(items: Sequence[int]) -> dict[int, int]:
    return {item: index for index, item in enumerate(items)}
