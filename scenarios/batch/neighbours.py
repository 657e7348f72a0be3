"""Scenarios that differ only in how much memory there is.

A plan for less memory is a plan for more, at the same cost, and a bound for more memory is a bound
for less. Results say which scenarios are alike otherwise: their ``shape`` is equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

from formulations import Instance
from formulations.instance import Objective
from milp_planner.features.plan.cache import digest_of
from milp_planner.inputs.changes import whole_path
from milp_planner.inputs.quantities import parse_bytes

Axes = Mapping[str, Any]
#: Axes that only change how much memory is left: 1 where a larger value leaves more, else −1.
MEMORY = {
    "hbm": 1, "ddr": 1, "outside_embeddings": -1, "hbm_percent": -1, "min_headroom": -1,
    "fragmentation": -1, "dense_parameter_bytes": -1, "dense_multiple": -1, "activations": -1,
    "kjt_multiple": -1, "hbm_bytes": -1, "ddr_percent": -1, "ddr_bytes": -1,
}  # fmt: skip


def without_memory(axes: Axes) -> dict[str, Any]:
    """The other axes."""
    return {name: value for name, value in axes.items() if not _sign(name)}


def leaves_as_much(more: Axes, less: Axes) -> bool:
    """Whether no memory is smaller on the first of two points, which are otherwise equal."""
    if without_memory(more) != without_memory(less) or more.keys() != less.keys():
        return False
    return all(_as_much(_sign(name), more[name], less[name]) for name in more)


def _as_much(sign: int, more: Any, less: Any) -> bool:
    """Whether a value leaves as much as another; changes such as ``+10GB`` do only if equal."""
    if more == less or not sign:
        return True
    one, other = _amount(more), _amount(less)
    return one is not None and other is not None and sign * one >= sign * other


def _amount(value: Any) -> Fraction | None:
    """A number, percentage or size; None for anything else."""
    for read in (lambda text: Fraction(text.removesuffix("%")), parse_bytes):
        with suppress(ValueError):
            return Fraction(read(str(value)))
    return None


@cache
def _sign(axis: str) -> int:
    """That of an axis in :data:`MEMORY`, or of a path to the same field; 0 if it is none."""
    if "." not in axis:
        return MEMORY.get(axis, 0)
    whole = whole_path(axis)
    return next((sign for name, sign in MEMORY.items() if whole_path(name) == whole), 0)


def shape_of(instance: Instance) -> str:
    """A digest of all but memory and objective: which plans there are, and what they cost."""
    bare = replace(
        instance,
        resources=(),
        shard_use=instance.shard_use[:, :0],
        objective=Objective.TOTAL,
    )
    return digest_of(bare)
