"""What must go so that the rest fits, where each of some tables stays or goes: exact, by counting.

Branch and bound over how many of equal tables go, with HiGHS's bounds; every case is closed, and
every table settled, by multipliers in integers, so that the tree is a certificate (docs/proof.md).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.instance import Instance, IntArray
from formulations.instance.facts import total_cost
from formulations.proof.weights import BigArray
from formulations.result.certificate import Certificate

#: Most nodes of the first search; most times that one is solved again; what a multiplier of the
#: cost counts; what is nearly whole.
_NODES, _ROUNDS, _ONE, _WHOLE = 20_000, 6, 2**60, 1e-6


@dataclass(frozen=True)
class Covered:
    """What was found: a proof of the least cost, and the tables that go in the best choice.

    Attributes
    ----------
    certificate : Certificate or None
    goes : list of int or None
    cases : int
    """

    certificate: Certificate | None
    goes: list[int] | None
    cases: int


def cover(
    question: Instance, equal: Sequence[IntArray], nodes: int, over: Callable[[], bool]
) -> Covered:
    """The least cost of a question whose resources are all of the cluster and whose tables have one
    option or two, the second of them to go.

    Parameters
    ----------
    question : Instance
    equal : sequence of int64 array
        Its tables, by which are equal: any two of a part may be exchanged.
    nodes : int
        Of the certificate, about.
    over : callable
        Whether to stop; what is proved until then counts.
    """
    search = _Cover(question, equal)
    first = search.run(over, _NODES)
    again = search.run(over, nodes)  # with the best choice known, the proof is far smaller
    return Covered(again.certificate, again.goes, first.cases + again.cases)


@dataclass(eq=False)
class _Node:
    """A node of the certificate: multipliers of the resources for each vector, the tables that it
    counts, how many of them at most go in its first case, and its cases."""

    use: list[list[int]] = field(default_factory=list)
    tables: list[int] = field(default_factory=list)
    most: int = 0
    cases: list[_Node] = field(default_factory=list)


@dataclass(eq=False)
class _Case:
    """How many tables of each part go at least, and at most; where its proof goes on; the least
    cost proved."""

    low: IntArray
    high: IntArray
    node: _Node
    least: int = 0
    last: list[int] = field(default_factory=list)
    shares: NDArray[np.float64] | None = None
    closed: bool = False


class _Cover:
    def __init__(self, question: Instance, equal: Sequence[IntArray]) -> None:
        first = question.table_options
        self._question, self._equal = question, equal
        self._many = np.asarray([len(part) for part in equal], dtype=np.int64)
        self._goes = np.asarray([first[p[0] + 1] - first[p[0]] > 1 for p in equal], dtype=bool)
        stays = np.asarray([first[part[0]] for part in equal], dtype=np.int64)
        use, cost = question.shard_use.astype(object), total_cost(question)[:, 0].astype(object)
        both = (stays, stays + self._goes)
        self._use, self._cost = tuple(use[o] for o in both), tuple(cost[o] for o in both)
        self._room = [int(resource.capacity[0]) for resource in question.resources]
        self._best: tuple[int, IntArray] | None = None
        self._most = int(self._many @ np.maximum(*self._cost))
        self._highs = self._program()

    def _program(self) -> Any:
        """Shares that go, each row in units of what there is too much, at a cost of what is too
        much still."""
        import highspy

        highs, endless = highspy.Highs(), highspy.kHighsInf
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", 1)
        need = [int(n) - r for n, r in zip(self._many @ self._use[0], self._room, strict=True)]
        saved = (self._use[0] - self._use[1]).astype(np.float64)
        cost = (self._cost[1] - self._cost[0]).astype(np.float64)
        self._units = [max(1.0, abs(n) / 1e4) for n in need]
        for own, many in zip(cost, self._many * self._goes, strict=True):
            highs.addVar(0.0, float(many))
            highs.changeColCost(highs.getNumCol() - 1, float(own))
        parts = np.arange(len(self._many), dtype=np.int32)
        for column, (short, unit) in enumerate(zip(need, self._units, strict=True)):
            highs.addVar(0.0, endless)
            highs.changeColCost(highs.getNumCol() - 1, unit * max(1.0, float(cost.max(initial=0))))
            own = np.append(parts, highs.getNumCol() - 1).astype(np.int32)
            row = np.append(saved[:, column] / unit, 1.0)
            highs.addRow(short / unit, endless, len(own), own, row)
        return highs

    def run(self, over: Callable[[], bool], nodes: int) -> Covered:
        """Split the case of the least cost until none is open. Where no choice is known yet, go on
        with the cheapest of its cases first."""
        root, dive, self._nodes = _Node(), self._best is None, 1
        case = _Case(0 * self._many, self._many * self._goes, root)
        self._look(case)
        open_, cases = [(case.least, 0, case)], 1
        here: _Case | None = None
        while (here or open_) and self._nodes < nodes and not over():
            case = here or heapq.heappop(open_)[2]
            found = [] if self._closes(case) else self._branch(case)
            if not found and not case.closed:
                heapq.heappush(open_, (case.least, 0, case))  # nothing is left to split
                break
            found = sorted((c for c in found if not c.closed), key=lambda c: c.least)
            cases += 2
            here = found.pop(0) if found and dive else None
            for turn, other in enumerate(found):
                heapq.heappush(open_, (other.least, cases + turn, other))
        left = [*([here] if here else []), *(case for _, _, case in open_)]
        for case in left:
            case.node.use.append(case.last)
        least = [case.least for case in left]
        target = min([*least, self._most if self._best is None else self._best[0]])
        proof = self._certificate(root, target) if target > 0 else None
        return Covered(proof, self._going(), cases)

    def _going(self) -> list[int] | None:
        if self._best is None:
            return None
        return [int(t) for p, n in zip(self._equal, self._best[1], strict=True) for t in p[:n]]

    def _limit(self) -> int:
        return self._most if self._best is None else self._best[0] - 1

    def _closes(self, case: _Case) -> bool:
        case.closed = case.closed or case.least > self._limit()
        return case.closed

    def _look(self, case: _Case) -> None:
        """Solve, settle what multipliers settle, and so on."""
        for _ in range(_ROUNDS):
            shares, duals = self._solved(case)
            self._rounded(shares)
            vector = [int(dual * _ONE) for dual in duals]
            prices = [use @ vector + cost * _ONE for use, cost in
                      zip(self._use, self._cost, strict=True)]  # fmt: skip
            room = sum(map(int.__mul__, vector, self._room))
            most, free = np.minimum(*prices), case.high - case.low
            least = int(case.low @ prices[1] + (self._many - case.high) @ prices[0] + free @ most)
            case.shares, case.least = shares, max(case.least, -((room - least) // _ONE))
            slack = self._limit() * _ONE + room - least
            case.last = vector
            if self._closes(case):
                case.node.use.append(vector)
            if case.closed or not self._settled(case, vector, prices[1] - prices[0], slack):
                return

    def _settled(self, case: _Case, vector: list[int], dearer: BigArray, slack: int) -> bool:
        """Whether some part may go, or stay, in fewer ways, by what one more costs."""
        low, high, changed = case.low.copy(), case.high.copy(), False
        for index in np.flatnonzero(low < high).tolist():
            more, free = int(dearer[index]), int(high[index] - low[index])
            can = free if not more else slack // abs(more)
            if can >= free:
                continue
            if not changed:
                case.node.use.append(vector)
            changed, most = True, can if more > 0 else free - can - 1
            if can:  # one alone can, so that a case must be closed
                few, many = self._split(case, index, most)
                case.node, dead = (few, many) if more > 0 else (many, few)
                dead.use.append(vector)
            if more > 0:
                case.high[index] = low[index] + can
            else:
                case.low[index] = high[index] - can
        return changed

    def _split(self, case: _Case, index: int, most: int) -> list[_Node]:
        """Both cases of how many more of a part go than do in any case."""
        node, tables = case.node, self._equal[index][case.low[index] : case.high[index]]
        self._nodes += 2
        node.tables, node.most, node.cases = tables.tolist(), most, [_Node(), _Node()]
        return node.cases

    def _solved(self, case: _Case) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """How many of each part go, in fractions, and the price of each resource; without a
        solution nothing more is said to go, and nothing is priced."""
        columns = np.arange(len(self._many), dtype=np.int32)
        ends = case.low.astype(np.float64), case.high.astype(np.float64)
        self._highs.changeColsBounds(len(columns), columns, *ends)
        self._highs.run()
        found = self._highs.getSolution()
        if not (found.value_valid and found.dual_valid):
            return ends[0], np.zeros(len(self._units))
        duals = np.maximum(0.0, np.asarray(found.row_dual)) / self._units
        return np.asarray(found.col_value)[: len(columns)], duals

    def _rounded(self, shares: NDArray[np.float64]) -> None:
        """Keep what goes, rounded up, if the rest fits and it costs less."""
        goes = np.ceil(shares - _WHOLE).astype(np.int64)
        stays = self._many - goes
        use = stays @ self._use[0] + goes @ self._use[1]
        cost = int(stays @ self._cost[0] + goes @ self._cost[1])
        if (use <= self._room).all() and (self._best is None or cost < self._best[0]):
            self._best = cost, goes

    def _branch(self, case: _Case) -> list[_Case]:
        """Split by how many of the part go that may change the cost most."""
        shares = np.clip(np.asarray(case.shares), case.low, case.high)
        part = abs(shares - np.round(shares))
        part[part < _WHOLE] *= _WHOLE  # nearly whole: last of all, but the rest may not fit
        worth = (part + _WHOLE**3) * (1 + abs(self._cost[1] - self._cost[0]).astype(np.float64))
        worth[case.low == case.high] = 0
        if not worth.any():
            return []
        index = int(worth.argmax())
        most = min(int(np.floor(shares[index])), int(case.high[index]) - 1)
        found = []
        for side, node in enumerate(self._split(case, index, most - int(case.low[index]))):
            child = _Case(case.low.copy(), case.high.copy(), node, case.least)
            (child.low if side else child.high)[index] = most + side
            self._look(child)
            found.append(child)
        return found

    def _certificate(self, root: _Node, target: int) -> Certificate:
        cost: dict[str, Any] = {"row": "cost", "of": self._question.objective.value}
        names = [resource.name for resource in self._question.resources]
        vectors, nodes, order = [[{**cost, "times": 1}]], list[dict[str, Any]](), [root]
        place = dict[int, int]()
        for node in order:
            for vector in node.use:
                if place.setdefault(id(vector), len(vectors)) == len(vectors):
                    pairs = zip(names, vector, strict=True)
                    rows = [{"row": "capacity", "of": name, "times": n} for name, n in pairs if n]
                    vectors.append([{**cost, "times": _ONE}, *rows])
            own: dict[str, Any] = {"use": [0] * (node is root) + [place[id(v)] for v in node.use]}
            if node.cases:
                own |= {"tables": node.tables, "counted": [1], "most": node.most}
                order += node.cases
            nodes.append(own)
        return Certificate("bound", target, tuple(vectors), tuple(nodes))
