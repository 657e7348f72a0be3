"""Plan again with a price on every byte that moves."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction

from formulations import Outcome, Settings, solve
from formulations.priced import priced, with_moving
from formulations.reduce import NEVER, bounds_at
from formulations.result.certify import CERTIFICATE, with_certificate
from formulations.result.outcome import StoppedBy, found
from formulations.search.near import settled
from milp_planner.plans.compile import Compiled
from milp_planner.plans.moving import Moving


def solve_moving(
    compiled: Compiled, price: Fraction, formulation: str, settings: Settings
) -> tuple[Outcome, Moving] | None:
    """The plan with the least objective + price of moves; None if no plan was found.

    It is returned as an outcome of the Instance without the price, and as one with it. Both
    certificates cover all plans.
    """
    began, model = time.monotonic(), priced(compiled.instance, price)
    hint = settings.hint
    if hint is not None:
        hint = settled(
            compiled.instance, hint, settings.prices, stop=settings.stop.is_set, seed=settings.seed
        )
    prices = None if settings.prices is None else with_moving(settings.prices, model.instance)
    limit = settings.time_limit
    left = None if limit is None else max(0.0, limit - (time.monotonic() - began))
    outcome = solve(
        model.instance,
        formulation,
        replace(
            settings,
            hint=None if hint is None else model.with_price(hint),
            prices=prices,
            time_limit=left,
        ),
    )
    if outcome.placement is None:
        return None
    ended = outcome.stopped_by
    # the proof is about objective + price: the objective alone may still be lower
    if ended in (StoppedBy.PROOF, StoppedBy.GAP):
        ended = StoppedBy.EXHAUSTED
    plain = found(
        compiled.instance, formulation, model.without_price(outcome.placement),
        ended, seconds=outcome.seconds, settings=outcome.settings,
        solver=outcome.solver, version=outcome.version,
    )  # fmt: skip
    return _bounded(compiled, plain, settings), Moving(price, outcome)


def _bounded(compiled: Compiled, plain: Outcome, settings: Settings) -> Outcome:
    """The outcome with the bound that the given multipliers prove on the objective alone."""
    instance, prices = compiled.instance, settings.prices
    if prices is None or not settings.certificate or not instance.num_tables:
        return plain
    bound = bounds_at(instance, instance.allowed, prices).bound
    if bound == NEVER:
        return plain
    bounded = plain.with_(bound=bound, bound_source=CERTIFICATE)
    return with_certificate(instance, bounded, replace(prices, target=bound))
