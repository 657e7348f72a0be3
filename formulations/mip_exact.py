"""Is a plan the best? Decided in integers, by branch and bound over the rows of a MIP model.

A solver's linear programs, in floating point, only say where to look and which multipliers to try.
With multipliers y ≥ 0, Σ y·(left-hand sides) ≤ Σ y·(right-hand sides) holds for every solution; if
the least left-hand side within a case's bounds exceeds the right-hand side in integers, the case
has no solution (Neumaier and Shcherbina, Safe bounds in linear and mixed-integer linear
programming, 2004). Bounds are tightened in integers too, and plans are judged by the check.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import pulp

from formulations.mip_model import MipModel, Row, placed
from formulations.result.check import check
from formulations.result.placement import Placement

#: Coefficients of all linear programs of one proof together: a few seconds.
MOST_COEFFICIENTS = 300_000
#: Multipliers are rounded to multiples of 2^−BITS per unit of a row.
BITS = 60
#: A value so near to an integer counts as one.
NEAR = 1e-6
#: A column that counts no shards is tightened only by this share of its range, so that it ends.
SHARE = 16

#: Least and largest value of each column.
Case = tuple[list[int], list[int]]


@dataclass(frozen=True, eq=False)
class Best:
    """The best plan, or None if there is none."""

    placement: Placement | None
    cost: int | None


def best_plan(
    model: MipModel, known: Placement | None, run: Callable[[pulp.LpProblem], object]
) -> Best | None:
    """The best plan of a small instance; None if it was not decided in so many steps.

    Parameters
    ----------
    model : MipModel
    known : Placement or None
        A plan to improve on.
    run : callable
        Solves a linear program of PuLP, and gives its variables and rows their values.
    """
    search = _Search(model, run)
    if known is not None:
        search.offer(known)
    return search.best if search.run() else None


class _Search:
    def __init__(self, model: MipModel, run: Callable[[pulp.LpProblem], object]) -> None:
        self._model, self._run, self._instance = model, run, model.instance
        self.best = Best(None, None)
        self._upper = [column.upper for column in model.columns]
        self._chosen = set(model.chosen.values())
        self._counts = self._chosen.union(*model.assignments.values())
        size = {v: abs(c) for v, c in model.cost.items()}
        unit = max([1, *(c * model.columns[v].scale for v, c in size.items())])
        self._rows = [*model.rows, Row(model.cost, model.most(size), unit)]  # cost at most that
        self._common = max(row.unit for row in self._rows)
        self._touched = defaultdict[int, list[int]](list)
        for index, row in enumerate(self._rows):
            for v in row.terms:
                self._touched[v].append(index)
        self._build()

    def _build(self) -> None:
        """The linear program: by how much must rows be broken, each relative to its unit?"""
        self._program = pulp.LpProblem("relaxed")
        self._excess = self._program.add_variable("excess", 0, None)
        self._variables = [
            self._program.add_variable(f"w{v}", 0, 1) for v in range(len(self._model.columns))
        ]
        self._constraints: list[pulp.LpConstraint] = []
        for row in self._rows:
            scales = [self._model.columns[v].scale for v in row.terms]
            terms = {
                self._variables[v]: c * scale / row.unit
                for (v, c), scale in zip(row.terms.items(), scales, strict=True)
            }
            left = pulp.LpAffineExpression({**terms, self._excess: -1.0})
            constraint = pulp.LpConstraint(left, pulp.LpConstraintLE, rhs=row.right / row.unit)
            self._program.addConstraint(constraint)
            self._constraints.append(constraint)
        self._program.setObjective(pulp.LpAffineExpression({self._excess: 1.0}))

    def offer(self, placement: Placement) -> bool:
        """Whether a plan is better than the best so far, which it then becomes."""
        verdict = check(self._instance, placement)
        cost = verdict.objectives.get(self._instance.objective.value)
        best = self.best.cost
        if not verdict.feasible or cost is None or (best is not None and cost >= best):
            return False
        self.best, row = Best(placement, cost), self._rows[-1]
        self._rows[-1] = Row(row.terms, cost - 1, row.unit)
        self._constraints[-1].changeRHS((cost - 1) / row.unit)
        return True

    def run(self) -> bool:
        """Search all cases; False if there were too many."""
        cases: list[tuple[Case, set[int]]] = [
            (([0] * len(self._upper), list(self._upper)), set(range(len(self._rows))))
        ]
        left = MOST_COEFFICIENTS
        size = sum(len(row.terms) for row in self._rows)
        while cases:
            case, changed = cases.pop()
            if not self._tightened(case, {*changed, len(self._rows) - 1}):
                continue
            low, high = case
            free = [v for v in self._counts if low[v] < high[v]]
            if not free:
                self._offer(low)
                continue
            left -= size
            if left < 0:
                return False
            values = self._relaxed(case)
            if values is None:
                continue
            cases += self._split(case, free, values)
        return True

    def _offer(self, values: list[int]) -> bool:
        plan = placed(self._model, values)
        return plan is not None and self.offer(plan)

    def _tightened(self, case: Case, todo: set[int]) -> bool:
        """Tighten bounds by rows that may have changed; False if one cannot hold."""
        low, high = case
        while todo:
            row = self._rows[todo.pop()]
            spare = row.right - sum(c * (low if c > 0 else high)[v] for v, c in row.terms.items())
            if spare < 0:
                return False
            for v, c in row.terms.items():
                more, span = spare // abs(c), high[v] - low[v]
                if more >= span or (v not in self._counts and (span - more) * SHARE < span):
                    continue
                if c > 0:
                    high[v] = low[v] + more
                else:
                    low[v] = high[v] - more
                todo.update(self._touched[v])
        return True

    def _relaxed(self, case: Case) -> list[float] | None:
        """Values in the linear program; None if its multipliers show that there is no plan."""
        for v, column in enumerate(self._model.columns):
            self._variables[v].lowBound = case[0][v] / column.scale
            self._variables[v].upBound = case[1][v] / column.scale
        self._run(self._program)
        if self._excluded(case, [-(row.pi or 0.0) for row in self._constraints]):
            return None
        return [
            column.scale * (variable.varValue or 0.0)
            for column, variable in zip(self._model.columns, self._variables, strict=True)
        ]

    def _excluded(self, case: Case, multipliers: list[float]) -> bool:
        """Whether a sum of rows, in integers, has no solution within the bounds of a case."""
        total, right = defaultdict[int, int](int), 0
        for row, y in zip(self._rows, multipliers, strict=True):
            times = int(y * 2**BITS) * self._common // row.unit if y > 0 else 0
            right += times * row.right
            for v, c in row.terms.items():
                total[v] += times * c
        low, high = case
        return sum(c * (low if c > 0 else high)[v] for v, c in total.items()) > right

    def _split(
        self, case: Case, free: list[int], values: list[float]
    ) -> list[tuple[Case, set[int]]]:
        """Two cases, the one that the linear program prefers last."""
        low, high = case
        within = {v: min(max(values[v], low[v]), high[v]) for v in free}
        broken = {v: abs(x - round(x)) for v, x in within.items()}
        v = max(free, key=lambda v: (broken[v] > NEAR, v in self._chosen, broken[v]))
        if broken[v] <= NEAR:
            self._offer([round(x) for x in values])
        at = min(int(within[v] + NEAR), high[v] - 1)  # low … at, at + 1 … high
        below: Case = ([*low], [*high])
        above: Case = ([*low], [*high])
        below[1][v], above[0][v] = at, at + 1
        rows = set(self._touched[v])
        pair = [(above, rows), (below, rows)]
        return pair if within[v] - at < 0.5 else pair[::-1]
