"""Make certificates: bounds, optimality and infeasibility as trees of multipliers.

First, ranks that are alike are pooled: that linear program is small and, where memory is tight,
proves the optimum within a second. Where it does not, a second tree distinguishes the machines.
The best bound so far is kept, so there is a certificate whenever the time ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np

from formulations.instance import Instance, Objective
from formulations.proof.build import build_rows
from formulations.proof.packing import Packing
from formulations.proof.relaxation import Relaxation
from formulations.proof.rows import Rows
from formulations.proof.tree import Effort, Node, Tree
from formulations.proof.weights import Weights, vector_to_list
from formulations.result.certificate import Certificate

#: Most targets tried at the root, and with trees; targets that differ by less than the share
#: ``_NEAR`` count as equal.
_ROOTS, _TREES, _NEAR = 14, 6, 1e-5
#: Steps of packing for all roots together: few, because a search waits for them.
_STEPS = 10_000
#: Seconds that the first linear program gets even if less time is left.
_LEAST = 1.0
#: Share of the time for the linear program that tells ranks that differ apart.
_CLASSES = 0.5
#: Seconds that trees get where the root already certifies the plan's cost to within ``_NEAR``.
_LAST = 1.0
#: Most cases split where there is no time limit, and where equal tables are counted.
_NODES, _COUNTED = 200, 1_000
#: Without a plan, targets up to this multiple of the first bound are tried.
_FAR = 8
#: Machines are distinguished where options × machines is at most this; before that, the tree over
#: pooled ranks gets this share of the time.
_APART, _POOLED = 5_000, 0.3


def prove(
    instance: Instance,
    upper: int | None,
    seconds: float | None = None,
    least: int | None = None,
    counts: bool = False,
) -> Certificate | None:
    """Certify as high a bound on the cost of every plan as the time allows.

    Parameters
    ----------
    instance : Instance
    upper : int or None
        Objective of a known plan. No bound can exceed it, so the search stops there.
    seconds : float, optional
        Time limit. Without one the search ends after a fixed number of cases and is reproducible.
    least : int, optional
        Trees aim at bounds above this one.
    counts : bool
        Whether trees also split by how many of some equal tables take some options.

    Returns
    -------
    Certificate or None
        Of kind ``bound``; None when nothing was found in time.
    """
    if not instance.num_tables:
        return _nothing_to_place(instance)
    search = _Search(
        instance,
        upper,
        _effort(seconds, None, _COUNTED if counts else _NODES),
        least=least,
        counts=counts,
    )
    search.plain()
    search.roots()
    if upper is not None:
        several = len(instance.machines)
        apart = several > 1 and several * instance.num_options <= _APART
        search.trees(*((1, _POOLED) if apart else (_TREES, 1.0)))
        if apart and not search.done():
            search.tell_machines_apart()
            search.trees(_TREES, 1.0)
    return search.certificate()


@dataclass(frozen=True, eq=False)
class SymmetricLP:
    """The linear program over pooled ranks, at the target that gives the highest certified bound.

    Attributes
    ----------
    certificate : Certificate
    bound : int
        What the certificate proves.
    value : float
        Objective of the program over the whole instance, floating point.
    shares : dict of option to float
        Value of each option's variable, where it is positive.
    """

    certificate: Certificate
    bound: int
    value: float
    shares: dict[int, float]


def symmetric_lp(
    instance: Instance,
    upper: int | None = None,
    time_limit: float | None = None,
    stop: threading.Event | None = None,
    targets: bool = True,
) -> SymmetricLP | None:
    """Solve the linear program and certify what its multipliers prove.

    A plan cheaper than a target T uses only options that alone cost less than T. So a bound over
    these options, if it is at most T, bounds every plan. Bisection (``targets``) finds the T that
    gives the highest bound.

    Parameters
    ----------
    instance : Instance
    upper : int, optional
        Objective of a known plan.
    time_limit : float, optional
        Seconds.
    stop : threading.Event, optional
    targets : bool

    Returns
    -------
    SymmetricLP or None
        None when the program has no solution, or was not solved in time.
    """
    if not instance.num_tables:
        return SymmetricLP(_nothing_to_place(instance), 0, 0.0, {})
    search = _Search(instance, upper, _effort(time_limit, stop), alike=True)
    root = search.plain()
    if targets:
        search.roots()
    certificate = search.certificate()
    if root is None or certificate is None or certificate.target is None:
        return None
    shares = None if root.solved is None else root.solved.shares
    if shares is None:
        return None
    options = shares[: instance.num_options]
    chosen = {int(o): float(options[o]) for o in np.flatnonzero(options > 1e-9)}
    return SymmetricLP(certificate, certificate.target, root.value, chosen)


def prove_infeasible(
    instance: Instance, seconds: float | None = None, stop: threading.Event | None = None
) -> Certificate | None:
    """Certify that there is no plan; None where no such certificate was found in time."""
    effort = _effort(seconds, stop)
    if not instance.num_tables:
        return None
    for rows, allowed in _views(instance, effort):
        tree = Tree(rows, Relaxation(rows, _typical(instance)), None, allowed)
        tree.run()
        if tree.closed:
            return _Proof(rows, tree, None).certificate("infeasible", [])
        if effort.over():
            break
    return None


def _views(instance: Instance, effort: Effort) -> Iterator[tuple[Rows, Effort]]:
    """Rows that distinguish more and more, and the effort that each is worth. Where ranks differ,
    the program that pools them may be far smaller than the one that tells them apart."""
    together, rows = _together(instance), build_rows(instance)
    if together.cells.count < rows.cells.count:
        yield together, _part(effort, _CLASSES, float("inf"))
    yield rows, effort
    if len(instance.machines) > 1:
        yield build_rows(instance, apart=True), effort


def _together(instance: Instance) -> Rows:
    """Rows that pool all ranks, or all that are alike where costs may be negative: then the ranks
    with the least use need not have the least cost."""
    return build_rows(instance, together=int(instance.shard_cost.min(initial=0)) == 0)


def _nothing_to_place(instance: Instance) -> Certificate:
    """The certificate of an instance without tables, whose cost is 0."""
    name = instance.phases[0] if instance.by_phase else instance.objective.value
    return Certificate("bound", 0, ([{"row": "cost", "of": name, "times": 1}],), ({"use": [0]},))


def _effort(seconds: float | None, stop: threading.Event | None, nodes: int = _NODES) -> Effort:
    if seconds is None:
        return Effort(float("inf"), stop, nodes)
    return Effort(time.monotonic() + seconds, stop)


def _typical(instance: Instance) -> int:
    """A cost to scale by while no bound is known."""
    top = int(abs(instance.shard_cost).max(initial=1))
    return max(1, top)


@dataclass(frozen=True, eq=False)
class _Proof:
    """A tree that certifies ``target``."""

    rows: Rows
    tree: Tree
    target: int | None

    def certificate(self, kind: str, first: list[list[dict[str, Any]]]) -> Certificate:
        """The certificate, with the vectors that its nodes use (after those given).

        A checker removes options that have no place whenever it applies a vector, so where there
        are such options the root also uses a vector of zeros.
        """
        vectors: dict[int, Weights] = {}
        place: dict[int, int] = {}
        order: list[Node] = [self.tree.root]
        nodes: list[dict[str, Any]] = []
        for node in order:
            use = list(node.use)
            if not node.children and not node.closed and node.last is not None:
                use = [*(v for v in use if v is not node.last), node.last]
            vectors.update({id(v): v for v in use})
            item: dict[str, Any] = {}
            if use:
                item["use"] = [place.setdefault(id(v), len(first) + len(place)) for v in use]
            if node.pack is not None:
                item["pack"] = node.pack
            if node.split is not None and not node.closed:
                item |= node.split.to_dict()
                order += node.children
            nodes.append(item)
        written = [*first, *(vector_to_list(self.rows, vectors[i]) for i in place)]
        if (self.rows.instance.allowed & ~self.rows.possible).any():
            nodes[0]["use"] = [len(written), *nodes[0].get("use", [])]
            written.append([])
        return Certificate(kind, self.target, tuple(written), tuple(nodes))


def _part(effort: Effort, share: float, most: float) -> Effort:
    """A share of the time and cases left, at most ``most`` seconds."""
    left = share * (effort.end - time.monotonic())
    end = effort.end if left == float("inf") else time.monotonic() + min(left, most)
    return Effort(end, effort.stop, effort.nodes * share)


class _Search:
    """Tries one target after another; ``best`` is the proof of the highest target so far. With
    ``alike``, programs count equal tables as one: good for roots, as trees tell them apart."""

    def __init__(
        self,
        instance: Instance,
        upper: int | None,
        effort: Effort,
        alike: bool = False,
        least: int | None = None,
        counts: bool = False,
    ) -> None:
        self._instance, self._upper, self._effort = instance, upper, effort
        self._least, self._counts = least, counts
        self._typical = upper or _typical(instance)
        self._rows, self._alike = _together(instance), alike
        self._relaxation = Relaxation(self._rows, self._typical, alike)
        self._packing = Packing(instance, self._rows.measures, _STEPS)
        self._first: list[list[dict[str, Any]]] = []
        self.best: _Proof | None = None

    def done(self) -> bool:
        """Whether no higher bound can be certified, or the time is over."""
        reached = self._bound() is not None and self._upper is not None
        return self._effort.over() or (reached and (self._bound() or 0) >= (self._upper or 0))

    def _bound(self) -> int | None:
        return None if self.best is None else self.best.target

    def plain(self) -> Node | None:
        """Solve the linear program of the whole instance: it gives prices for any target and a
        bound. Where ranks differ, those are pooled first, and told apart if that program, which may
        be far larger, is solved within a share of the time."""
        root = self._solved(_LEAST)
        rows = build_rows(self._instance)
        if rows.cells.count == 1 or self.done():
            return root
        whole, pooled = self._effort, (self._rows, self._relaxation, self._first)
        self._rows, self._relaxation = rows, Relaxation(rows, self._typical, self._alike)
        self._effort = _part(whole, _CLASSES, float("inf"))
        finer = self._solved(0.0)
        self._effort = whole
        if finer is not None and isfinite(finer.value):
            return finer
        self._rows, self._relaxation, self._first = pooled
        return root

    def _solved(self, least: float) -> Node | None:
        """The root over the rows at hand; None without a bound."""
        soonest = max(self._effort.end, time.monotonic() + least)
        tree = Tree(self._rows, self._relaxation, None, replace(self._effort, end=soonest))
        root = tree.root
        if tree.closed or root.last is None or not root.last.level:
            return None
        self._first = [vector_to_list(self._rows, root.last)]
        target = _reached(root, root.last)
        if self._instance.objective == Objective.PIPELINED_STEP:
            target = max(0, target)  # where all is hidden, the rows alone prove less
        self._keep(tree, target if self._upper is None else min(target, self._upper))
        return root

    def roots(self) -> None:
        """Find the highest target that the root certifies without a tree, by bisection.

        A high target rules out fewer options; a low one claims less.
        """
        low = self._bound()
        if self._instance.objective == Objective.TOTAL:
            return
        high = self._upper if self._upper is not None else _FAR * max(1, low or self._typical)
        if low is None:
            low = 0
        target = high
        for _ in range(_ROOTS):
            if self.done() or high - low <= 1 + int(high * _NEAR):
                return
            if self._try(target, run=False):
                low = target
            else:
                high = target
                low = max(low, self._bound() or 0)
            target = (low + high) // 2

    def trees(self, most: int, share: float) -> None:
        """Grow trees for the plan's cost; where they fail, for targets between it and the bound."""
        assert self._upper is not None
        whole, high = self._effort, self._upper
        self._effort = _part(whole, share, _LAST if self._near(high) else float("inf"))
        target = high
        for _ in range(most):
            if self.done():
                break
            if not self._try(target, run=True):
                high = target
            low = self._bound()
            if low is None or self._near(high):
                break
            low = low if self._least is None else max(low, self._least)
            target = (low + high) // 2
        self._effort = whole

    def _near(self, high: int) -> bool:
        """Whether the certified bound is within the share ``_NEAR`` of this cost."""
        low = self._bound()
        return low is not None and high - low <= 1 + int(abs(high) * _NEAR)

    def tell_machines_apart(self) -> None:
        """From now on distinguish machines: every table has a home machine."""
        self._rows = build_rows(self._instance, apart=True)
        self._relaxation = Relaxation(self._rows, self._typical)

    def _try(self, target: int, run: bool) -> bool:
        """Whether the tree certifies the target; a lower bound that it proves is kept too."""
        packing = None if run else self._packing
        tree = Tree(self._rows, self._relaxation, target - 1, self._effort, packing, self._counts)
        if run:
            tree.run()
        if tree.closed:
            self._keep(tree, target)
            return True
        reached = [
            _reached(leaf, leaf.last) for leaf in tree.leaves()
            if leaf.last is not None and leaf.last.level
        ]  # fmt: skip
        if len(reached) == len(tree.leaves()):
            self._keep(tree, min(target, *reached))
        return False

    def _keep(self, tree: Tree, target: int) -> None:
        if self.best is None or target > (self.best.target or 0):
            self.best = _Proof(self._rows, tree, target)

    def certificate(self) -> Certificate | None:
        """The best proof as a certificate."""
        return None if self.best is None else self.best.certificate("bound", self._first)


def _reached(node: Node, vector: Weights) -> int:
    """The highest target for which a vector closes a case."""
    return -((vector.room - node.least) // vector.level)
