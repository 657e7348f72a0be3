"""Adding rows within CP-SAT's limits: equal rows once, what every rank carries as one integer."""

from __future__ import annotations

import math

import numpy as np
from ortools.sat.python import cp_model

from formulations.cpsat_model.loads import Row, most
from formulations.cpsat_model.variables import Variables
from formulations.errors import UnsupportedInstance
from formulations.instance import IntArray

#: Σ |coef| × range of a row must stay below 2^62 in CP-SAT; one bit is left for its own slack.
MAX_ROW = 2**61
#: A base of fewer terms is written out in every row: shorter than a variable of its own.
SHORT_BASE = 4


def activity(variables: Variables, var: IntArray, coef: IntArray) -> int:
    """Σ |coef| × upper bound, exact."""
    upper = variables.upper
    return sum(abs(int(c)) * upper[int(v)] for v, c in zip(var, coef, strict=True))


def add_at_most(variables: Variables, var: IntArray, coef: IntArray, limit: int) -> None:
    """Σ coef × var ≤ limit, divided by the common divisor only where the limits demand it.

    Raises
    ------
    UnsupportedInstance
        When the row exceeds CP-SAT's integers all the same.
    """
    if activity(variables, var, coef) + abs(limit) >= MAX_ROW:
        divisor = math.gcd(*[int(c) for c in coef])
        coef, limit = coef // divisor, limit // divisor
        if activity(variables, var, coef) + abs(limit) >= MAX_ROW:
            raise UnsupportedInstance(
                "a capacity row adds up beyond 2^61: use a coarser unit than bytes for it"
            )
    variables.cp.add(variables.weighted(var, coef) <= limit)


def with_base(variables: Variables, base: Row, rows: list[Row]) -> list[Row]:
    """Rows with their base resolved: into one shared integer, or written out where short.

    Returns
    -------
    list of Row
        With ``base`` 0.
    """
    users = sum(1 for r in rows if r.base)
    if not len(base.var) or not users:
        return [Row(0, r.var, r.coef) for r in rows]
    if users > 1 and len(base.var) > SHORT_BASE:
        common = add_sum(variables, base.var, base.coef, most(variables, base))
        base = Row(1, np.asarray([common]), np.asarray([1]))
    return [_resolved(base, r) for r in rows]


def add_sum(variables: Variables, var: IntArray, coef: IntArray, upper: int) -> int:
    """A new integer variable that equals Σ coef × var."""
    if activity(variables, var, coef) + upper >= MAX_ROW:
        raise UnsupportedInstance("a sum over all options exceeds 2^61: use a coarser unit")
    index = variables.new(max(upper, 0))
    variables.cp.add(variables.weighted(var, coef) == variables.items[index])
    variables.derived.append((index, var, coef))
    return index


def _resolved(base: Row, row: Row) -> Row:
    """``row`` with base × its multiplier added, equal variables merged."""
    var = np.concatenate([row.var, base.var])
    coef = np.concatenate([row.coef, base.coef * row.base])
    unique, inverse = np.unique(var, return_inverse=True)
    total = np.zeros(len(unique), dtype=np.int64)
    np.add.at(total, inverse, coef)
    keep = total != 0
    return Row(0, unique[keep], total[keep])


def expression(variables: Variables, row: Row) -> cp_model.LinearExprT:
    """A row without base as a CP-SAT expression."""
    return variables.weighted(row.var, row.coef)
