"""Branch and bound over the rows of a proof: lowest bound first, every step in integers."""

from __future__ import annotations

import heapq
import threading
import time
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from formulations.instance import Objective
from formulations.proof.packing import Packing
from formulations.proof.relaxation import Relaxation, Solved
from formulations.proof.rows import Rows
from formulations.proof.split import Homes, Split, candidates, ruled_out
from formulations.proof.weights import BigArray, Weights, choice_prices, option_prices, weights

Mask = np.ndarray
#: Larger than every sum of floors, which stay below 2^62.
_ABSENT = 2**62


def empty_table(rows: Rows, keep: Mask) -> bool:
    """Whether some table has no option left."""
    if not rows.instance.num_tables:
        return False
    return not np.logical_or.reduceat(keep, rows.instance.table_options[:-1]).all()


def bare(rows: Rows, keep: Mask, limit: int | None) -> Mask:
    """Apply the bare rule (docs/proof.md) until it removes nothing, or a table has no option."""
    instance, floor = rows.instance, rows.measures.floor
    if not instance.num_tables or not floor.shape[1]:
        return keep
    costs, start = len(rows.measures.costs), instance.table_options[:-1]
    peak = floor + rows.measures.excess
    while not empty_table(rows, keep):
        least = np.minimum.reduceat(np.where(keep[:, None], floor, _ABSENT), start)
        alone = peak + (least.sum(axis=0) - least)[instance.table_of]
        fits = (alone[:, costs:] <= rows.measures.most[costs:]).all(axis=1)
        if limit is not None and costs:
            fits &= alone[:, rows.measures.counted].sum(axis=1) <= limit
        if fits[keep].all():
            break
        keep = keep & fits
    return keep


def swept(rows: Rows, keep: Mask, prices: BigArray, right: int | float) -> tuple[Mask, int | float]:
    """Options that a weighted sum of rows does not exclude, and its least left-hand side.

    Parameters
    ----------
    rows : Rows
    keep : bool array [options]
    prices : object array [options]
        inf: the option has no place.
    right : int or float
        The right-hand side.
    """
    forced, total = forced_sums(rows, keep, prices)
    return keep & (forced <= right).astype(bool), total


def forced_sums(rows: Rows, keep: Mask, prices: BigArray) -> tuple[BigArray, int | float]:
    """The least left-hand side with each option in turn chosen, and the least over all choices.

    Parameters as for :func:`swept`; inf for options not kept, and where a table has no option.
    """
    instance, inf = rows.instance, float("inf")
    if not instance.num_tables:
        return prices, 0
    kept: BigArray = np.where(keep, prices, inf)
    least = np.minimum.reduceat(kept, instance.table_options[:-1])
    total = least.sum()
    if total == inf:
        return np.full(len(prices), inf, dtype=object), inf
    return kept + (total - least)[instance.table_of], int(total)


def _cost_alone(rows: Rows, limit: int | None) -> tuple[Weights | None, BigArray | None]:
    """Under ``total``, the cost as a vector of its own, which rules out options that cost more than
    the limit; with the choices' prices."""
    if limit is None or rows.instance.objective != Objective.TOTAL:
        return None, None
    vector = weights(rows, {rows.layout.cost: 1})
    return vector, choice_prices(rows, vector)


#: Most rounds of solving and sweeping at a node; a next round follows if one removes this share.
_ROUNDS, _WORTH = 6, 0.1
#: Most splits tried at a node, and most in a row that may fail to beat the best so far.
_TRIED, _PATIENCE = 30, 3
#: A child's progress, as a share of the distance to the target, counts as at least this.
_LITTLE = 1e-4
#: About the most steps that a checker may need for a proof, well below its limit.
_STEPS = 10_000_000


@dataclass(eq=False)
class Effort:
    """Limits of a search.

    Attributes
    ----------
    end : float
        When to stop, on the clock of ``time.monotonic``.
    stop : threading.Event or None
        Ends the search when set.
    nodes : float
        How many cases may still be split.
    """

    end: float
    stop: threading.Event | None
    nodes: float = float("inf")

    def over(self) -> bool:
        """Whether to stop."""
        stopped = self.stop is not None and self.stop.is_set()
        return stopped or self.nodes <= 0 or time.monotonic() >= self.end


@dataclass(eq=False)
class Node:
    """A case of the proof.

    Attributes
    ----------
    keep : bool array [options]
    homes : Homes
        Machines left to each table whose home was split.
    use : list of Weights
        Vectors that removed an option here.
    last : Weights or None
        The vector of its last linear program; ``prices`` are the choices' prices at it, and
        ``least`` is its least left-hand side.
    value : float
        A lower bound on the cost of this case, from the linear program.
    solved : Solved or None
        Its last linear program.
    split : Split or None
    pack : str or None
        The cost or resource by which packing closes it.
    children : list of Node
    closed : bool
    """

    keep: NDArray[np.bool_]
    homes: Homes
    use: list[Weights] = field(default_factory=list)
    last: Weights | None = None
    prices: BigArray | None = None
    least: int = 0
    value: float = float("-inf")
    solved: Solved | None = None
    split: Split | None = None
    pack: str | None = None
    children: list[Node] = field(default_factory=list)
    closed: bool = False


class Tree:
    """A search for a proof that no plan costs ``limit`` or less.

    Parameters
    ----------
    rows : Rows
    relaxation : Relaxation
    limit : int or None
        L; None: refute every plan.
    effort : Effort
    packing : Packing, optional
        Shared by several trees, so that a case that took too long in one gets less time later.
    """

    def __init__(
        self,
        rows: Rows,
        relaxation: Relaxation,
        limit: int | None,
        effort: Effort,
        packing: Packing | None = None,
        counts: bool = False,
    ) -> None:
        self._counts = counts
        self.rows, self.limit = rows, limit
        self._relaxation, self._effort = relaxation, effort
        self._packing = packing or Packing(rows.instance, rows.measures)
        self._alone = _cost_alone(rows, limit)
        self._seen: dict[tuple[int, bool], list[float]] = {}
        self.nodes, self.steps = 0, 0
        self.root = Node(rows.possible.copy(), {})
        self._look(self.root)
        self._settle(self.root)
        self._pack(self.root)
        self._open = [] if self.root.closed else [(self.root.value, 0, self.root)]
        self.stuck = False

    @property
    def closed(self) -> bool:
        """Whether the proof is complete."""
        return not self._open

    def leaves(self) -> list[Node]:
        """The open cases."""
        return [node for _, _, node in self._open]

    def run(self) -> None:
        """Split the case with the lowest bound until none is open, no split is left or a limit is
        reached."""
        while self._open and not self._effort.over() and not self.stuck and self.steps < _STEPS:
            node = self._open[0][2]
            self.stuck = not self._branch(node)
            if not self.stuck:
                heapq.heappop(self._open)
                self._effort.nodes -= 1
                for child in node.children:
                    if not child.closed:
                        self.nodes += 1
                        heapq.heappush(self._open, (child.value, self.nodes, child))

    def _branch(self, node: Node) -> bool:
        """Try several splits and keep the best; False when there is nothing to split."""
        best: tuple[float, Split, list[Node]] | None = None
        shares = None if node.solved is None else node.solved.shares
        if node.solved is not None:
            self._relaxation.restart(node.solved)
        splits = candidates(self.rows, node.keep, node.homes, shares, self._counts)
        since = 0
        for place, split in self._hopeful(splits):
            cases = split.cases(self.rows, node.keep, node.homes)
            children = [self._child(node, keep, homes) for keep, homes in cases]
            score, since = self._score(node, children, place), since + 1
            self._seen.setdefault((split.table, bool(split.options)), []).append(score)
            if best is None or score > best[0]:
                best, since = (score, split, children), 0
            enough = since >= _PATIENCE and best[0] > _LITTLE
            if enough or score >= 1.0 or self._effort.over():
                break
        if best is None:
            return False
        _, node.split, node.children = best
        for child in node.children:
            self._settle(child)
            self._pack(child)
            self.steps += int(node.keep.sum()) * (2 + 3 * len(child.use))
        return True

    def _hopeful(self, splits: list[Split]) -> list[tuple[int, Split]]:
        """The splits to try, in order of the mean score of the same table's earlier splits.

        Splits of other tables are ranked by their place in the list.
        """
        means = {key: sum(seen) / len(seen) for key, seen in self._seen.items()}
        usual = sum(means.values()) / max(1, len(means))
        hopes = {
            i: means.get((split.table, bool(split.options)), 2 * usual / (1 + i))
            for i, split in enumerate(splits)
        }
        return [(i, splits[i]) for i in sorted(hopes, key=lambda i: -hopes[i])[:_TRIED]]

    def _score(self, node: Node, children: list[Node], place: int) -> float:
        """Product of the children's gains; without any gain, earlier splits in the list score
        higher."""
        little = _LITTLE / (1 + place)
        reach = 1.0 if self.limit is None else max(1.0, self.limit + 1 - node.value)
        gains = [reach if c.closed else min(reach, c.value - node.value) for c in children]
        return float(np.prod([max(g / reach, little) for g in gains]))

    def _child(self, parent: Node, keep: NDArray[np.bool_], homes: Homes) -> Node:
        """A new case, with its parent's multipliers and one linear program applied."""
        node = Node(keep, homes, last=parent.last, prices=parent.prices, value=parent.value)
        self._look(node)
        return node

    def _look(self, node: Node) -> None:
        self._bare(node)
        for vector, prices in (self._alone, (node.last, node.prices)):
            if vector is not None and not node.closed:
                self._sweep(node, vector, prices)
        if not node.closed and not self._effort.over():
            self._solve(node)

    def _settle(self, node: Node) -> None:
        """Sweep with the multipliers of the last linear program, solve again, and so on.

        A case that has no multipliers yet gets some even when the time is over.
        """
        for turn in range(_ROUNDS):
            late = self._effort.over() and (turn > 0 or node.last is not None)
            if node.closed or late or (turn and not self._solve(node)):
                return
            count, solved = int(node.keep.sum()), node.solved
            vector = None if solved is None else self._relaxation.vector(solved)
            if vector is None:
                return
            prices = choice_prices(self.rows, vector)
            if solved is not None and solved.shares is not None:
                node.last, node.prices = vector, prices
            self._sweep(node, vector, prices)
            if node.keep.sum() > (1 - _WORTH) * count:
                return

    def _pack(self, node: Node) -> None:
        """Close the case if its shards cannot be packed into the ranks."""
        if not node.closed:
            node.pack = self._packing.refutes(node.keep, self.limit)
            node.closed = node.pack is not None
            self.steps += self._packing.spent if node.closed else 0

    def _bare(self, node: Node) -> None:
        node.keep = bare(self.rows, node.keep, self.limit)
        node.closed = empty_table(self.rows, node.keep)

    def _solve(self, node: Node) -> bool:
        upper = np.ones(len(self.rows.start) - 1)
        count = self.rows.instance.num_options
        upper[:count] = node.keep
        upper[count:] = np.repeat(self.rows.slot_times, np.diff(self.rows.slot_start))
        upper[ruled_out(self.rows, node.homes)] = 0.0
        solved = self._relaxation.solve(upper, self._effort.end - time.monotonic())
        if solved is None:
            return False
        node.solved = solved
        node.value = max(node.value, solved.value)
        return True

    def _sweep(self, node: Node, vector: Weights, choices: BigArray | None) -> None:
        """Apply a vector; record it if it removed an option."""
        assert choices is not None
        prices = option_prices(self.rows, choices, ruled_out(self.rows, node.homes))
        left, least = swept(self.rows, node.keep, prices, vector.right(self.limit))
        if vector is node.last and least != float("inf"):
            node.least = int(least)
        if (self.limit is None and vector.level) or (left == node.keep).all():
            return
        node.keep = left
        node.use.append(vector)
        self._bare(node)
