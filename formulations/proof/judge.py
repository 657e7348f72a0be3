"""Judge a certificate with integer arrays: milliseconds where the checker takes seconds.

The judge reads proofs of a bound over pooled ranks: rows of costs, capacities, largest shards,
fusion and moves, and splits by options. It leaves every other proof to the checker. A solve asks
the judge first, because the checker takes 20 s for 1,000 tables on 128 ranks. The judge shares
rows and prices with the prover, whereas the checker shares no code with either: ``verify`` always
uses the checker.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations import checker
from formulations.errors import InstanceError
from formulations.instance import Instance, Objective
from formulations.proof.build import build_rows
from formulations.proof.rows import Rows
from formulations.proof.tree import bare, empty_table, swept
from formulations.proof.weights import BigArray, choice_prices, option_prices, vector_of
from formulations.result.certificate import Certificate, certificate_to_dict

#: Largest product of options and vectors applied that the judge works through, in about a second.
MOST = 10**8
#: Targets beyond this do not fit in the arrays' integers.
_FAR = 2**62
_KEYS = {"use", "table", "options"}


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
        for row in [row for vector in certificate.vectors for row in vector]:
            if not _pooled(self.rows, row):
                raise InstanceError("a row that is not of pooled ranks")
        self.vectors = [vector_of(self.rows, vector) for vector in certificate.vectors]
        self._prices: dict[int, BigArray] = {}

    def closes(self) -> bool:
        """Whether every node closes or is split into all of its cases."""
        if not all(map(self._there, self.nodes)):
            return False
        states: list[NDArray[np.bool_] | None] = [self.rows.possible]
        for position, node in enumerate(self.nodes):
            if position >= len(states):
                return False
            state, cases = states[position], node.get("options", [])
            left = None if state is None else self._left(state, node.get("use", []))
            if left is None:
                states += [None] * len(cases)
                continue
            split = self._split(left, node["table"], cases) if cases else []
            if not split:
                return False
            states += split
        return len(states) == len(self.nodes)

    def _there(self, node: dict[str, Any]) -> bool:
        """Whether the vectors, table and options that a node names exist."""
        good = all(index < len(self.vectors) for index in node.get("use", []))
        if "options" not in node:
            return good
        good = good and bool(node["options"]) and node["table"] < self.instance.num_tables
        many = len(self.instance.options_of(node["table"])) if good else 0
        return good and all(option < many for case in node["options"] for option in case)

    def _left(self, keep: NDArray[np.bool_], use: list[int]) -> NDArray[np.bool_] | None:
        """Options left after a node's vectors; None: the node is closed."""
        keep = bare(self.rows, keep, self.limit)
        for index in use:
            if empty_table(self.rows, keep):
                return None
            right = self.vectors[index].right(self.limit)
            keep, least = swept(self.rows, keep, self._priced(index), right)
            if least > right:
                return None
            keep = bare(self.rows, keep, self.limit)
        return None if empty_table(self.rows, keep) else keep

    def _split(
        self, keep: NDArray[np.bool_], table: int, cases: list[list[int]]
    ) -> list[NDArray[np.bool_]]:
        """The state of every case; empty if the cases leave out an option."""
        own = slice(*self.instance.table_options[table : table + 2])
        covered, found = np.zeros_like(keep[own]), []
        for case in cases:
            chosen = np.zeros_like(covered)
            chosen[case] = True
            covered |= chosen
            state = keep.copy()
            state[own] &= chosen
            found.append(state)
        return [] if (keep[own] & ~covered).any() else found

    def _priced(self, index: int) -> BigArray:
        if index not in self._prices:
            prices = choice_prices(self.rows, self.vectors[index])
            self._prices[index] = option_prices(self.rows, prices)
        return self._prices[index]


def _pooled(rows: Rows, row: dict[str, Any]) -> bool:
    """Whether the judge reads rows of this kind, and the row names something that exists."""
    if row["row"] in {"moved_tables", "moved_bytes"}:
        return getattr(rows.instance, f"max_{row['row']}") is not None
    if row["row"] == "cost" and rows.instance.objective == Objective.TOTAL:
        return bool(row["of"] == Objective.TOTAL.value and row.get("at", 0) == 0)
    kinds = {"cost", "capacity", "largest_cost", "largest_use", "fusion"}
    return row["row"] in kinds and "machine" not in row
