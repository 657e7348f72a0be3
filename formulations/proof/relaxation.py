"""The linear program over the rows of a proof: bounds at a node, and multipliers from its duals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.classes import Classes, classes_of
from formulations.instance import IntArray, Objective
from formulations.proof.rows import Rows
from formulations.proof.weights import Weights, weights

FloatArray = NDArray[np.float64]
#: Bits of a multiplier; in a scaled row, multipliers below this share of the largest are dropped as
#: rounding noise.
_BITS, _NOISE = 44, 1e-11


@dataclass(frozen=True, eq=False)
class Solved:
    """The result of the linear program at a node.

    Attributes
    ----------
    value : float
        Its optimum; inf when it is infeasible, -inf when it was not solved in time.
    shares : float array [choices] or None
        Values of the options, then of the choices of slots; None when it is infeasible.
    duals : float array [rows of the program] or None
        Dual values, or a Farkas ray where it is infeasible. The duals of a program that was
        stopped early prove a little less.
    basis : highspy.HighsBasis or None
    """

    value: float
    shares: FloatArray | None
    duals: FloatArray | None
    basis: Any = None


class Relaxation:
    """One HiGHS model, reused at every node with other limits on its columns.

    Parameters
    ----------
    rows : Rows
    typical : int
        About the size of the objective, by which costs are scaled.
    alike : bool
        Whether equal tables are one. Its optimum is the same where limits do not tell them apart.
    """

    def __init__(self, rows: Rows, typical: int, alike: bool = False) -> None:
        self._rows = rows
        self._unit = float(max(1, abs(typical)))
        self._matrix = _Matrix(rows, self._unit, alike)
        self._highs = self._matrix.load()
        self._upper = self._matrix.upper.copy()

    def restart(self, solved: Solved) -> None:
        """Start the next solves from the basis of an earlier, similar linear program."""
        if solved.basis is not None:
            self._highs.setBasis(solved.basis)

    def solve(self, upper: FloatArray, seconds: float) -> Solved | None:
        """Solve with new upper limits of the choices, from the last basis.

        Parameters
        ----------
        upper : float array [choices]
            0 for what a node rules out.
        seconds : float

        Returns
        -------
        Solved or None
            None when the time ended before there was any result.
        """
        highs, upper = self._highs, self._matrix.summed(upper)
        changed = np.flatnonzero(upper != self._upper[: len(upper)]).astype(np.int32)
        if len(changed):
            highs.changeColsBounds(len(changed), changed, np.zeros(len(changed)), upper[changed])
            self._upper[changed] = upper[changed]
        highs.setOptionValue("time_limit", highs.getRunTime() + max(0.05, seconds))
        highs.run()
        return self._answer()

    def _answer(self) -> Solved | None:
        import highspy

        highs, status = self._highs, self._highs.getModelStatus()
        ends = highspy.HighsModelStatus
        solution, finished = highs.getSolution(), status == ends.kOptimal
        cut_short = status in (ends.kTimeLimit, ends.kIterationLimit) and solution.dual_valid
        if finished or cut_short:
            value = highs.getInfo().objective_function_value * self._unit
            value = value if finished else float("-inf")
            shares = self._matrix.spread(np.asarray(solution.col_value))
            return Solved(value, shares, -np.asarray(solution.row_dual), highs.getBasis())
        if status == highspy.HighsModelStatus.kInfeasible:
            ray = highs.getDualRay()
            found = np.asarray(ray[-1]) if len(ray) > 1 and ray[1] else None
            return Solved(float("inf"), None, found)
        return None

    def vector(self, solved: Solved) -> Weights | None:
        """The duals (or the Farkas ray) of a linear program as multipliers in integers."""
        if solved.duals is None:
            return None
        duals, optimal = solved.duals, solved.shares is not None
        unit = self._unit if optimal else 1.0
        matrix = self._matrix
        known = matrix.proof_row >= 0
        scaled = np.where(known, duals, 0.0)
        if not optimal and -scaled.min(initial=0.0) > scaled.max(initial=0.0):
            scaled = -scaled  # a ray comes with either sign; multipliers must be ≥ 0
        scaled = np.maximum(0.0, scaled)
        scaled[scaled < _NOISE * scaled.max(initial=0.0)] = 0.0
        at = np.flatnonzero(scaled)
        if not len(at):  # nothing binds, so the bound is 0
            return weights(self._rows, {self._rows.layout.cost: 1}) if optimal else None
        rows, natural = matrix.of_each(at, scaled[at] * unit / matrix.row_unit[at])
        bits = _BITS - int(np.floor(np.log2(natural.max())))
        if optimal:
            bits = max(bits, _BITS)
        bits += int(max(0.0, np.log2(natural.max() / natural.min()) - _BITS / 2))
        factor = 2**bits if bits >= 0 else 1
        whole = {
            row: _scaled(n, factor) for row, n in zip(rows.tolist(), natural.tolist(), strict=True)
        }
        return weights(self._rows, {row: n for row, n in whole.items() if n})


def _scaled(value: float, factor: int) -> int:
    """value·factor rounded, exactly also where the factor is large."""
    numerator, denominator = value.as_integer_ratio()
    return (2 * numerator * factor + denominator) // (2 * denominator)


class _Matrix:
    """The rows as a sparse matrix whose columns are the choices, then covers, peaks and levels.

    Equal tables may be one, with the choices and the rows of the first of them: a column is then
    the sum of theirs, and a row the mean. That loses nothing, because the mean of a solution over
    equal tables is a solution.
    """

    def __init__(self, rows: Rows, unit: float, alike: bool) -> None:
        self._rows, self._unit = rows, unit
        self._column: list[IntArray] = []
        self._value: list[FloatArray] = []
        self._low: list[float] = []
        self._high: list[float] = []
        self._proof_row: list[int] = []
        self._row_unit: list[float] = []
        every = Classes(list(np.arange(rows.instance.num_tables)[:, None]))
        self._classes = classes_of(rows.instance) if alike else every
        width = rows.measures.value.shape[1]
        self._number_choices()
        self._peak_at = self._cover_at + rows.sets * width
        total = rows.instance.objective == Objective.TOTAL
        self._peaks = 1 if total else len(rows.measures.costs)
        self.columns = self._peak_at + self._peaks
        self._order()
        self._costs()
        self._resources()
        self._covers()
        self._tables()
        self._slots()
        levels = self._fusion()
        self.proof_row = np.asarray(self._proof_row)
        self.row_unit = np.asarray(self._row_unit)
        limits = np.ones(len(rows.start) - 1)
        limits[rows.instance.num_options :] = np.repeat(rows.slot_times, np.diff(rows.slot_start))
        rest = np.full(self.columns + levels - self._cover_at, np.inf)
        self.upper = np.concatenate([self.summed(limits), rest])

    def _number_choices(self) -> None:
        """Number the columns of choices, those of a class's first table only."""
        rows, own, classes = self._rows, self._choices_of, self._classes
        self._times = classes.times.astype(np.float64)
        leads = np.concatenate([np.zeros(0, np.int64), *map(own, classes.leads.tolist())])
        leads, self._cover_at = np.sort(leads), len(leads)
        self._of = np.full(len(rows.start) - 1, -1)
        self._of[leads] = np.arange(len(leads))
        self._leads = self._of >= 0
        for first, *others in classes.members:
            for table in others:
                self._of[own(table)] = self._of[own(first)]

    def _choices_of(self, table: int) -> IntArray:
        """The choices of a table: its options, then the places of its slots."""
        rows, options = self._rows, self._rows.instance.options_of(table)
        slots = np.searchsorted(rows.slot_option, [options.start, options.stop])
        first, last = rows.slot_start[slots].tolist()
        return np.concatenate([np.arange(options.start, options.stop), np.arange(first, last)])

    def summed(self, upper: FloatArray) -> FloatArray:
        """Limits of choices as those of columns."""
        return np.asarray(np.bincount(self._of, upper, self._cover_at), dtype=np.float64)

    def spread(self, value: FloatArray) -> FloatArray:
        """Values of columns as those of choices: of equal tables the first take the first options,
        so that most of them take whole ones."""
        shares = value[self._of]
        options_of = self._rows.instance.options_of
        for tables in self._classes.members:
            ends = np.append(0.0, np.cumsum(shares[options_of(tables[0])]))
            for at, table in enumerate(tables.tolist() if len(tables) > 1 else []):
                own = np.minimum(ends[1:], at + 1) - np.maximum(ends[:-1], at)
                shares[options_of(table)] = np.maximum(0.0, own)
        return shares

    def of_each(self, at: IntArray, values: FloatArray) -> tuple[IntArray, FloatArray]:
        """Proof rows that some rows of the matrix stand for, and what each has of their values."""
        found, parts = list[int](), list[float]()
        classes = {int(tables[0]): tables.tolist() for tables in self._classes.members}
        for row, value in zip(self.proof_row[at].tolist(), values.tolist(), strict=True):
            every = self._rows_of_each(row, classes)
            found += every
            parts += [value / len(every)] * len(every)
        return np.asarray(found, dtype=np.int64), np.asarray(parts)

    def _rows_of_each(self, row: int, classes: dict[int, list[int]]) -> list[int]:
        """The rows that are what a row is for the first table of a class, one for each of its
        tables; the row alone where it is about no table."""
        layout, fused = self._rows.layout, self._rows.fused
        if layout.chief <= row < layout.moved_tables:
            first = self._table_of(row)
            return [row - first + table for table in classes[first]]
        if row >= layout.fusion:
            first, group, level = fused[row - layout.fusion]
            return [layout.fusion + fused.index((t, group, level)) for t in classes[first]]
        return [row]

    def _table_of(self, row: int) -> int:
        """The table whose largest shard a row is about."""
        return (row - self._rows.layout.chief) % self._rows.instance.num_tables

    def _order(self) -> None:
        """Terms sorted by row, so that a row is a slice."""
        rows = self._rows
        owner = np.repeat(np.arange(len(rows.start) - 1), np.diff(rows.start))
        led = self._leads[owner]
        order = np.argsort(rows.row[led], kind="stable")
        self._sorted_row = rows.row[led][order]
        self._owner = self._of[owner[led][order]]
        self._amount = rows.amount[led][order].astype(np.float64)

    def _terms(self, row: int) -> tuple[IntArray, FloatArray]:
        low, high = np.searchsorted(self._sorted_row, [row, row + 1])
        return self._owner[low:high], self._amount[low:high]

    def _add(
        self, columns: Any, values: Any, limits: tuple[float, float], proof_row: int = -1,
        unit: float = 1.0,
    ) -> None:  # fmt: skip
        self._column.append(np.asarray(columns, dtype=np.int64))
        self._value.append(np.asarray(values, dtype=np.float64))
        self._low.append(limits[0])
        self._high.append(limits[1])
        self._proof_row.append(proof_row)
        self._row_unit.append(unit)

    def _costs(self) -> None:
        rows, layout, none = self._rows, self._rows.layout, -np.inf
        if rows.instance.objective == Objective.TOTAL:
            columns, values = self._terms(layout.cost)
            values = np.append(values / self._unit, -1)
            self._add(np.append(columns, self._peak_at), values, (none, 0), layout.cost, self._unit)
            return
        for f in range(len(rows.measures.costs)):
            for cell in range(rows.cells.count):
                row = layout.cost + f * rows.cells.count + cell
                unit = self._unit * int(rows.cells.cell_size[cell])
                columns, values = self._terms(row)
                self._add(
                    np.append(columns, self._peak_at + f), np.append(values / unit, -1),
                    (none, float(rows.capacity[row]) / unit), row, unit,
                )  # fmt: skip

    def _resources(self) -> None:
        rows, layout, instance = self._rows, self._rows.layout, self._rows.instance
        limited = list(range(layout.resource[0], layout.cover)) if layout.resource else []
        if instance.max_moved_tables is not None:
            limited.append(layout.moved_tables)
        if instance.max_moved_bytes is not None:
            limited.append(layout.moved_bytes)
        for row in limited:
            columns, values = self._terms(row)
            unit = float(max(1, rows.capacity[row]))
            if len(columns):
                high = float(rows.capacity[row]) / unit
                self._add(columns, values / unit, (-np.inf, high), row, unit)

    def _covers(self) -> None:
        rows, layout = self._rows, self._rows.layout
        width, costs = rows.measures.value.shape[1], len(rows.measures.costs)
        tables = rows.instance.num_tables
        first, last = np.searchsorted(self._sorted_row, [layout.chief, layout.moved_tables])
        chiefs = np.unique(self._sorted_row[first:last])
        for index in range(rows.sets):
            for f in range(width):
                base, place = self._cover_at + index * width + f, index * width + f
                peak = self._peak_at + f if f < costs else -1
                most = float(max(1, rows.capacity[layout.chief + place * tables])) if tables else 1
                unit = self._unit if f < costs else most
                columns, values = self._terms(layout.cover + place)
                self._add(np.append(columns, base), np.append(values / unit, -1), (0, 0))
                low, high = layout.chief + place * tables, layout.chief + (place + 1) * tables
                for row in chiefs[(chiefs >= low) & (chiefs < high)].tolist():
                    self._chief(row, base, peak, unit)

    def _chief(self, row: int, base: int, peak: int, unit: float) -> None:
        columns, values = self._terms(row)
        values = values / self._times[self._table_of(row)]
        columns, values = np.append(columns, base), np.append(values / unit, 1)
        high = float(self._rows.capacity[row]) / unit
        if peak >= 0:
            columns, values = np.append(columns, peak), np.append(values, -1)
        self._add(columns, values, (-np.inf, high), row, unit)

    def _tables(self) -> None:
        instance = self._rows.instance
        for table in np.flatnonzero(self._times).tolist():
            options, times = instance.options_of(table), self._times[table]
            self._add(self._of[options], np.ones(len(options)), (times, times))

    def _slots(self) -> None:
        rows = self._rows
        for slot in np.flatnonzero(self._leads[rows.slot_option]).tolist():
            choices = np.arange(rows.slot_start[slot], rows.slot_start[slot + 1])
            times = float(rows.slot_times[slot])
            self._add(
                self._of[np.append(choices, rows.slot_option[slot])],
                np.append(np.ones(len(choices)), -times), (0, 0),
            )  # fmt: skip

    def _fusion(self) -> int:
        """Add rows that tie options to levels, one per group; returns the number of levels."""
        levels = {key: i for i, key in enumerate(sorted({f[1:] for f in self._rows.fused}))}
        for index, (table, group, level) in enumerate(self._rows.fused):
            if not self._times[table]:
                continue
            row = self._rows.layout.fusion + index
            options, ones = self._terms(row)
            ones = ones / self._times[table]
            column = self.columns + levels[group, level]
            self._add(np.append(options, column), np.append(ones, -1), (-np.inf, 0), row)
        for wanted in {group for group, _ in levels}:
            columns = [self.columns + i for (group, _), i in levels.items() if group == wanted]
            self._add(columns, np.ones(len(columns)), (-np.inf, 1))
        return len(levels)

    def load(self) -> Any:
        """A HiGHS object that holds the model."""
        import highspy

        highs = highspy.Highs()
        for name, value in (("output_flag", False), ("parallel", "off"), ("presolve", "off"),
                            ("solver", "simplex")):  # fmt: skip
            highs.setOptionValue(name, value)
        count = len(self.upper)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = count, len(self._low)
        cost, low = np.zeros(count), np.zeros(count)
        cost[self._peak_at : self._peak_at + self._peaks] = 1.0
        if self._rows.instance.objective == Objective.TOTAL:
            low[self._peak_at] = -np.inf
        lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, low, self.upper
        lp.row_lower_, lp.row_upper_ = np.asarray(self._low), np.asarray(self._high)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lengths = [len(c) for c in self._column]
        lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        lp.a_matrix_.index_ = np.concatenate(self._column).astype(np.int32)
        lp.a_matrix_.value_ = np.concatenate(self._value)
        highs.passModel(lp)
        return highs
