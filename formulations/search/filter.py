"""Options that no plan better than the best known can use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from formulations.bounds.own import own_cost
from formulations.instance import Instance, IntArray
from formulations.model.build import Parts, build
from formulations.model.partition import by_class
from formulations.reduce import bounds_at
from formulations.result.certificate import Certificate
from formulations.search.context import Context
from formulations.solvers.answer import Found
from formulations.solvers.highs import solve_highs

BoolArray = NDArray[np.bool_]

#: Sets of options this small are not halved any further.
_SMALLEST = 12


def by_price(
    instance: Instance, certificate: Certificate, keep: BoolArray, upper: int
) -> BoolArray:
    """Drop options that lift the certificate's bound to ``upper`` or above (reduced-cost fixing).

    Exact in integers; the cheapest choices it is measured from leave out what alone costs
    ``upper`` or more.

    Parameters
    ----------
    certificate : Certificate
        Of kind ``bound``.
    keep : bool array [options]
        Options still in the game.
    upper : int
        Objective of the best plan known.

    Returns
    -------
    bool array [options]
    """
    cheap = keep & (own_cost(instance) < upper)
    return keep & bounds_at(instance, cheap, certificate).below(upper)


def core(instance: Instance, certificate: Certificate, keep: BoolArray, size: int) -> BoolArray:
    """The options that cost least by the certificate's prices, one a table and ``size`` more.

    A good plan mostly uses options of small reduced cost, so a search over these alone finds one
    far sooner (Balas and Zemel's core, Operations Research 28, 1980). Proofs need the others too.
    """
    if int(keep.sum()) <= size:
        return keep
    extra = max(0, size - instance.num_tables)
    return keep & bounds_at(instance, keep, certificate).cheapest(instance, extra)


def by_probing(context: Context, seconds: float, parts: Parts) -> int:
    """Drop options that no solution of the pooled model below the best plan uses.

    HiGHS is asked for a solution cheaper than the best plan with as many options of a set as
    possible that no solution has shown yet. When there is none, the whole set goes; when the
    answer does not come in time, the set is halved. HiGHS works in floating point, so the row of
    the objective is given room of one part in a million.

    Returns
    -------
    int
        Options dropped.
    """
    assert context.objective is not None
    before = int(context.keep.sum())
    room = context.objective + max(1, int(context.objective * 1e-6))
    base = replace(parts, limit=room, typical=room)
    end = context.clock.seconds() + seconds
    seen = np.zeros(context.instance.num_options, dtype=bool)
    seen[context.best.options if context.best is not None else []] = True
    queue = [np.flatnonzero(context.keep)]
    while queue and not context.over() and context.clock.seconds() < end:
        asked = queue.pop()
        asked = asked[~seen[asked]]
        if not len(asked):
            continue
        slice_ = min(end - context.clock.seconds(), max(0.5, seconds / 6))
        answer, shown = _probe(context, asked, base, slice_)
        if answer == "none":
            context.keep = context.keep.copy()
            context.keep[asked] = False
        elif answer == "some":
            seen[shown] = True
            queue.append(asked)
        elif len(asked) > _SMALLEST:
            half = len(asked) // 2
            queue += [asked[:half], asked[half:]]
    dropped = before - int(context.keep.sum())
    context.float_filtered = context.float_filtered or dropped > 0
    return dropped


def _probe(
    context: Context, asked: IntArray, parts: Parts, seconds: float
) -> tuple[str, list[int]]:
    """Whether some solution below the best plan uses an option asked for: none, some, unknown."""
    model = build(context.instance, by_class(context.instance), replace(parts, keep=context.keep))
    mine = np.isin(model.columns.candidates.option, asked)
    columns = model.columns.x[mine]
    model.linear.minimise(columns, np.full(len(columns), -1))
    model.linear.scale = 1
    limits = context.limits(seconds, workers=context.settings.workers, gap=0.5)
    result = solve_highs(model.linear, whole=True, limits=limits)
    if result.status == Found.INFEASIBLE or (result.bound is not None and result.bound >= 0):
        return "none", []
    if result.values is None:
        return "unknown", []
    taken = result.values[columns] > 0.5
    shown = model.columns.candidates.option[mine][taken].tolist()
    return ("some", shown) if shown else ("unknown", [])
