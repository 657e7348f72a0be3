"""From variable values to a Placement and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from formulations.check import moved_bytes, moved_tables
from formulations.cpsat_model.loads import Row
from formulations.cpsat_model.objective import Goal
from formulations.cpsat_model.variables import Variables
from formulations.instance import BlockView, IntArray, Where
from formulations.placement import Placement, fixed_ranks, machine_ranks

Value = Callable[[int], int]


def extract(variables: Variables, value: Value) -> Placement:
    """Read the placement off a solution; ``value`` maps a variable's index to its integer."""
    instance = variables.instance
    options, ranks = [], []
    for table in range(instance.num_tables):
        option = next(
            o
            for o in instance.options_of(table)
            if variables.option[o] >= 0 and value(int(variables.option[o]))
        )
        options.append(option)
        ranks.append([_block_ranks(variables, b, value) for b in instance.blocks_of(option)])
    return Placement(np.asarray(options, dtype=np.int64), ranks)


def _block_ranks(variables: Variables, index: int, value: Value) -> IntArray:
    fixed = fixed_ranks(variables.instance, index)
    if fixed is not None:
        return fixed
    block = variables.instance.block(index)
    if block.where == Where.ONE_MACHINE:
        machines = range(len(variables.instance.machines))
        taken = {m: variables.machines.get((index, m)) for m in machines}
        times = [m for m, v in taken.items() if v is not None for _ in range(value(v))]
        return machine_ranks(variables.instance, times)
    ranks = np.zeros(block.count, dtype=np.int64)
    for kind, positions in enumerate(variables.kinds[index]):
        ranks[positions] = [
            r
            for r in range(variables.instance.num_ranks)
            if (index, kind, r) in variables.shares
            for _ in range(value(variables.shares[index, kind, r]))
        ]
    return ranks


def values_of(variables: Variables, goal: Goal, placement: Placement) -> IntArray | None:
    """The value of every variable under a placement: a complete hint.

    Returns
    -------
    int64 array [variables], or None when the placement uses what the model has not.
    """
    values = np.zeros(len(variables.items), dtype=np.int64)
    for table, option in enumerate(placement.options.tolist()):
        if variables.option[option] < 0:
            return None
        values[variables.option[option]] = 1
        for index, ranks in zip(
            variables.instance.blocks_of(option), placement.ranks[table], strict=True
        ):
            for var in _taken(variables, variables.instance.block(index), ranks):
                if var is None:
                    return None
                values[var] += 1
    _set_moves(variables, placement, values)
    _set_derived(variables, goal, values)
    return values


def _taken(variables: Variables, block: BlockView, ranks: IntArray) -> Iterator[int | None]:
    """Variables a placed block counts up, None for a place the model does not have."""
    instance = variables.instance
    if block.where == Where.ONE_MACHINE:
        starts = {m[0]: i for i, m in enumerate(instance.machines)}
        for rank in ranks.tolist():
            if rank in starts:
                yield variables.machines.get((block.index, starts[rank]))
    elif block.where in (Where.ANY_RANK, Where.ANY_RANK_OF_ONE_MACHINE):
        for kind, positions in enumerate(variables.kinds[block.index]):
            for rank in ranks[positions].tolist():
                yield variables.shares.get((block.index, kind, rank))
        if block.where == Where.ANY_RANK_OF_ONE_MACHINE:
            yield variables.machines.get((block.index, int(instance.machine_of[ranks[0]])))


def _set_moves(variables: Variables, placement: Placement, values: IntArray) -> None:
    moving = set(moved_tables(variables.instance, placement)) if variables.moved else set()
    for table, moved in variables.moved.items():
        values[moved] = table in moving
        if table in variables.moved_bytes:
            size = moved_bytes(variables.instance, placement, [table] if table in moving else [])
            values[variables.moved_bytes[table]] = size


def _set_derived(variables: Variables, goal: Goal, values: IntArray) -> None:
    for index, var, coef in variables.derived:
        values[index] = min(int(values[var] @ coef), variables.upper[index])
    for top in goal.tops:
        values[top.z] = max(evaluate(r, values) for r in top.rows)


def evaluate(row: Row, values: IntArray) -> int:
    """The value of a row without base."""
    return int(values[row.var] @ row.coef)


def goal_value(goal: Goal, values: IntArray) -> int:
    """The model's objective (scaled) at given values."""
    return sum(evaluate(r, values) for r in goal.parts)
