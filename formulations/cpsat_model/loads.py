"""Sums over shards as sparse rows: what a place carries, as a function of the variables."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from formulations.cpsat_model.variables import Variables
from formulations.instance import IntArray


@dataclass(frozen=True, eq=False)
class Row:
    """``base`` × (what every rank carries) + Σ coef × var, at one place or more equal ones.

    Attributes
    ----------
    base : int
        Ranks of the place.
    var, coef : int64 arrays
        Sorted by variable, no zero.
    """

    base: int
    var: IntArray
    coef: IntArray

    @property
    def key(self) -> tuple[int, bytes, bytes]:
        """Equal for equal rows."""
        return self.base, self.var.tobytes(), self.coef.tobytes()


class Loads:
    """The variables' shards, sorted once, to be weighted with any column of numbers.

    A *column* is an int64 array [entries]: the use of one resource, or the cost of one phase.
    """

    def __init__(self, variables: Variables) -> None:
        terms = variables.terms
        self._size = len(variables.items)
        self._var = np.asarray(terms.var, dtype=np.int64)
        self._entry = np.asarray(terms.entry, dtype=np.int64)
        self._rank = np.asarray(terms.rank, dtype=np.int64)
        self._sign = np.asarray(terms.sign, dtype=np.int64)
        self._uniform_var = np.asarray(terms.uniform_var, dtype=np.int64)
        self._uniform_entry = np.asarray(terms.uniform_entry, dtype=np.int64)
        self._off_var = np.asarray(terms.off_var, dtype=np.int64)
        self._off_entry = np.asarray(terms.off_entry, dtype=np.int64)
        self._off_count = np.asarray(terms.off_count, dtype=np.int64)
        self._instance = variables.instance

    @property
    def only_uniform(self) -> bool:
        """Whether every shard sits on every rank alike: no choice of place anywhere."""
        return not len(self._var)

    def uniform(self, column: IntArray) -> Row:
        """What every rank carries in common."""
        return _collect(1, self._uniform_var, column[self._uniform_entry])

    def ranks(self, column: IntArray) -> list[Row]:
        """One row a rank."""
        return self._at(column, self._rank, [1] * self._instance.num_ranks)

    def machines(self, column: IntArray) -> list[Row]:
        """One row a machine."""
        sizes = [len(m) for m in self._instance.machines]
        return self._at(column, self._instance.machine_of[self._rank], sizes)

    def placed(self, column: IntArray) -> Row:
        """All shards on ranks; the uniform part is multiplied out."""
        var = np.concatenate([self._var, self._uniform_var])
        uniform = self._instance.num_ranks * column[self._uniform_entry]
        return _collect(0, var, np.concatenate([self._sign * column[self._entry], uniform]))

    def cluster(self, column: IntArray) -> Row:
        """All shards, those on no rank included."""
        placed = self.placed(column)
        var = np.concatenate([placed.var, self._off_var])
        off = self._off_count * column[self._off_entry]
        return _collect(0, var, np.concatenate([placed.coef, off]))

    def _at(self, column: IntArray, place: IntArray, base: list[int]) -> list[Row]:
        coef = self._sign * column[self._entry]
        keep = coef != 0
        merged = _collect(0, place[keep] * self._size + self._var[keep], coef[keep])
        owner, var = merged.var // max(1, self._size), merged.var % max(1, self._size)
        edges = np.searchsorted(owner, np.arange(len(base) + 1))
        return [
            Row(base[p], var[a:b], merged.coef[a:b])
            for p, (a, b) in enumerate(itertools.pairwise(edges))
        ]


def _collect(base: int, key: IntArray, coef: IntArray) -> Row:
    """Add up coefficients of equal keys; drop zeros."""
    unique, inverse = np.unique(key, return_inverse=True)
    total = np.zeros(len(unique), dtype=np.int64)
    np.add.at(total, inverse, coef)
    keep = total != 0
    return Row(base, unique[keep], total[keep])


def most(variables: Variables, row: Row) -> int:
    """An upper bound on a row's value without its base: the dearest option of every table."""
    instance = variables.instance
    coef = np.maximum(row.coef, 0) * np.asarray(variables.upper, dtype=np.int64)[row.var]
    option = np.asarray(variables.option_of, dtype=np.int64)[row.var]
    per_option = np.zeros(instance.num_options, dtype=np.int64)
    np.add.at(per_option, option, coef)
    return int(np.maximum.reduceat(per_option, instance.table_options[:-1]).sum())
