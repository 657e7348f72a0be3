"""Options that no plan better than the best known can use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from formulations.aggregate.highs import solve_highs
from formulations.aggregate.model import AggregateSettings, build
from formulations.bounds.components import components
from formulations.bounds.lagrangian import priced_options
from formulations.certificate import Certificate, bound_of
from formulations.instance import Instance, IntArray
from formulations.search.context import Context

BoolArray = NDArray[np.bool_]

#: Sets of options this small are not halved any further.
_SMALLEST = 12


def by_price(
    instance: Instance, certificate: Certificate, keep: BoolArray, upper: int
) -> BoolArray:
    """Drop options whose Lagrangian reduced cost lifts the bound to ``upper`` or above.

    Exact in integers (reduced-cost fixing); tables fused with others are left alone.

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
    plain = Certificate(
        certificate.kind, certificate.denominator, certificate.prices, certificate.weights
    )
    base = bound_of(instance, plain)
    values = priced_options(instance, plain)
    result = keep.copy()
    # Bounds are rounded up, hence the + 1: (base − 1)·D is below the true dual value.
    slack = (upper - 1 - (base - 1)) * plain.denominator
    for tables, groups in components(instance, keep):
        if groups or len(tables) != 1:
            continue
        options = [o for o in instance.options_of(tables[0]) if keep[o]]
        least = min((values[o] for o in options), default=0)
        for option in options:
            if values[option] - least > slack:
                result[option] = False
    return result


def by_probing(context: Context, seconds: float, settings: AggregateSettings) -> int:
    """Drop options that no solution of the aggregate model below the best plan uses.

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
    base = replace(settings, upper=room, typical=room)
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
    context: Context, asked: IntArray, settings: AggregateSettings, seconds: float
) -> tuple[str, list[int]]:
    """Whether some solution below the best plan uses an option asked for: none, some, unknown."""
    aggregate = build(context.instance, replace(settings, keep=context.keep))
    columns = {aggregate.column_of[o]: o for o in asked.tolist()}
    aggregate.model.objective = dict.fromkeys(columns, -1)
    result = solve_highs(
        aggregate.model,
        whole=True,
        time_limit=min(seconds, context.clock.remaining()),
        workers=context.settings.workers,
        gap=0.5,
    )
    if result.status == "infeasible" or (result.bound is not None and result.bound > -0.5):
        return "none", []
    if result.values is None:
        return "unknown", []
    shown = [o for c, o in columns.items() if result.values[c] > 0.5]
    return ("some", shown) if shown else ("unknown", [])
