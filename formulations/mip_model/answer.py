"""Round a solver's floating-point values to a placement."""

from __future__ import annotations

import numpy as np

from formulations.instance import Instance, IntArray, Where
from formulations.mip_model.model import MipModel
from formulations.result.placement import Placement, fixed_ranks, machine_ranks


def rounded(model: MipModel) -> Placement | None:
    """The nearest placement, or None where the values do not name one (a broken answer)."""
    instance = model.instance
    options, ranks = [], []
    for table in range(instance.num_tables):
        named = [o for o in instance.options_of(table) if o in model.chosen]
        option = max(named, key=lambda o: _value(model.chosen[o]))
        blocks = [_block(model, instance, b) for b in instance.blocks_of(option)]
        if any(b is None for b in blocks):
            return None
        options.append(option)
        ranks.append([b for b in blocks if b is not None])
    return Placement(np.asarray(options, dtype=np.int64), ranks)


def _value(variable: object) -> float:
    return float(getattr(variable, "varValue", None) or 0.0)


def _block(model: MipModel, instance: Instance, index: int) -> IntArray | None:
    fixed = fixed_ranks(instance, index)
    if fixed is not None:
        return fixed
    block = instance.block(index)
    if block.where == Where.ONE_MACHINE:
        machines = [
            m
            for m in range(len(instance.machines))
            if (index, m) in model.on_machine
            for _ in range(round(_value(model.on_machine[index, m])))
        ]
        return machine_ranks(instance, machines) if len(machines) == block.count else None
    found: list[int] = []
    for position in range(1 if block.shared else block.count):
        for rank in range(instance.num_ranks):
            if (index, position, rank) in model.on_rank:
                times = round(_value(model.on_rank[index, position, rank]))
                found.extend([rank] * times)
    return np.asarray(found, dtype=np.int64) if len(found) == block.count else None
