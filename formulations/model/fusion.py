"""Tables that the runtime fuses share one level."""

from __future__ import annotations

import numpy as np

from formulations.instance import IntArray
from formulations.model.columns import Columns
from formulations.model.loads import Rest


def fuse(columns: Columns, rest: Rest) -> None:
    """Give each fusion group a single level.

    With ℓ(g, v) ∈ {0, 1}: ("level", group, level, table) Σ of the table's x at (g, v) ≤ ℓ(g, v),
    and ("one level", group) Σ_v ℓ(g, v) ≤ 1. Groups that only one table can join, or that have
    only one level, need no rows; a group of closed tables keeps its level.
    """
    candidates, instance = columns.candidates, columns.candidates.instance
    group = instance.option_group[candidates.option]
    level = instance.option_level[candidates.option]
    for known, kept in rest.levels.items():
        columns.model.forbid(columns.x[(group == known) & (level != kept)])
        group = np.where(group == known, -1, group)
    for index in np.unique(group[group >= 0]).tolist():
        members = np.flatnonzero(group == index)
        alone = len(np.unique(candidates.table[members])) < 2
        if not alone and len(np.unique(level[members])) > 1:
            _fuse_group(columns, index, members, level[members])


def _fuse_group(columns: Columns, group: int, members: IntArray, level: IntArray) -> None:
    model, tables = columns.model, columns.candidates.table[members]
    levels = np.unique(level)
    own = model.columns(len(levels))
    key, row = np.unique(np.stack([level, tables], axis=1), axis=0, return_inverse=True)
    one = np.ones(len(members), dtype=np.int64)
    of_row = np.searchsorted(levels, key[:, 0])
    rows = np.arange(len(key))
    entries = (
        np.concatenate([row.ravel(), rows]),
        np.concatenate([columns.x[members], own[of_row]]),
        np.concatenate([one, -np.ones_like(rows)]),
    )
    model.rows(("level", group), key, entries, high=0)
    model.row(("one level", group), own, np.ones(len(own), dtype=np.int64), high=1)
