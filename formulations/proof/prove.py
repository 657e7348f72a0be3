"""Make certificates: bounds, optimality and infeasibility as trees of multipliers.

Ranks alike are pooled first: that program is small and closes in a second where memory is tight.
What it leaves open, machines told apart may close. Every bound found on the way is kept, so
whenever the time ends there is a certificate of the best.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
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

#: Targets tried at the root, and for trees; targets closer than this share are as good as equal.
_ROOTS, _TREES, _NEAR = 14, 6, 1e-5
#: Steps of packing at first, of all roots: a search waits for them.
_STEPS = 10_000
#: Seconds that the first linear program is given however little time there is.
_LEAST = 1.0
#: And that trees are given where the root certifies as good as all.
_LAST = 1.0
#: Cases split at most where the time is not limited.
_NODES = 200
#: Without a plan, bounds up to this multiple of the first are tried.
_FAR = 8
#: Options times machines up to which machines are told apart, and the share of the time for the
#: tree over pooled ranks before that.
_APART, _POOLED = 5_000, 0.3


def prove(
    instance: Instance, upper: int | None, seconds: float | None = None
) -> Certificate | None:
    """The best bound on every plan that can be certified in the time.

    Parameters
    ----------
    instance : Instance
    upper : int or None
        Objective of a known plan: no bound above it is looked for, and none is needed.
    seconds : float, optional
        Without a limit, it ends after a number of cases and is reproducible.

    Returns
    -------
    Certificate or None
        Of kind ``bound``; None when nothing was found in time.
    """
    if not instance.num_tables:
        return _nothing_to_place(instance)
    search = _Search(instance, upper, _effort(seconds, None))
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
    """The linear program with like ranks pooled, at the target that certifies most.

    Attributes
    ----------
    certificate : Certificate
    bound : int
        What the certificate proves.
    value : float
        Objective of the program over the whole instance, floating point.
    shares : dict of option to float
        Share of each option with a positive share in it.
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

    A plan below a target T uses only options that alone cost less than T, so a bound over those
    is one on every plan as far as it stays below T: bisection (``targets``) finds the T that
    certifies most.

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
    search = _Search(instance, upper, _effort(time_limit, stop))
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
    """A certificate that there is no plan, or None where none was found in time."""
    effort = _effort(seconds, stop)
    if not instance.num_tables:
        return None
    for apart in (False, True) if len(instance.machines) > 1 else (False,):
        rows = build_rows(instance, apart)
        tree = Tree(rows, Relaxation(rows, _typical(instance)), None, effort)
        tree.run()
        if tree.closed:
            return _Proof(rows, tree, None).certificate("infeasible", [])
    return None


def _nothing_to_place(instance: Instance) -> Certificate:
    """Without tables every cost is 0, and that is all there is to prove."""
    single = instance.objective != Objective.STEP_TIME
    name = instance.objective.value if single else instance.phases[0]
    return Certificate("bound", 0, ([{"row": "cost", "of": name, "times": 1}],), ({"use": [0]},))


def _effort(seconds: float | None, stop: threading.Event | None) -> Effort:
    if seconds is None:
        return Effort(float("inf"), stop, _NODES)
    return Effort(time.monotonic() + seconds, stop)


def _typical(instance: Instance) -> int:
    """A cost to scale by where no bound is known yet."""
    top = int(abs(instance.shard_cost).max(initial=1))
    return max(1, top)


@dataclass(frozen=True, eq=False)
class _Proof:
    """A tree that certifies ``target``."""

    rows: Rows
    tree: Tree
    target: int | None

    def certificate(self, kind: str, first: list[list[dict[str, Any]]]) -> Certificate:
        """Written down, with the vectors that nodes use (after those given).

        Options that have no place go when a vector is applied, be it one of zeros.
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
    """A share of what is left, of seconds no more than ``most``."""
    left = share * (effort.end - time.monotonic())
    end = effort.end if left == float("inf") else time.monotonic() + min(left, most)
    return Effort(end, effort.stop, effort.nodes * share)


class _Search:
    """Targets tried one after another; ``best`` is the proof of the highest."""

    def __init__(self, instance: Instance, upper: int | None, effort: Effort) -> None:
        self._instance, self._upper, self._effort = instance, upper, effort
        self._typical = upper or _typical(instance)
        self._rows = build_rows(instance)
        self._relaxation = Relaxation(self._rows, self._typical)
        self._packing = Packing(instance, self._rows.measures, _STEPS)
        self._first: list[list[dict[str, Any]]] = []
        self.best: _Proof | None = None

    def done(self) -> bool:
        """Whether nothing better can be certified, or there is no time."""
        reached = self._bound() is not None and self._upper is not None
        return self._effort.over() or (reached and (self._bound() or 0) >= (self._upper or 0))

    def _bound(self) -> int | None:
        return None if self.best is None else self.best.target

    def plain(self) -> Node | None:
        """The linear program of the whole instance: prices for any target, and a first bound."""
        soonest = max(self._effort.end, time.monotonic() + _LEAST)
        tree = Tree(self._rows, self._relaxation, None, replace(self._effort, end=soonest))
        root = tree.root
        if tree.closed or root.last is None or not root.last.level:
            return None
        self._first = [vector_to_list(self._rows, root.last)]
        target = _reached(root, root.last)
        self._keep(tree, target if self._upper is None else min(target, self._upper))
        return root

    def roots(self) -> None:
        """The target the root alone certifies: large ones rule out less, small ones claim less."""
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
        """Trees at the plan's own cost; where that fails, between it and what is certified."""
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
            target = (low + high) // 2
        self._effort = whole

    def _near(self, high: int) -> bool:
        """Whether what is certified is as good as this cost."""
        low = self._bound()
        return low is not None and high - low <= 1 + int(abs(high) * _NEAR)

    def tell_machines_apart(self) -> None:
        """From here on, a table has a home."""
        self._rows = build_rows(self._instance, apart=True)
        self._relaxation = Relaxation(self._rows, self._typical)

    def _try(self, target: int, run: bool) -> bool:
        """Whether the target itself is certified; what falls short of it is kept as well."""
        packing = None if run else self._packing
        tree = Tree(self._rows, self._relaxation, target - 1, self._effort, packing)
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
        """The best proof, written down."""
        return None if self.best is None else self.best.certificate("bound", self._first)


def _reached(node: Node, vector: Weights) -> int:
    """The target up to which a case is closed by its last vector."""
    return -((vector.room - node.least) // vector.level)
