"""Few moves by default: a re-plan gives up half a percent of the objective for bytes that stay.

The best plan is searched first. Then every byte that moves gets a price, such that moving all bytes
costs as much as may be given up: the plan with the least sum of objective and price is no dearer
than that, and moves only what earns its price. The certified bound of the sum also bounds bytes. At
last tables return to their old places as far as the half percent allows, several at once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from formulations import Instance, Outcome, Placement, Settings, solve
from formulations.evidence.certify import CERTIFICATE, with_certificate
from formulations.instance.facts import per_option, shard_counts
from formulations.priced import priced, with_moving
from formulations.reduce import NEVER, bounds_at
from formulations.result.check import check, value_of
from formulations.result.outcome import GoalReached, StoppedBy, found, with_plan
from formulations.search.home import bytes_away, closer, pulled
from formulations.search.loops import waited_for
from formulations.search.near import complete, settled
from formulations.settings import MOVED_BYTES
from milp_planner.plans.compile import Compiled
from milp_planner.plans.moving import Moving

#: Share of the time limit kept for few moves; the same where the earlier plan must first be
#: repaired, which the first search does; and the share of that in which tables return at last.
KEPT_SHARE, KEPT_BESIDE_REPAIR, PULLING = 0.5, 0.25, 0.4
#: What is kept is no longer than the first search took, but at least this many seconds.
LEAST_SECONDS = 3.0


def left_for_objective(settings: Settings, kept: float = KEPT_SHARE) -> Settings:
    """The settings of the first search."""
    return _limited(settings, 1 - kept)


def kept_share(instance: Instance, settings: Settings) -> float:
    """The share of the time limit to keep, with the earlier plan as hint."""
    hint = settings.hint
    fits = hint is not None and complete(instance, hint) and check(instance, hint).feasible
    return KEPT_SHARE if fits else KEPT_BESIDE_REPAIR


def with_few_moves(
    compiled: Compiled,
    outcome: Outcome,
    formulation: str,
    settings: Settings,
    within: float,
    kept: float = KEPT_SHARE,
) -> Outcome:
    """The outcome with a plan that moves fewer bytes, if one was found.

    Parameters
    ----------
    compiled : Compiled
        Its Instance counts moves from an earlier plan.
    outcome : Outcome
        Of the first search, with :func:`left_for_objective`.
    formulation : str
    settings : Settings
        Of the whole call, with the earlier plan as hint.
    within : float
        Share of the objective that may be given up for it.
    kept : float
        Share of the time limit that the first search left.
    """
    instance, best = compiled.instance, outcome.placement
    value, held = outcome.objective, _held(instance)
    if best is None or not value or not held or settings.stop.is_set():
        return outcome
    if outcome.before_goals is not None:
        value = outcome.before_goals
    moved = bytes_away(instance, best)
    most = value + int(within * abs(value))
    if not moved:
        return outcome.with_(goals=(GoalReached(MOVED_BYTES, "", 0, 0, True),))
    price, second = (
        Fraction(int(within * abs(value)), held),
        _second(settings, outcome.seconds, kept),
    )
    loops = waited_for(settings.stop.is_set)
    near = closer(instance, best, most, settings.seed) if loops else best
    asked = replace(_limited(second, 1 - PULLING), hint=near)
    solved = solve_moving(compiled, price, formulation, asked)
    plans, least = [near], None
    if solved is not None and solved[0].placement is not None:
        plans.append(solved[0].placement)
        bound = solved[1].outcome.certified_bound
        least = _least(bound, most, price, instance.num_tables)
    if loops:
        plans.append(_home(instance, plans, most, second))
    for plan in plans:
        fewer = bytes_away(instance, plan)
        better = with_plan(instance, outcome, plan, most)
        if fewer < moved and better.placement is plan:
            dearer = (better.objective or 0) > value
            outcome, moved = better.with_(before_goals=value if dearer else None), fewer
    reached = GoalReached(MOVED_BYTES, "", moved, least, least is not None and moved <= least)
    return outcome.with_(goals=(reached,))


def _home(
    instance: Instance, plans: Sequence[Placement], most: int, settings: Settings
) -> Placement:
    """The plan within the limit on the objective that moves least, with more tables at home."""
    limit = None if settings.work_limit is not None else settings.time_limit
    end = None if limit is None else time.monotonic() + PULLING * limit

    def over() -> bool:
        return settings.stop.is_set() or (end is not None and time.monotonic() > end)

    kept = [plan for plan in plans if (value_of(instance, plan) or most + 1) <= most]
    least = min(kept or plans, key=lambda plan: bytes_away(instance, plan))
    return pulled(instance, least, most, over, settings.seed)


def _least(bound: int | None, most: int, price: Fraction, tables: int) -> int | None:
    """Bytes that move at least in every plan within the limit on the objective: objective + price
    is at least the bound, and what a table pays is rounded up by less than one unit."""
    return None if bound is None or not price else max(0, -int(-(bound - most - tables) // price))


def _held(instance: Instance) -> int:
    """Bytes of all tables in the earlier plan, at today's sizes."""
    size = per_option(instance, instance.shard_move * shard_counts(instance))
    return sum(int(size[now.option]) for now in instance.current if now.option >= 0)


def _second(settings: Settings, spent: float, kept: float) -> Settings:
    held = _limited(settings, kept)
    if held.time_limit is None or held.work_limit is not None:
        return held
    return replace(held, time_limit=min(held.time_limit, max(spent, LEAST_SECONDS)))


def _limited(settings: Settings, share: float) -> Settings:
    seconds, work = settings.time_limit, settings.work_limit
    return replace(
        settings,
        time_limit=None if seconds is None else share * seconds,
        work_limit=None if work is None else share * work,
    )


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
