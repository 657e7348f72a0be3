"""What a first state begins with: one level in every fusion group, and the largest shards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from formulations.instance import Instance, IntArray
from formulations.search.anneal_data import EVERY_RANK, RANK, Lowered
from formulations.search.numbers import WHOLE_MACHINE


def one_level_a_group(
    instance: Instance, options: IntArray, choices: Sequence[IntArray]
) -> IntArray:
    """Put every mixed fusion group at the level that most of its tables can take; the other tables
    leave the group if they can.

    Moves never mix levels, but cannot repair a mixed group: while one remains, no plan is proposed.

    Parameters
    ----------
    instance : Instance
    options : int64 array [tables]
    choices : sequence of int64 arrays
        Options that each table may take.
    """
    options = np.array(options, dtype=np.int64)
    group, level = instance.option_group, instance.option_level
    for _ in range(1 + len(instance.fusion_groups)):
        one = mixed(group[options], level[options])
        if one is None:
            break
        tables = np.flatnonzero(group[options] == one).tolist()
        mine = [choices[t] for t in tables]
        inside = np.concatenate([options[tables], *(c[group[c] == one] for c in mine)])
        ways = [
            [c[(group[c] != one) | (level[c] == at)] for c in mine]
            for at in np.unique(level[inside])
        ]
        away = np.where(group == one, 0, 1 + (group >= 0))  # this group, none, another
        best = min(ways, key=lambda fits: sum(min(away[c], default=9) for c in fits))
        for table, fits in zip(tables, best, strict=True):
            if len(fits) and options[table] not in fits:
                options[table] = fits[away[fits].argmin()]
    return options


def mixed(group: IntArray, level: IntArray) -> int | None:
    """A fusion group with tables at more than one level; None where there is none."""
    pairs = np.unique(np.stack([group, level])[:, group >= 0], axis=1)[0]
    again = pairs[1:][pairs[1:] == pairs[:-1]]
    return int(again[0]) if len(again) else None


def largest_shard(lowered: Lowered, options: IntArray, limit: IntArray) -> NDArray[np.float64]:
    """Size of each table's largest shard, as a share of what a rank has left of its limits beside
    the loads that these options put on every rank (if nothing, of the largest shard).

    Tables whose options choose no place are infinitely large, because they cannot give way, and
    those on whole machines come next.

    Parameters
    ----------
    lowered : Lowered
    options : int64 array [tables]
    limit : int64 array [ranks × features]
    """
    entry, assignments = lowered.entry[0], lowered.assignments
    wide, count = entry.shape[1], len(lowered.placeable)
    every = lowered.view(EVERY_RANK, count * wide).reshape(count, wide)
    left = limit.reshape(lowered.instance.num_ranks, wide).mean(axis=0) - every[options].sum(axis=0)
    room = np.where(left > 0, left, np.maximum(1, entry.max(axis=0, initial=1)))
    size = (entry[assignments[:, 0]] / room).max(axis=1, initial=0.0)
    size += np.where(assignments[:, 1] == RANK, 0.0, WHOLE_MACHINE)
    largest = np.full(count, -np.inf)
    np.maximum.at(largest, lowered.instance.option_of[assignments[:, 2]], size)
    return np.where(largest < 0, np.inf, largest)[options]
