"""Scenarios that differ only in how much memory there is.

A plan for less memory is a plan for more, at the same cost, and a bound for more memory is a bound
for less. Results say which scenarios are alike otherwise: their ``shape`` is equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from formulations import Instance
from formulations.instance import Objective
from milp_planner.features.plan.cache import digest_of

Axes = Mapping[str, Any]
#: Axes that only change how much memory is left: 1 where a larger value leaves more, else −1.
MEMORY = {
    "hbm": 1, "ddr": 1, "outside_embeddings": -1, "hbm_percent": -1, "min_headroom": -1,
    "fragmentation": -1, "dense_parameter_bytes": -1, "dense_multiple": -1, "activations": -1,
    "kjt_multiple": -1, "hbm_bytes": -1, "ddr_percent": -1, "ddr_bytes": -1,
}  # fmt: skip


def without_memory(axes: Axes) -> dict[str, Any]:
    """The other axes."""
    return {name: value for name, value in axes.items() if name not in MEMORY}


def leaves_as_much(more: Axes, less: Axes) -> bool:
    """Whether no memory is smaller on the first of two points, which are otherwise equal."""
    if without_memory(more) != without_memory(less) or more.keys() != less.keys():
        return False
    return all(
        sign * Fraction(str(more[name])) >= sign * Fraction(str(less[name]))
        for name, sign in MEMORY.items()
        if name in more
    )


def shape_of(instance: Instance) -> str:
    """A digest of all but memory and objective: which plans there are, and what they cost."""
    bare = replace(
        instance,
        resources=(),
        shard_use=instance.shard_use[:, :0],
        objective=Objective.TOTAL,
    )
    return digest_of(bare)
