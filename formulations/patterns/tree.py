"""Can patterns form a plan at a target? Branch on options until every case is closed.

A case keeps some options. If integer weights from its linear program close a case, it is a leaf of
a certificate; if the program takes whole options, they are a choice to pack.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from formulations.instance import IntArray
from formulations.instance.facts import per_option
from formulations.patterns.found import Mask
from formulations.patterns.master import Master, Solved
from formulations.patterns.portions import Portions
from formulations.patterns.weigh import closing_row
from formulations.result.certificate import Certificate

_WHOLE = 1e-6


@dataclass(eq=False)
class Case:
    """A node: options kept, and how it is closed or split."""

    keep: Mask
    row: dict[str, Any] | None = None
    table: int = -1
    lists: list[list[int]] = field(default_factory=list)
    children: list[Case] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Decision:
    """What is known about a target.

    Attributes
    ----------
    certificate : Certificate or None
        Proves that every plan costs more than the target.
    options : int64 array [tables] or None
        A choice of options whose linear program needs no more ranks than there are.
    """

    certificate: Certificate | None = None
    options: IntArray | None = None


def decide(
    portions: Portions,
    target: int,
    patterns: set[tuple[int, ...]],
    over: Callable[[], bool],
    cases: int = 1,
    fits: bool = False,
) -> Decision:
    """Refute a target, or find options for it, within a number of cases; depth first.

    Nothing is decided (both fields are None) where a case stays open, or ``over`` stops the search.
    With ``fits``, patterns respect memory as well: this looks for options and certifies nothing.
    """
    instance = portions.instance
    keep = np.zeros(instance.num_options, dtype=np.bool_)
    keep[portions.option] = True
    keep[portions.option[(portions.load > target) & (portions.copies == 1)]] = False
    master = Master(portions, target, patterns, over)
    root = Case(keep)
    stack, certified = [root], not fits
    while stack and cases:
        case, cases = stack.pop(), cases - 1
        if not np.logical_or.reduceat(case.keep, instance.table_options[:-1]).all():
            continue
        solved = master.solve(case.keep, fits)
        if solved is None:
            return Decision()
        if solved.ranks > instance.num_ranks + _WHOLE:
            if certified:
                case.row = closing_row(portions, solved.weight, target, case.keep)
                certified = case.row is not None
            continue
        table = _least_whole(portions, solved)
        if table is None:
            return Decision(options=_chosen(portions, solved, case.keep))
        _split(portions, solved, case, table)
        stack += case.children[::-1]
    done = certified and not stack
    return Decision(_written(portions, root, target + 1)) if done else Decision()


def _least_whole(portions: Portions, solved: Solved) -> int | None:
    """The table whose shares of options are the most fractional; None where all are whole."""
    apart = np.minimum(solved.shares, np.abs(1 - solved.shares))
    each = np.add.reduceat(apart, portions.instance.table_options[:-1])
    return int(each.argmax()) if each.max() > _WHOLE else None


def _chosen(portions: Portions, solved: Solved, keep: Mask) -> IntArray:
    worth = np.where(keep, solved.shares, -1.0)
    starts = portions.instance.table_options
    return np.asarray(
        [a + int(worth[a:b].argmax()) for a, b in itertools.pairwise(starts.tolist())],
        dtype=np.int64,
    )


def _split(portions: Portions, solved: Solved, case: Case, table: int) -> None:
    """Split a table's options into those with few and those with many shards, at the mean number
    that the program takes; where that separates nothing, set one option apart.

    The side with the larger share comes first.
    """
    instance = portions.instance
    options = np.arange(*instance.table_options[table : table + 2])
    shards = per_option(instance, portions.number).astype(float)
    left, share = options[case.keep[options]], solved.shares
    mean = float(shards[left] @ share[left] / max(share[left].sum(), 1e-9))
    few = shards[left] <= mean
    if few.all() or not few.any():
        few = left == left[share[left].argmax()]
    sides = [left[few], left[~few]]
    sides.sort(key=lambda side: -float(share[side].sum()))
    case.table = table
    for side in sides:
        keep = case.keep.copy()
        keep[options] = False
        keep[side] = True
        case.children.append(Case(keep))
        case.lists.append([int(o - options[0]) for o in side])


def _written(portions: Portions, root: Case, target: int) -> Certificate:
    """The certificate: the cases as nodes, in the order of docs/proof.md.

    No case lists the options that patterns leave out: they have no place, or alone cost more than
    the target.
    """
    vectors: list[list[dict[str, Any]]] = []
    nodes: list[dict[str, Any]] = []
    order = [root]
    for case in order:
        node: dict[str, Any] = {}
        if case.row is not None:
            node["use"] = [len(vectors)]
            vectors.append([case.row])
        elif case.children:
            node |= {"table": case.table, "options": case.lists}
            order += case.children
        nodes.append(node)
    return Certificate("bound", target, tuple(vectors), tuple(nodes))
