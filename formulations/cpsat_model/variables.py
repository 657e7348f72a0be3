"""The variables of the model, and what one unit of each puts where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from formulations.instance import Instance, IntArray


@dataclass
class Terms:
    """What variables put on ranks: lists of equal length, a row a (variable, shard, rank).

    One unit of ``var`` puts ``sign`` shards with ``entry`` on ``rank``. What a variable puts on
    *every* rank stands once in ``uniform`` (var, entry); a shard on no rank in ``off``
    (var, entry, count). A negative sign corrects a uniform shard where one rank differs.
    """

    var: list[int] = field(default_factory=list)
    entry: list[int] = field(default_factory=list)
    rank: list[int] = field(default_factory=list)
    sign: list[int] = field(default_factory=list)
    uniform_var: list[int] = field(default_factory=list)
    uniform_entry: list[int] = field(default_factory=list)
    off_var: list[int] = field(default_factory=list)
    off_entry: list[int] = field(default_factory=list)
    off_count: list[int] = field(default_factory=list)

    def add(self, var: int, entry: int, rank: int, sign: int = 1) -> None:
        """One unit of ``var`` puts a shard with ``entry`` on ``rank``."""
        self.var.append(var)
        self.entry.append(entry)
        self.rank.append(rank)
        self.sign.append(sign)


@dataclass
class Variables:
    """Every variable of the model by what it means; indices point into ``items``.

    Attributes
    ----------
    items : list of IntVar
    upper : list of int
        Upper bound of each (all lower bounds are 0).
    option_of : list of int
        The option whose choice makes a variable non-zero; -1 for derived variables.
    option : int64 array [options]
        Variable of each option (chosen or not), -1 where the option was removed.
    shares : dict of (block, kind of shard, rank) to variable
        How many shards of that kind of an ``any_rank`` block sit on the rank.
    machines : dict of (block, machine) to variable
        How often a ``one_machine`` block takes the machine, or whether an
        ``any_rank_of_one_machine`` block sits on it.
    kinds : dict of block to list of lists of int
        Positions of a block grouped by equal shards.
    moved : dict of table to variable
        Whether a table of ``current`` may move.
    moved_bytes : dict of table to variable
        Bytes it moves, 0 where it stays.
    derived : list of (variable, vars, coefs)
        Variables that equal a sum of earlier ones, in order of creation.
    check : callable, optional
        Called at every variable and row; raises to give up building.
    """

    instance: Instance
    cp: cp_model.CpModel = field(default_factory=cp_model.CpModel)
    items: list[cp_model.IntVar] = field(default_factory=list)
    upper: list[int] = field(default_factory=list)
    option_of: list[int] = field(default_factory=list)
    option: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    shares: dict[tuple[int, int, int], int] = field(default_factory=dict)
    machines: dict[tuple[int, int], int] = field(default_factory=dict)
    kinds: dict[int, list[list[int]]] = field(default_factory=dict)
    moved: dict[int, int] = field(default_factory=dict)
    moved_bytes: dict[int, int] = field(default_factory=dict)
    derived: list[tuple[int, IntArray, IntArray]] = field(default_factory=list)
    terms: Terms = field(default_factory=Terms)
    check: Callable[[], None] | None = None

    def new(self, upper: int, option: int = -1) -> int:
        """Add a variable in 0 … upper; returns its index."""
        if self.check is not None:
            self.check()
        item = self.cp.new_bool_var("") if upper == 1 else self.cp.new_int_var(0, upper, "")
        self.items.append(item)
        self.upper.append(upper)
        self.option_of.append(option)
        return len(self.items) - 1

    def sum(self, indices: Sequence[int] | IntArray) -> cp_model.LinearExprT:
        """Σ of some variables."""
        return cp_model.LinearExpr.sum([self.items[i] for i in indices])

    def weighted(
        self, indices: Sequence[int] | IntArray, coefs: Sequence[int] | IntArray
    ) -> cp_model.LinearExprT:
        """Σ coef × variable."""
        if self.check is not None:
            self.check()
        return cp_model.LinearExpr.weighted_sum(
            [self.items[int(i)] for i in indices], [int(c) for c in coefs]
        )

    def shares_on(self, block: int, rank: int) -> list[int]:
        """Variables that put a shard of an ``any_rank`` kind of block on a rank."""
        return [
            self.shares[block, kind, rank]
            for kind in range(len(self.kinds[block]))
            if (block, kind, rank) in self.shares
        ]


def options_chosen(variables: Variables, kept: NDArray[np.bool_]) -> None:
    """One binary for every option kept, exactly one of them a table.

    x_o ∈ {0, 1};  Σ_{o of t} x_o = 1 for every table t.
    """
    instance = variables.instance
    variables.option = np.full(instance.num_options, -1, dtype=np.int64)
    for table in range(instance.num_tables):
        for option in instance.options_of(table):
            if kept[option]:
                variables.option[option] = variables.new(1, option)
        own = [int(v) for v in variables.option[list(instance.options_of(table))] if v >= 0]
        variables.cp.add_exactly_one([variables.items[v] for v in own])
