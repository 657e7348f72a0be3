"""Few moves by default: a re-plan gives up half a percent of the objective for bytes that stay.

The best plan is searched first: its objective says what may be given up. Then the search begins at
the earlier plan, repaired where it no longer fits, and moves as few bytes as bring it within that
limit. A price on every byte, such that moving all of them costs as much as may be given up, makes
one instance of both wishes, whose certified bound also bounds bytes. At last tables return to their
old places as far as the limit allows, several at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from formulations import Instance, Outcome, Placement, Settings, solve
from formulations.evidence.certify import CERTIFICATE, with_certificate
from formulations.instance.facts import per_option, shard_counts
from formulations.priced import priced, with_moving
from formulations.reduce import NEVER, bounds_at
from formulations.result.check import value_of
from formulations.result.outcome import GoalReached, StoppedBy, found, with_plan
from formulations.search.home import bytes_away, closer, pulled
from formulations.search.loops import waited_for
from formulations.search.near import nearest, repaired
from formulations.settings import MOVED_BYTES
from milp_planner.plans.compile import Compiled
from milp_planner.plans.moving import Moving

#: Share of the time limit kept for few moves; shares of that after which plans near the earlier one
#: are no longer sought, and after which tables only return to their places.
KEPT_SHARE, NEAREST, PRICED = 0.4, 0.6, 0.75
#: Share of the first search for plans that move at most this share of the bytes.
NEARBY, NEARBY_BYTES = 0.25, 0.2
#: What is kept is no longer than the first search took, but at least this many seconds.
LEAST_SECONDS = 3.0


def left_for_objective(settings: Settings, kept: float = KEPT_SHARE) -> Settings:
    """The settings of the first search, where a share of the limit is kept."""
    return _limited(settings, 1 - kept)


def from_nearby(instance: Instance, formulation: str, settings: Settings) -> Settings:
    """The settings of the first search, which begins at the best plan found within a share of the
    bytes: with less to choose from, it is often better than what the whole search finds in time."""
    if instance.limits_moves or not _held(instance):
        return settings
    near = replace(instance, max_moved_bytes=int(NEARBY_BYTES * _held(instance)))
    own = replace(_limited(settings, NEARBY), polish=False, certificate=False)
    plan = solve(near, formulation, own).placement
    rest = _limited(settings, 1 - NEARBY)
    return rest if plan is None else replace(rest, hint=plan)


def with_few_moves(
    compiled: Compiled, outcome: Outcome, formulation: str, settings: Settings, within: float
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
    """
    instance, best = compiled.instance, outcome.placement
    value, held = outcome.objective, _held(instance)
    if best is None or not value or not held or settings.stop.is_set():
        return outcome
    if outcome.before_goals is not None:
        value = outcome.before_goals
    moved = bytes_away(instance, best)
    most = value + int(within * abs(value))
    kept, plan, least = _Kept(_second(settings, outcome.seconds), time.monotonic()), best, None
    loops = bool(moved) and waited_for(settings.stop.is_set)
    if loops:
        near = closer(instance, best, most, settings.seed)
        nearer = _nearest(instance, most, settings, kept.over(NEAREST))
        plan = _fewest(instance, [best, near, nearer], most)
    if bytes_away(instance, plan):
        price, solved = Fraction(int(within * abs(value)), held), None
        if not kept.over(PRICED)():
            rest = replace(kept.until(PRICED), hint=plan)
            solved = solve_moving(compiled, price, formulation, rest)
        if solved is not None:
            bound = solved[1].outcome.certified_bound
            least = _least(bound, most, price, instance.num_tables)
            plan = _fewest(instance, [plan, solved[0].placement], most)
        if loops:
            # which knows no limit of the caller's on moves
            home = pulled(instance, plan, most, kept.over(1.0), settings.seed)
            plan = _fewest(instance, [plan, home], most)
    fewer = bytes_away(instance, plan)
    if fewer < moved:
        outcome = with_plan(instance, outcome, plan, most)
        dearer = (outcome.objective or 0) > value
        outcome = outcome.with_(before_goals=value if dearer else None)
    least = least if fewer else 0
    reached = GoalReached(MOVED_BYTES, "", fewer, least, least is not None and fewer <= least)
    return outcome.with_(goals=(reached,))


def _nearest(
    instance: Instance, most: int, settings: Settings, over: Callable[[], bool]
) -> Placement | None:
    """A plan of at most this cost, found from the earlier one, which is repaired first."""
    if settings.hint is None:
        return None
    wish = repaired(
        instance, settings.hint, settings.prices, over, settings.stop.is_set, settings.seed
    )
    if wish is None:
        return None
    return nearest(instance, wish, most, settings.prices, over, settings.seed)


def _fewest(instance: Instance, plans: Sequence[Placement | None], most: int) -> Placement:
    """The plan within the limit on the objective that moves fewest bytes; the first one is."""
    first, *others = (plan for plan in plans if plan is not None)
    kept = [plan for plan in others if (value_of(instance, plan) or most + 1) <= most]
    return min([first, *kept], key=lambda plan: bytes_away(instance, plan))


@dataclass(frozen=True)
class _Kept:
    """The time for few moves.

    Attributes
    ----------
    settings : Settings
        With the limit of all of it.
    began : float
        On :func:`time.monotonic`.
    """

    settings: Settings
    began: float

    def over(self, share: float) -> Callable[[], bool]:
        """Whether this share of the time is over; where work is counted, whether to stop at all."""
        end = None if self._seconds is None else self.began + share * self._seconds
        stop, call = self.settings.stop, self.settings.timed
        return lambda: (
            stop.is_set() or call.left() <= 0 or (end is not None and time.monotonic() > end)
        )

    def until(self, share: float) -> Settings:
        """Settings whose limit is what is left of this share."""
        if self._seconds is None:
            return _limited(self.settings, share - NEAREST)
        left = self.began + share * self._seconds - time.monotonic()
        return replace(self.settings, time_limit=max(0.0, left))

    @property
    def _seconds(self) -> float | None:
        return None if self.settings.work_limit is not None else self.settings.time_limit


def _least(bound: int | None, most: int, price: Fraction, tables: int) -> int | None:
    """Bytes that move at least in every plan within the limit on the objective: objective + price
    is at least the bound, and what a table pays is rounded up by less than one unit."""
    return None if bound is None or not price else max(0, -int(-(bound - most - tables) // price))


def _held(instance: Instance) -> int:
    """Bytes of all tables in the earlier plan, at today's sizes."""
    size = per_option(instance, instance.shard_move * shard_counts(instance))
    return sum(int(size[now.option]) for now in instance.current if now.option >= 0)


def _second(settings: Settings, spent: float) -> Settings:
    held = _limited(settings, KEPT_SHARE)
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
        hint = repaired(
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
