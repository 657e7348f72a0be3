"""The linear model that PuLP hands to HiGHS or CBC, in plain words.

Written independently of :mod:`formulations.model`, so that each cross-checks the other; so is where
a shard may lie (:mod:`formulations.instance.assigning`). The model has a binary x for each option,
one of which each table chooses; integers y for the places of a chosen option's shards; and rows for
every capacity and for the objective. Each row is kept in integers, and given to PuLP scaled so that
floating point sees numbers near one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pulp

from formulations.instance import BlockView, Current, Instance, IntArray, Objective, Scope, Where
from formulations.instance.assigning import assigned
from formulations.result.placement import Placement, machine_ranks

#: Σ coefficient × column, by the column's number.
Terms = dict[int, int]
#: The place of a shard on every rank, and of one on no rank.
EVERYWHERE, NOWHERE = -1, -2
#: Objective coefficients are brought below this: solvers compare objectives to about 1e-9.
LARGEST_COST = 1e6
_SENSES = {"<=": pulp.LpConstraintLE, "==": pulp.LpConstraintEQ, ">=": pulp.LpConstraintGE}


@dataclass(frozen=True)
class Column:
    """A whole number from 0 to ``upper``, which is ``scale`` times its variable in PuLP."""

    variable: pulp.LpVariable
    upper: int
    scale: int


@dataclass(frozen=True)
class Row:
    """Σ coefficient × column ≤ ``right``, of numbers near ``unit``."""

    terms: Terms
    right: int
    unit: int


class MipModel:
    """The model and what its variables mean.

    Parameters
    ----------
    instance : Instance
    check : callable
        Called at every variable and row; raises to give up building.

    Attributes
    ----------
    problem : pulp.LpProblem
    columns : list of Column
    rows : list of Row
        All of them in integers; those of equations twice, with either sign.
    cost : dict of column to coefficient
        The objective, in true cost.
    chosen : dict of option to column
    assignments : dict of (block, place) to list of columns
        How many shards of each position of an ``any_rank`` kind of block sit on a rank (all of
        them are position 0 where they are alike); how often a ``one_machine`` block takes a
        machine; under (block, −1 − machine) whether ``any_rank_of_one_machine`` is on it.
    shards : list of (table, column, rank, entry, times)
        What one unit of a column puts on a rank.
    unit : float
        How many true cost units one unit of the objective stands for.
    """

    def __init__(self, instance: Instance, check: Callable[[], None] = lambda: None) -> None:
        self.instance, self._check = instance, check
        self.problem = pulp.LpProblem("milp_planner")
        self.columns: list[Column] = []
        self.rows: list[Row] = []
        self.chosen: dict[int, int] = {}
        self.assignments: dict[tuple[int, int], list[int]] = defaultdict(list)
        self.shards: list[tuple[int, int, int, int, int]] = []
        for table in range(instance.num_tables):
            own = [o for o in instance.options_of(table) if instance.allowed[o]]
            self.chosen |= {option: self._column(1) for option in own}
            self._row(dict.fromkeys((self.chosen[o] for o in own), 1), "==", 1)
            for index in (b for o in own for b in instance.blocks_of(o)):
                self._place(table, instance.block(index))
        self._limit_resources()
        self._fuse()
        self._pin()
        self._limit_moves()
        self.unit = self._minimise()

    def _column(self, upper: int, kind: str = "Integer", scale: int = 1) -> int:
        """The number of a new column in 0 … upper."""
        self._check()
        number = len(self.columns)
        variable = self.problem.add_variable(f"v{number}", 0, upper / scale, cat=kind)
        self.columns.append(Column(variable, upper, scale))
        return number

    def _row(self, terms: Terms, sense: str, right: int, unit: int = 1) -> None:
        """Σ coefficient × column (``<=``, ``==`` or ``>=``) right, divided by ``unit`` in PuLP."""
        self._check()
        terms = {v: c for v, c in terms.items() if c}
        if sense != ">=":
            self.rows.append(Row(terms, right, unit))
        if sense != "<=":
            self.rows.append(Row({v: -c for v, c in terms.items()}, -right, unit))
        scaled = pulp.LpAffineExpression(self.scaled(terms, unit))
        self.problem.addConstraint(pulp.LpConstraint(scaled, _SENSES[sense], rhs=right / unit))

    def scaled(self, terms: Terms, unit: int) -> dict[pulp.LpVariable, float]:
        """Terms of PuLP's variables, divided by a unit."""
        columns = [(self.columns[v], c) for v, c in terms.items()]
        return {column.variable: c * column.scale / unit for column, c in columns}

    def most(self, terms: Terms) -> int:
        """The largest value of a sum whose coefficients are not negative."""
        return sum(c * self.columns[v].upper for v, c in terms.items())

    def _place(self, table: int, block: BlockView) -> None:
        """Put every shard of a block in a place if its option is chosen."""
        instance, where = self.instance, block.where
        x = self.chosen[int(instance.option_of[block.index])]
        machine_kind = where in (Where.ONE_MACHINE, Where.ANY_RANK_OF_ONE_MACHINE)
        every = range(len(instance.machines) if machine_kind else instance.num_ranks)
        places = every if block.places is None else block.places
        if where == Where.EVERY_RANK and block.shared:
            self.shards.append((table, x, EVERYWHERE, int(block.entries[0]), 1))
        elif where in (Where.EVERY_RANK, Where.LIST):
            self.shards += [(table, x, r, block.entry(i), 1) for i, r in enumerate(places)]
        elif where == Where.CLUSTER:
            alike = range(1 if block.shared else block.count)
            times = block.count // len(alike)
            self.shards += [(table, x, NOWHERE, block.entry(i), times) for i in alike]
        elif where == Where.ANY_RANK:
            self._spread(table, x, block, places)
        else:
            self._take_machines(table, x, block, places)

    def _take_machines(self, table: int, x: int, block: BlockView, machines: Sequence[int]) -> None:
        """Σ over machines = count·x; or one machine, and Σ of the shards on another ≤ 0."""
        whole = block.where == Where.ONE_MACHINE
        number = block.count if whole else 1
        taken = {m: self._column(1 if block.distinct else number) for m in machines}
        self._row({**dict.fromkeys(taken.values(), 1), x: -number}, "==", 0)
        if not whole:
            members = self.instance.machines
            self._spread(table, x, block, [r for m in machines for r in members[m]])
        for machine, y in taken.items():
            ranks = self.instance.machines[machine]
            if whole:
                self.assignments[block.index, machine] = [y]
                self.shards += [(table, y, r, block.entry(i), 1) for i, r in enumerate(ranks)]
            else:
                here = (v for r in ranks for v in self.assignments[block.index, r])
                self._row({**dict.fromkeys(here, 1), y: -block.count}, "<=", 0)

    def _spread(self, table: int, x: int, block: BlockView, ranks: Sequence[int]) -> None:
        """Each shard on exactly one rank if its option is chosen (equal shards are counted)."""
        each = block.count if block.shared else 1
        for position in range(1 if block.shared else block.count):
            row: Terms = {x: -each}
            for rank in ranks:
                y = self._column(1 if block.distinct else each)
                self.assignments[block.index, rank].append(y)
                self.shards.append((table, y, rank, block.entry(position), 1))
                row[y] = 1
            self._row(row, "==", 0)
        if block.distinct and not block.shared:
            for rank in ranks:
                self._row(dict.fromkeys(self.assignments[block.index, rank], 1), "<=", 1)

    def _sums(self, column: IntArray) -> dict[int, Terms]:
        """Σ of a column of the shard entries by rank; long sums over all ranks as a variable."""
        sums: dict[int, Terms] = defaultdict(lambda: defaultdict(int))
        for _, variable, rank, entry, times in self.shards:
            if column[entry]:
                sums[rank][variable] += times * int(column[entry])
        if len(everywhere := sums[EVERYWHERE]) > 4:
            unit = max(map(abs, everywhere.values()))
            total = self._column(self.most(everywhere), "Continuous", unit)
            self._row({total: 1, **{v: -c for v, c in everywhere.items()}}, "==", 0, unit)
            sums[EVERYWHERE] = {total: 1}
        return sums

    def _at(self, sums: dict[int, Terms], ranks: Iterable[int]) -> Terms:
        """Σ over some ranks."""
        found: Terms = defaultdict(int)
        for rank in ranks:
            for part in (sums[EVERYWHERE], sums[rank]):
                for variable, coefficient in part.items():
                    found[variable] += coefficient
        return found

    def _everything(self, column: IntArray) -> Terms:
        """Σ over all shards, on ranks or not."""
        found: Terms = defaultdict(int)
        for _, variable, rank, entry, times in self.shards:
            copies = self.instance.num_ranks if rank == EVERYWHERE else 1
            found[variable] += copies * times * int(column[entry])
        return {v: c for v, c in found.items() if c}

    def _limit_resources(self) -> None:
        """Σ use at a place ≤ its capacity, divided by the capacity."""
        instance = self.instance
        for index, resource in enumerate(instance.resources):
            column = instance.shard_use[:, index]
            if resource.scope == Scope.CLUSTER:
                rows = [self._everything(column)]
            else:
                sums = self._sums(column)
                ranks = [(r,) for r in range(instance.num_ranks)]
                places = ranks if resource.scope == Scope.RANK else instance.machines
                rows = [self._at(sums, place) for place in places]
            for row, room in zip(rows, resource.capacity.tolist(), strict=True):
                if row:
                    self._row(row, "<=", room, max(room, 1))

    def _minimise(self) -> float:
        """total: Σ cost.  busiest_rank, step_time: Σ over phases of z with z ≥ Σ cost at every
        rank.  pipelined_step: with z + hidden ≥ Σ cost."""
        cost, step = self.instance.shard_cost, self.instance.by_phase
        hidden = self.instance.hidden_time.tolist() if step else [0]
        self.cost = self._everything(cost.sum(axis=1))
        if self.instance.objective == Objective.TOTAL:
            largest = max(map(abs, self.cost.values()), default=0)
        else:
            self.cost, largest = {}, int(np.abs(cost).max(initial=0))
            columns = cost.T if step else [cost.sum(axis=1)]
            for column, less in zip(columns, hidden, strict=True):
                sums, size = self._sums(column), max(1, int(column.max(initial=0)))
                rows = [self._at(sums, [rank]) for rank in range(self.instance.num_ranks)]
                z = self._column(max(map(self.most, rows)), "Continuous", size)
                self.cost[z] = 1
                for row in rows:
                    self._row({**row, z: -1}, "<=", less, size)
        unit = max(1.0, largest / LARGEST_COST)  # 1 while costs are small integers: exact
        terms = {v: c / unit for v, c in self.scaled(self.cost, 1).items()}
        self.problem.setObjective(pulp.LpAffineExpression(terms))
        return unit

    def _fuse(self) -> None:
        """One level for each fusion group; an option needs the level it names."""
        instance = self.instance
        levels: dict[int, dict[int, int]] = defaultdict(dict)
        members: dict[tuple[int, int, int], Terms] = defaultdict(dict)
        for option, x in self.chosen.items():
            group, level = int(instance.option_group[option]), int(instance.option_level[option])
            if group >= 0:
                members[group, level, int(instance.table_of[option])][x] = 1
        for (group, level, _), row in members.items():
            if level not in levels[group]:
                levels[group][level] = self._column(1)
            self._row({**row, levels[group][level]: -1}, "<=", 0)
        for own in levels.values():
            self._row(dict.fromkeys(own.values(), 1), "<=", 1)

    def _pin(self) -> None:
        """Blocks of pinned options lie on the ranks that the pin names."""
        for pin in self.instance.pins:
            if pin.ranks is None or pin.option not in self.chosen:
                continue
            if assigned(self.instance, pin.option, pin.ranks) is None:
                self._row({self.chosen[pin.option]: 1}, "<=", 0)
                continue
            for variables, number in self._demands(pin.option, pin.ranks):
                self._row(dict.fromkeys(variables, 1), ">=", number)

    def _demands(
        self, option: int, ranks: Sequence[Sequence[int]]
    ) -> Iterator[tuple[list[int], int]]:
        """Variables, and what they add up to if an option's blocks lie on given ranks."""
        for index, named in zip(self.instance.blocks_of(option), ranks, strict=True):
            times = Counter(map(int, named))
            if self.instance.block(index).where == Where.ONE_MACHINE:
                firsts = enumerate(ranks[0] for ranks in self.instance.machines)
                times = Counter({m: times[first] for m, first in firsts if times[first]})
            if self.instance.settled_ranks(index) is None:
                yield from ((self.assignments[index, place], n) for place, n in times.items())

    def _limit_moves(self) -> None:
        """Tables, and bytes, that move against the current plan: with m_t = 0 only where a table
        stays, Σ m_t ≤ limit, and Σ_t (bytes as placed − bytes where it was·(1 − m_t)) ≤ limit."""
        instance = self.instance
        tables, size = instance.max_moved_tables, instance.max_moved_bytes
        if tables is None and size is None:
            return
        moved = {now.table: self._moved(now) for now in instance.current}
        if tables is not None:
            self._row(dict.fromkeys((m for m, _ in moved.values()), 1), "<=", tables)
        if size is not None:
            row: Terms = defaultdict(int)
            for table, variable, rank, entry, times in self.shards:
                copies = instance.num_ranks if rank == EVERYWHERE else 1
                if table in moved:
                    row[variable] += copies * times * int(instance.shard_move[entry])
            row.update(moved.values())
            limit = size + sum(there for _, there in moved.values())
            self._row(row, "<=", limit, max(1, size, *row.values()))

    def _moved(self, now: Current) -> tuple[int, int]:
        """A binary that is 1 unless the table stays, and the bytes of the table where it is."""
        moved, instance = self._column(1), self.instance
        if now.option not in self.chosen or assigned(instance, now.option, now.ranks) is None:
            self._row({moved: 1}, ">=", 1)
            return moved, 0
        self._row({self.chosen[now.option]: 1, moved: 1}, ">=", 1)
        for variables, number in self._demands(now.option, now.ranks):
            self._row({**dict.fromkeys(variables, 1), moved: number}, ">=", number)
        size = 0
        for index, ranks in zip(instance.blocks_of(now.option), now.ranks, strict=True):
            block = instance.block(index)
            times = block.count if block.where == Where.CLUSTER else len(ranks)
            entries = (block.entries[i % len(block.entries)] for i in range(times))
            size += sum(int(instance.shard_move[e]) for e in entries)
        return moved, size


def rounded(model: MipModel) -> Placement | None:
    """The placement nearest to the variables; None where they name none (a broken answer)."""
    columns = [column.variable for column in model.columns]
    return placed(model, [float(variable.varValue or 0.0) for variable in columns])


def placed(model: MipModel, values: Sequence[float]) -> Placement | None:
    """The placement nearest to the columns' values; None where they do not name one."""
    instance = model.instance
    options, ranks = [], []
    for table in range(instance.num_tables):
        named = [o for o in instance.options_of(table) if o in model.chosen]
        option = max(named, key=lambda o: values[model.chosen[o]])
        blocks = [_ranks(model, values, b) for b in instance.blocks_of(option)]
        if any(b is None for b in blocks):
            return None
        options.append(option)
        ranks.append([b for b in blocks if b is not None])
    return Placement(np.asarray(options, dtype=np.int64), ranks)


def _ranks(model: MipModel, values: Sequence[float], index: int) -> IntArray | None:
    fixed, instance = model.instance.settled_ranks(index), model.instance
    if fixed is not None:
        return fixed
    block, found = instance.block(index), []
    whole = block.where == Where.ONE_MACHINE
    places = range(len(instance.machines) if whole else instance.num_ranks)
    at = {p: model.assignments[index, p] for p in places if (index, p) in model.assignments}
    for position in range(max(map(len, at.values()), default=0)):
        for place, variables in at.items():
            found += [place] * round(values[variables[position]])
    if len(found) != block.count:
        return None
    return machine_ranks(instance, found) if whole else np.asarray(found, dtype=np.int64)
