"""Tables the runtime fuses share one level."""

from __future__ import annotations

import numpy as np

from formulations.cpsat_model.variables import Variables


def fuse(variables: Variables) -> None:
    """One level a fusion group.

    With ℓ_{g,v} ∈ {0, 1}:  Σ_v ℓ_{g,v} ≤ 1 for every group g, and
    Σ_{o of t with (g,v)} x_o ≤ ℓ_{g,v} for every table t. Groups that fewer than two tables
    can join, or that have one level, need nothing.
    """
    instance = variables.instance
    for group in range(len(instance.fusion_groups)):
        members = np.flatnonzero((instance.option_group == group) & (variables.option >= 0))
        tables = np.unique(instance.table_of[members])
        levels = np.unique(instance.option_level[members])
        if len(tables) > 1 and len(levels) > 1:
            _fuse_group(variables, members, levels)


def _fuse_group(variables: Variables, members: np.ndarray, levels: np.ndarray) -> None:
    instance, cp = variables.instance, variables.cp
    own = [variables.new(1) for _ in levels]
    for level, chosen in zip(levels.tolist(), own, strict=True):
        there = members[instance.option_level[members] == level]
        for table in np.unique(instance.table_of[there]):
            options = variables.option[there[instance.table_of[there] == table]]
            cp.add(variables.sum(options) <= variables.items[chosen])
        variables.derived.append((chosen, variables.option[there], np.ones(len(there), dtype=int)))
    cp.add_at_most_one([variables.items[v] for v in own])
