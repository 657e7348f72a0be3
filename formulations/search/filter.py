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
from formulations.instance import Instance
from formulations.search.context import Context

BoolArray = NDArray[np.bool_]


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


def by_probing(context: Context, seconds: float, settings: AggregateSettings) -> bool:
    """Drop options that no solution of the aggregate model below the best plan uses.

    Again and again HiGHS is asked for a solution cheaper than the best plan with as many options
    not seen before as possible; when there is none, every option not seen goes. HiGHS works in
    floating point, so the row of the objective is given room of one part in a million.

    Returns
    -------
    bool
        Whether the filter came to its end (else nothing was dropped).
    """
    instance, upper = context.instance, context.objective
    assert upper is not None
    room = upper + int(upper * 1e-6)
    seen = np.zeros(instance.num_options, dtype=bool)
    end = context.clock.seconds() + seconds
    while not context.over() and context.clock.seconds() < end:
        aggregate = build(instance, replace(settings, keep=context.keep, upper=room, typical=room))
        model = aggregate.model
        fresh = {c: o for o, c in aggregate.column_of.items() if not seen[o]}
        model.objective = dict.fromkeys(fresh, -1)
        left = min(end - context.clock.seconds(), context.clock.remaining())
        result = solve_highs(
            model, whole=True, time_limit=left, workers=context.settings.workers,
            gap=0.5,
        )  # fmt: skip
        if result.status == "infeasible":
            context.keep = context.keep & False
            return True
        if result.bound is not None and result.bound > -0.5:
            context.keep = context.keep & seen
            return True
        if result.values is None:
            return False
        found = [o for c, o in fresh.items() if result.values[c] > 0.5]
        if not found:
            return False
        seen[found] = True
    return False
