"""Few moves by default: a re-plan gives up half a percent of the objective for bytes that stay.

The best plan is searched first: its objective says what may be given up. Then moved bytes are a
goal like any other (:mod:`formulations.goals.seek`), within that tolerance.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from formulations import Instance, Outcome, Settings, solve
from formulations.clock import Clock
from formulations.evidence.certify import CERTIFICATE, with_certificate
from formulations.goals.seek import improve
from formulations.instance.facts import bytes_to_move
from formulations.priced import Priced, priced, with_moving
from formulations.reduce import NEVER, bounds_at
from formulations.result.outcome import StoppedBy, found
from formulations.search.near import settled
from formulations.settings import MOVED_BYTES, Goals
from milp_planner.plans.compile import Compiled
from milp_planner.plans.moving import Moving

#: Share of the time limit kept for few moves.
KEPT_SHARE = 0.4
#: Share of the first search for plans that move at most this share of the bytes.
NEARBY, NEARBY_BYTES = 0.25, 0.2
#: What is kept is no longer than the first search took, but at least this many seconds.
LEAST_SECONDS = 3.0


def left_for_objective(settings: Settings, kept: float = KEPT_SHARE) -> Settings:
    """The settings of the first search, where a share of the limit is kept."""
    return limited(settings, 1 - kept)


def from_nearby(instance: Instance, formulation: str, settings: Settings) -> Settings:
    """The settings of the first search, which begins at the best plan found within a share of the
    bytes: with less to choose from, it is often better than what the whole search finds in time."""
    if instance.limits_moves or not _held(instance):
        return settings
    near = replace(instance, max_moved_bytes=int(NEARBY_BYTES * _held(instance)))
    own = replace(limited(settings, NEARBY), polish=False, certificate=False)
    plan = solve(near, formulation, own).placement
    rest = limited(settings, 1 - NEARBY)
    return rest if plan is None else replace(rest, hint=plan)


def with_few_moves(
    instance: Instance, outcome: Outcome, settings: Settings, within: float
) -> Outcome:
    """The outcome with a plan that moves fewer bytes, if one was found.

    Parameters
    ----------
    instance : Instance
        Counts moves from an earlier plan.
    outcome : Outcome
        Of the first search, with :func:`left_for_objective`.
    settings : Settings
        Of the whole call, with the earlier plan as hint.
    within : float
        Share of the objective that may be given up for it.
    """
    if not _held(instance) or settings.stop.is_set():
        return outcome
    kept = _second(settings, outcome.seconds)
    return then_minimise(instance, outcome, kept, Goals((MOVED_BYTES,), within))


def then_minimise(
    instance: Instance, outcome: Outcome, settings: Settings, goals: Goals
) -> Outcome:
    """The outcome with a plan that is better in goals of the caller's own, within a time limit of
    their own."""
    own = replace(settings, goals=goals)
    return improve(instance, outcome, own, Clock(own))


def _held(instance: Instance) -> int:
    """Bytes of all tables in the earlier plan, at today's sizes."""
    size = bytes_to_move(instance)
    return sum(int(size[now.option]) for now in instance.current if now.option >= 0)


def _second(settings: Settings, spent: float) -> Settings:
    held = limited(settings, KEPT_SHARE)
    if held.time_limit is None or held.work_limit is not None:
        return held
    return replace(held, time_limit=min(held.time_limit, max(spent, LEAST_SECONDS)))


def limited(settings: Settings, share: float) -> Settings:
    """The settings with a share of the limits."""
    seconds, work = settings.time_limit, settings.work_limit
    return replace(
        settings,
        time_limit=None if seconds is None else share * seconds,
        work_limit=None if work is None else share * work,
    )


def solve_moving(
    compiled: Compiled, price: Fraction, formulation: str, settings: Settings,
    run: Callable[[Priced, Settings], Outcome],
) -> tuple[Outcome, Moving] | None:  # fmt: skip
    """The plan with the least objective + price of moves; None if no plan was found.

    ``run`` solves the instance with the price, with a formulation.
    It is returned as an outcome of the Instance without the price, and as one with it. Both
    certificates cover all plans.
    """
    began, model = time.monotonic(), priced(compiled.instance, price)
    hint = settings.hint
    if hint is not None:
        hint = settled(
            compiled.instance, hint, settings.prices, stop=settings.stop.is_set, seed=settings.seed,
            improve=False,
        )  # fmt: skip
    prices = None if settings.prices is None else with_moving(settings.prices, model.instance)
    limit = settings.time_limit
    left = None if limit is None else max(0.0, limit - (time.monotonic() - began))
    hint = None if hint is None else model.with_price(hint)
    outcome = run(model, replace(settings, hint=hint, prices=prices, time_limit=left))
    if outcome.placement is None:
        return None
    ended = outcome.stopped_by
    # the proof is about objective + price: the objective alone may still be lower
    if ended in (StoppedBy.PROOF, StoppedBy.GAP):
        ended = StoppedBy.EXHAUSTED
    plain = found(
        compiled.instance, formulation, model.without_price(outcome.placement),
        ended, seconds=outcome.seconds, settings=outcome.settings,
        solver=outcome.solver, version=outcome.version, note=outcome.note,
        detail={name: outcome.detail[name] for name in ("one_ratio",) if name in outcome.detail},
    )  # fmt: skip
    return _bounded(compiled, plain, settings), Moving(price, outcome)


def _bounded(compiled: Compiled, plain: Outcome, settings: Settings) -> Outcome:
    """The outcome with the bound that the given multipliers prove on the objective alone."""
    instance, prices = compiled.instance, settings.prices
    if prices is None or not settings.certificate or not instance.num_tables:
        return plain
    known = bounds_at(instance, instance.allowed, prices)
    if known is None or known.bound == NEVER:
        return plain
    bounded = plain.with_(bound=known.bound, bound_source=CERTIFICATE)
    return with_certificate(instance, bounded, replace(prices, target=known.bound))
