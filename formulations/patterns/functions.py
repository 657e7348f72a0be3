"""The linear program over dual-feasible functions inside a box of peaks.

Options are taken in parts; loads and memory are pooled. Where the shares of options make the shards
of some function add up to more than all ranks hold, a row of that function is added. The duals, as
integers, are a row of a certificate.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import mul
from typing import NamedTuple

import numpy as np

from formulations.classes import classes_left
from formulations.instance import Instance, IntArray, Scope
from formulations.instance.facts import per_option, total_use
from formulations.patterns.found import Floats, Mask
from formulations.proof.functions import FAMILIES, Function, FunctionRow, Loads
from formulations.proof.peaks import Heights

#: Multiplier of floors and heights, with which all others are integers.
TIMES = 2**40
#: Shares of the loads in a mixed size are multiples of about one in so many.
_FINE = 16
#: Numbers of steps, and small sizes as shares of a bin, that are tried everywhere. Beside them,
#: sizes of the shards themselves are tried, down to one in so many of a bin.
_STEPS = np.arange(2, 65)
_SMALL = np.asarray([0.1, 0.12, 0.15, 0.17, 0.2, 0.21, 0.25, 0.26, 0.3, 0.34, 0.35, 0.4, 0.45, 0.5])
_SMALLEST = 12
_PARTS = 2
#: Rounds of cuts, functions added in one, and of one mix; the least cut, as a share of the ranks;
#: a round that raises the bound by less than this share of the plan's cost is the last.
_ROUNDS, _ADDED, _OF_MIX, _CUT, _WORTH = 6, 8, 2, 1e-4, 2e-5
#: Duals below this are none.
_NOTHING = 1e-9
#: Units of work for each simplex iteration and column, and for each round.
_PER_ITERATION, _PER_ROUND = 2e-7, 4e-3


class Shape(NamedTuple):
    """A function for bins of any size: its small size is a share of the bin, and its size a mix of
    loads, each a share of its own limit."""

    name: str
    parameter: float
    mix: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Cut:
    """What the program of a box proves.

    Attributes
    ----------
    row : FunctionRow
    memory : list of int
        Multiplier of each resource's capacities.
    bound : int
        No plan in the box costs less.
    steps : int
        About the checker's steps.
    """

    row: FunctionRow
    memory: list[int]
    bound: int
    steps: int


@dataclass(frozen=True, eq=False)
class Fraction:
    """The solution of the program of a box.

    Attributes
    ----------
    cut : Cut
    keep : bool array [options]
        The options that the cut does not exclude.
    shares : float array [options]
    shapes : list of Shape
        The functions whose rows bind.
    """

    cut: Cut
    keep: Mask
    shares: Floats
    shapes: list[Shape]


class FunctionProgram:
    """The programs of all boxes of an instance.

    Attributes
    ----------
    work : float
        Units of work spent so far.
    """

    def __init__(self, instance: Instance, loads: Loads, upper: int) -> None:
        self._instance, self._loads, self._unit = instance, loads, max(1.0, upper / 1000)
        number = loads.number[:, None]
        sums = per_option(instance, loads.own[:, :2] * number) / self._unit
        # where ranks are alike, the sum of the capacities is that of a function: a threshold of 1
        pooled = [
            i for i, r in enumerate(instance.resources)
            if r.scope != Scope.RANK or len(set(r.capacity.tolist())) > 1
        ]  # fmt: skip
        self._pooled = pooled
        self._capacity = [int(instance.resources[i].capacity.sum()) for i in pooled]
        self._use = total_use(instance)[:, pooled]
        use = self._use / np.maximum(1, self._capacity)
        self._columns = np.concatenate([np.ones((len(sums), 1)), sums, use], axis=1)
        count = len(loads.capacity)
        self._mixes: list[tuple[float, ...]] = [
            (a / _PARTS, b / _PARTS, *[(_PARTS - a - b) / _PARTS * (i == j) for j in range(count)])
            for i in range(max(1, count))
            for a in range(_PARTS + 1)
            for b in range(_PARTS + 1 - a)
            if (i == 0 or a + b < _PARTS) and (count or a + b == _PARTS)
        ]
        if not loads.second:
            self._mixes = [mix for mix in self._mixes if not mix[1]]
        alone = [mix for mix in self._mixes if max(mix[2:], default=0.0) == 1.0]
        self._sums = [Shape("threshold", 0.0, mix) for mix in alone]
        self.work = 0.0

    def solve(self, keep: Mask, box: Heights, upper: int, known: list[Shape]) -> Fraction:
        """The best bound in a box.

        Parameters
        ----------
        keep : bool array [options]
        box : Heights
        upper : int
            The cost of a plan; higher bounds are as good as this.
        known : list of Shape
            Functions to begin with.
        """
        bins = (box.high, box.top)
        keep = keep & self._loads.fits(bins)
        ends = self._instance.table_options
        start = ends[:-1]
        if not np.logical_or.reduceat(keep, start).all():
            row = FunctionRow(self._loads, bins, (0, 0), TIMES, [])
            return Fraction(
                Cut(row, [0] * len(self._instance.resources), upper, len(keep)),
                keep,
                np.zeros(len(keep)),
                [],
            )
        classes = classes_left(self._instance, keep)
        own = keep & np.isin(self._instance.table_of, classes.leads)
        program = _Program(self, np.flatnonzero(own), classes.times, box)
        value = -1.0
        program.add([*self._sums, *known])
        for turn in range(_ROUNDS):
            before, value = value, program.run() * self._unit
            self.work += program.work
            if value >= upper or value - before < _WORTH * upper or turn == _ROUNDS - 1:
                break
            if not program.add(self._violated(program)):
                break
        cut, left = self._cut(program, box, upper)
        shares = np.zeros(len(keep))
        shares[program.options] = program.shares / program.times
        own[program.options] = left
        lead = classes.leads[classes.of]  # whose options stand for those of a table
        same = np.arange(len(keep)) + np.repeat(start[lead] - start, np.diff(ends))
        return Fraction(cut, own[same], shares[same], program.binding())

    def sized(self, mix: tuple[float, ...], bins: tuple[int, int]) -> tuple[tuple[int, ...], int]:
        """Multipliers of the loads in a mix, and the size of the bin."""
        full = [*bins, *self._loads.capacity]
        if sum(share > 0 for share in mix) == 1:
            sizes = [int(share > 0) for share in mix]
        else:
            top = _FINE * max(full)
            sizes = [
                max(1, round(share * top / size)) if share and size else 0
                for share, size in zip(mix, full, strict=True)
            ]
        return tuple(sizes), sum(map(mul, sizes, full))

    def function(self, shape: Shape, bins: tuple[int, int]) -> tuple[Function, int]:
        """A function for these bins, and the size of its bin."""
        sizes, full = self.sized(shape.mix, bins)
        steps = shape.name == "steps"
        parameter = max(1, int(shape.parameter if steps else shape.parameter * full))
        if shape.name == "threshold":
            parameter = max(1, min(parameter, full // 2))
        return Function(shape.name, parameter, sizes), full

    def _violated(self, program: _Program) -> list[Shape]:
        """The functions whose rows the program's shares violate the most."""
        weight = program.shares[program.of] * program.number
        held = weight > _NOTHING
        own, weight, found = program.own[held], weight[held], list[tuple[float, Shape]]()
        ranks = self._loads.ranks
        for mix in self._mixes:
            sizes, full = self.sized(mix, program.bins)
            size, same = np.unique(own @ np.asarray(sizes), return_inverse=True)
            sums = np.bincount(same, weight)
            best = []
            for name, tried in _tried(size[size > 0], full).items():
                one = FAMILIES[name](size, full, tried[:, None]) @ sums
                most = FAMILIES[name](np.asarray(full), full, tried)
                above = one / np.maximum(1, most) - ranks
                for at in np.argsort(-above)[:_OF_MIX].tolist():
                    share = tried[at] if name == "steps" else (tried[at] + 0.5) / max(1, full)
                    if above[at] > _CUT * ranks:
                        best.append((float(above[at]), Shape(name, float(share), mix)))
            found += sorted(best, reverse=True)[:_OF_MIX]
        return [shape for _, shape in sorted(found, reverse=True)]

    def _cut(self, program: _Program, box: Heights, upper: int) -> tuple[Cut, Mask]:
        """The duals as integers, what they prove, and which options they do not exclude."""
        each, held, functions = program.duals()
        scale = TIMES * self._unit
        whole = [int(m * scale / max(1, c)) for m, c in zip(held, self._capacity, strict=True)]
        times = [(f, int(w * scale / max(1, f.most(full)))) for f, full, w in functions]
        loads = round(each[0] * TIMES), round(each[1] * TIMES)
        row = FunctionRow(self._loads, program.bins, loads, TIMES, [t for t in times if t[1]])
        prices = row.prices(program.options)
        for m, use in zip(whole, self._use[program.options].T, strict=True):
            prices = prices + m * use.astype(object) if m else prices
        starts = np.flatnonzero(np.diff(program.table, prepend=-1))
        least = np.minimum.reduceat(prices, starts)
        total = int((least * program.times[starts]).sum())
        right = row.right(box) + sum(map(mul, whole, self._capacity))
        forced = prices + total - np.repeat(least, np.diff(np.append(starts, len(prices))))
        left = (forced <= right + TIMES * (upper - 1)).astype(bool)
        steps = 4 * len(prices) + len(program.own) * (1 + len(times))
        memory = dict(zip(self._pooled, whole, strict=True))
        written = [memory.get(i, 0) for i in range(len(self._instance.resources))]
        return Cut(row, written, -((right - total) // TIMES), steps), left


class _Program:
    """The linear program of one box, in units of costs and of capacities. An option stands for
    those of all tables of its class: its share counts the tables that take it."""

    def __init__(
        self, parent: FunctionProgram, options: IntArray, times: IntArray, box: Heights
    ) -> None:
        import highspy

        self._parent, self.options = parent, options
        self._infinity, self.bins = highspy.kHighsInf, (box.high, box.top)
        loads, unit = parent._loads, parent._unit
        self._ranks = float(loads.ranks)
        entries, self.of = loads.entries(options)
        self.own, self.number = loads.own[entries], loads.number[entries]
        self.table = parent._instance.table_of[options]
        self.times = times[self.table]
        tables, place = np.unique(self.table, return_inverse=True)
        self._tables = len(tables)
        self._shapes: list[tuple[Shape, Function, int]] = []
        self._lp = lp = highspy.Highs()
        lp.setOptionValue("output_flag", False)
        columns = parent._columns[options]
        width = columns.shape[1]
        rows = np.tile(np.arange(self._tables - 1, self._tables - 1 + width), (len(options), 1))
        rows[:, 0] = place
        some = columns != 0
        ends = np.concatenate([[0], np.cumsum(some.sum(axis=1))])
        each = times[tables].astype(float).tolist()
        lower = each + [-self._infinity] * (width - 1)
        limits = each + [0.0, 0.0] + [1.0] * (width - 3)
        empty = np.zeros(0, dtype=np.int32), np.zeros(0)
        for low, high in zip(lower, limits, strict=True):
            lp.addRow(low, high, 0, *empty)
        lp.addCols(
            len(options), loads.floor[options] / unit, np.zeros(len(options)),
            np.full(len(options), self._infinity), int(ends[-1]), ends[:-1].astype(np.int32),
            rows[some].astype(np.int32), columns[some],
        )  # fmt: skip
        # where a box has no plan, prices grow without limit; the plan's cost is more than enough
        self._enough = 1000 * self._ranks
        for at, (low, high) in enumerate([(box.low, box.high), (box.base, box.top)], self._tables):
            self._add_column(1.0, low / unit, high / unit, at, -self._ranks)
        for at in range(self._tables, self._tables + width - 1):
            self._add_column(self._enough, 0.0, self._infinity, at, -1.0)

    def _add_column(self, cost: float, low: float, high: float, row: int, value: float) -> None:
        self._lp.addCol(cost, low, high, 1, np.asarray([row], dtype=np.int32), np.asarray([value]))

    def add(self, shapes: list[Shape]) -> int:
        """Add rows of functions that are new, and not too many; their number."""
        known, count = {f for _, f, _ in self._shapes}, 0
        for shape in shapes:
            function, full = self._parent.function(shape, self.bins)
            most = function.most(full)
            if function in known or not most or count == _ADDED:
                continue
            value = function.values(self.own, full) * self.number / most
            sums = np.bincount(self.of, value, len(self.options))
            index = np.flatnonzero(sums).astype(np.int32)
            self._lp.addRow(-self._infinity, self._ranks, len(index), index, sums[index])
            self._add_column(self._enough, 0.0, self._infinity, self._lp.getNumRow() - 1, -1.0)
            self._shapes.append((shape, function, full))
            count += 1
        return count

    def run(self) -> float:
        """Solve it; its value."""
        self._lp.run()
        solution, info = self._lp.getSolution(), self._lp.getInfo()
        self.shares = np.asarray(solution.col_value)[: len(self.options)]
        self._dual = np.maximum(0.0, -np.asarray(solution.row_dual)[self._tables :])
        self._dual[self._dual < _NOTHING] = 0.0
        iterations = max(0, info.simplex_iteration_count)
        self.work = _PER_ROUND + _PER_ITERATION * iterations * len(self.options)
        return float(info.objective_function_value)

    def duals(self) -> tuple[Floats, Floats, list[tuple[Function, int, float]]]:
        """Those of the loads, of memory, and of functions, with the sizes of their bins."""
        end = len(self._dual) - len(self._shapes)
        functions = zip(self._shapes, self._dual[end:].tolist(), strict=True)
        return self._dual[:2], self._dual[2:end], [(f, n, w) for (_, f, n), w in functions if w]

    def binding(self) -> list[Shape]:
        """The functions with a dual."""
        duals = self._dual[len(self._dual) - len(self._shapes) :]
        return [shape for (shape, _, _), dual in zip(self._shapes, duals, strict=True) if dual]


def _tried(size: IntArray, full: int) -> dict[str, IntArray]:
    """Parameters of each family for shards of these sizes."""
    grid = (full * _SMALL).astype(np.int64)
    half = np.concatenate([grid, size, full + 1 - size])
    half = np.unique(half[(half > 0) & (2 * half <= full)])
    parts = np.unique(np.concatenate([grid, size[size * _SMALLEST > full]]))
    tried = {"steps": _STEPS, "threshold": half, "halves": parts[parts > 0]}
    return {name: values for name, values in tried.items() if len(values) and full}
