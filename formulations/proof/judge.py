"""Judge a certificate with integer arrays: milliseconds where the checker takes seconds.

The judge reads proofs of a bound over pooled ranks: rows of costs, capacities, largest shards,
fusion, moves, peaks and functions, and splits by options, by counts and by peaks. It leaves every
other proof to the checker. A solve asks the judge first, because the checker takes 20 s for 1,000
tables on 128 ranks.
The judge shares rows and prices with the prover, whereas the checker shares no code with either:
``verify`` always uses the checker.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations import checker
from formulations.classes import counted
from formulations.errors import InstanceError
from formulations.instance import Instance, Objective
from formulations.proof.build import build_rows
from formulations.proof.functions import FunctionRow, function_row
from formulations.proof.peaks import Phases, Row
from formulations.proof.rows import Rows
from formulations.proof.tree import bare, empty_table, swept
from formulations.proof.weights import BigArray, choice_prices, option_prices, vector_of
from formulations.result.certificate import Certificate, certificate_to_dict

#: Largest product of options and vectors applied that the judge works through, in about a second.
MOST = 10**8
#: Targets beyond this do not fit in the arrays' integers.
_FAR = 2**62
_KEYS = {"use", "table", "options", "tables", "counted", "most", "peak", "cuts"}
#: Options kept, and the least and largest height left to sets of phases; None: closed.
_State = tuple[NDArray[np.bool_], dict[Phases, tuple[int, int]]]


def closes(instance: Instance, certificate: Certificate | None) -> bool | None:
    """Whether every case of the certificate is closed; None: the judge cannot read it."""
    if certificate is None or certificate.target is None or abs(certificate.target) > _FAR:
        return None
    nodes = certificate.nodes
    steps = sum(1 + len(node.get("use", [])) for node in nodes) * instance.num_options
    if steps > MOST or not instance.num_tables:
        return None
    if not checker.CERTIFICATE(certificate_to_dict(certificate)):
        return None
    if any(node.keys() - _KEYS for node in nodes):
        return None
    try:
        return _Judge(instance, certificate, certificate.target - 1).closes()
    except InstanceError:  # a row that does not exist, or one of single ranks
        return None


class _Judge:
    """A certificate's tree over the rows of its instance.

    Raises
    ------
    InstanceError
        For a vector with a row that is not over pooled ranks.
    """

    def __init__(self, instance: Instance, certificate: Certificate, limit: int) -> None:
        self.instance, self.nodes, self.limit = instance, certificate.nodes, limit
        self.rows = build_rows(instance)
        sums = [[row for row in v if row["row"] not in _BOXED] for v in certificate.vectors]
        for row in [row for vector in sums for row in vector]:
            if not _pooled(self.rows, row):
                raise InstanceError("a row that is not of pooled ranks")
        self.vectors = [vector_of(self.rows, vector) for vector in sums]
        self.boxed = [
            [_BOXED[row["row"]](instance, row) for row in vector if row["row"] in _BOXED]
            for vector in certificate.vectors
        ]
        self._prices: dict[int, BigArray] = {}
        self._boxed: dict[int, tuple[NDArray[np.bool_], BigArray]] = {}

    def closes(self) -> bool:
        """Whether every node closes or is split into all of its cases."""
        if not all(map(self._there, self.nodes)):
            return False
        states: list[_State | None] = [(self.rows.possible, {})]
        for position, node in enumerate(self.nodes):
            if position >= len(states):
                return False
            state, cuts = states[position], node.get("cuts", [])
            cases = len(cuts) + 1 if cuts else 2 if "most" in node else len(node.get("options", []))
            left = None if state is None else self._left(*state, node.get("use", []))
            if state is None or left is None:
                states += [None] * cases
                continue
            found = self._cut(left, state[1], node) if cuts else []
            found = found or [(k, state[1]) for k in (self._split(left, node) if cases else [])]
            if not found:
                return False
            states += found
        return len(states) == len(self.nodes)

    def _there(self, node: dict[str, Any]) -> bool:
        """Whether the vectors, phases, table and options that a node names exist."""
        good = all(index < len(self.vectors) for index in node.get("use", []))
        if "cuts" in node:
            cuts, phases = node["cuts"], node["peak"]
            known = len(set(phases)) == len(phases) > 0 and set(phases) <= self._counted()
            return good and known and len(cuts) > 0 and sorted(set(cuts)) == cuts
        if not node.keys() & {"table", "tables"}:
            return good
        lists, tables = node.get("options", [node.get("counted")]), node.get("tables", [])
        table = max(tables, default=node.get("table", self.instance.num_tables))
        good = good and bool(lists) and table < self.instance.num_tables
        many = len(self.instance.options_of(table)) if good else 0
        return good and all(option < many for case in lists for option in case)

    def _counted(self) -> set[str]:
        """The phases that have heights."""
        measured = self.rows.measures
        return {measured.costs[f] for f in measured.counted}

    def _left(
        self, keep: NDArray[np.bool_], heights: dict[Phases, tuple[int, int]], use: list[int]
    ) -> NDArray[np.bool_] | None:
        """Options left after a node's vectors; None: the node is closed."""
        keep = bare(self.rows, keep, self.limit)
        for index in use:
            if empty_table(self.rows, keep):
                return None
            right = self._right(index, keep, heights)
            if right == inf:
                continue
            for row in self.boxed[index]:
                keep = keep & row.fits()
            if empty_table(self.rows, keep):
                return None
            keep, least = swept(self.rows, keep, self._priced(index, keep), right)
            if least > right:
                return None
            keep = bare(self.rows, keep, self.limit)
        return None if empty_table(self.rows, keep) else keep

    def _right(
        self, index: int, keep: NDArray[np.bool_], heights: dict[Phases, tuple[int, int]]
    ) -> int | float:
        """The right-hand side of a vector in a case: infinite if a row of peaks does not limit it,
        minus infinite if one finds that no plan is like this."""
        most: list[int | float] = []
        for row in self.boxed[index]:
            first, second = (heights.get(phases, (0, self.limit)) for phases in row.sets)
            most.append(row.most(keep, self.limit, first, second))
        endless = [value for value in (-inf, inf) if value in most]
        return endless[0] if endless else self.vectors[index].right(self.limit) + sum(most)

    def _cut(
        self, keep: NDArray[np.bool_], heights: dict[Phases, tuple[int, int]], node: dict[str, Any]
    ) -> list[_State | None]:
        """The state of every case of a split by a peak."""
        known = self.rows.measures.costs
        phases = tuple(sorted(known.index(name) for name in node["peak"]))
        low, high = heights.get(phases, (0, self.limit))
        lows, highs = [0, *[cut + 1 for cut in node["cuts"]]], [*node["cuts"], self.limit]
        left = [(max(low, a), min(high, b)) for a, b in zip(lows, highs, strict=True)]
        return [(keep, {**heights, phases: (a, b)}) if a <= b else None for a, b in left]

    def _split(self, keep: NDArray[np.bool_], node: dict[str, Any]) -> list[NDArray[np.bool_]]:
        """The options left in every case of a split; empty if the cases leave out an option."""
        if "most" in node:
            return counted(self.instance, keep, node)
        own = slice(*self.instance.table_options[node["table"] : node["table"] + 2])
        covered, found = np.zeros_like(keep[own]), []
        for case in node["options"]:
            chosen = np.zeros_like(covered)
            chosen[case] = True
            covered |= chosen
            state = keep.copy()
            state[own] &= chosen
            found.append(state)
        return [] if (keep[own] & ~covered).any() else found

    def _priced(self, index: int, keep: NDArray[np.bool_]) -> BigArray:
        """Prices of the options kept."""
        if index not in self._prices:
            prices = option_prices(self.rows, choice_prices(self.rows, self.vectors[index]))
            self._prices[index] = prices
        if not self.boxed[index]:
            return self._prices[index]
        known, prices = self._boxed.get(index, (np.zeros_like(keep), self._prices[index]))
        if (keep & ~known).any():
            options, prices = np.flatnonzero(keep), self._prices[index].copy()
            prices[options] += sum([row.prices(options) for row in self.boxed[index]])
            self._boxed[index] = keep, prices
        return prices


#: Rows about heights, which a vector may have beside its sums of rows.
_BOXED: dict[str, Callable[[Instance, dict[str, Any]], Row | FunctionRow]] = {
    "functions": function_row, "peaks": Row,
}  # fmt: skip


def _pooled(rows: Rows, row: dict[str, Any]) -> bool:
    """Whether the judge reads rows of this kind, and the row names something that exists."""
    if row["row"] in {"moved_tables", "moved_bytes"}:
        return getattr(rows.instance, f"max_{row['row']}") is not None
    if row["row"] == "cost" and rows.instance.objective == Objective.TOTAL:
        return bool(row["of"] == Objective.TOTAL.value and row.get("at", 0) == 0)
    kinds = {"cost", "capacity", "largest_cost", "largest_use", "fusion"}
    return row["row"] in kinds and "machine" not in row
