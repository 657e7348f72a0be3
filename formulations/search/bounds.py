"""The parts that raise the bound: programs over pooled places, and the exact model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import floor

import numpy as np
from numpy.typing import NDArray

from formulations.clock import OutOfTime
from formulations.cpsat import Asked, Use
from formulations.instance import Instance, Scope
from formulations.model.parts import Parts
from formulations.proof.prove import prove
from formulations.result.certify import CERTIFICATE, FINDING, LEAST_SECONDS
from formulations.result.outcome import within_gap
from formulations.result.verify import seconds_to_check
from formulations.search.context import Context
from formulations.search.exact import columns_of_whole, place, solve_whole
from formulations.search.plans import Choice
from formulations.search.pooled import PooledBound, machine_ip, pooled_ip


def with_room(instance: Instance, surcharge: float, slack: float) -> Instance:
    """The instance with room left for packing.

    Shards that choose their rank get a surcharge on their use of rank resources, and a share of
    these resources is taken away. Shards seldom fill ranks to the last byte, but those of a table
    that lies evenly on all ranks, or on those of a machine, leave no holes. With the surcharge, a
    program that does not distinguish ranks chooses as many of the latter as are needed.
    """
    free = np.repeat(instance.free, np.diff(instance.block_shards))
    use, resources = instance.shard_use.copy(), list(instance.resources)
    for index, resource in enumerate(instance.resources):
        if resource.scope == Scope.RANK:
            too_much = int(resource.capacity.max()) + 1
            use[free, index] = np.minimum(use[free, index] * (1 + surcharge), too_much)
            room = (resource.capacity * max(0.0, 1 - slack)).astype(np.int64)
            resources[index] = replace(resource, capacity=room)
    return replace(instance, shard_use=use, resources=tuple(resources))


#: For solves that only choose options; their results are not used as bounds.
_PLANS = Asked(Use.PLANS)


class Bounds:
    """Parts that raise the bound; each first drops the options that the best plan rules out.

    Parameters
    ----------
    context : Context
    choose, choose_second : callable
        Called with the options that a program chooses, for all workers or for the second one only.
    """

    def __init__(
        self,
        context: Context,
        choose: Callable[[Choice], None],
        choose_second: Callable[[Choice], None],
    ) -> None:
        self._context, self._choose = context, choose
        self._choose_second = choose_second
        self._asked: int | None = None
        self._told: int | None = None
        self._apart_value: int | None = None
        self._exhausted: int | None = None
        self._parameters = context.parameters
        clock, chosen = context.clock, self._parameters
        self._patient = clock.now() + clock.share(chosen.exact_first)
        self._urgent = clock.now() + clock.share(chosen.urgent_share)
        self._small, self._hopeless = self.small, False
        self._rooms, self._dearer = list(chosen.surcharges), chosen.far
        self._started = False
        self._several = self._small and len(context.instance.machines) > 1
        self._way, self._silent, self._seek = 0.5, 0, False
        self._questions = 0
        self._near: tuple[int | None, int | None] = (None, None)
        self._whole_of = int(context.keep.sum())

    @property
    def small(self) -> bool:
        """Whether the whole model gets all workers from the start."""
        columns = columns_of_whole(self._context, self._context.keep)
        return columns <= min(self._parameters.small_columns, self._parameters.whole_columns)

    def exact_first(self) -> bool:
        """Whether the exact model has the dual side to itself: on small instances, unless it gave
        that up."""
        return self._small and not self._hopeless

    def give_up(self) -> bool:
        """Give up the dual side if, after a while, the plan is still far above the bound; for good,
        and asked by the dual side alone. Returns whether it is given up."""
        if self._small and not self._hopeless and self._context.clock.now() >= self._patient:
            self._hopeless = self._context.known.above(self._parameters.far)
        return not self.exact_first()

    def pooled(self, amount: float) -> bool:
        """The program over pooled places."""
        return self._below(amount, pooled_ip, self._tell)

    def start(self, amount: float) -> bool:
        """Options for plans to start from, from programs with room left for packing, and places."""
        return self._apart(amount) if self._several else self._pooled_with_room()

    def _apart(self, amount: float) -> bool:
        """On small instances with several machines: choose options and machines, for all workers;
        not far above the bound or, without a solution, twice as far."""
        context, clock, chosen = self._context, self._context.clock, self._parameters
        end = clock.now() + amount
        roomy = with_room(context.instance, chosen.surcharges[0], chosen.slack)
        while self.no_start and context.bound is not None and end - clock.now() > amount / 2:
            limit = context.bound + int(self._dearer * abs(context.bound))
            parts = Parts(keep=context.cheap(limit), limit=limit, check=clock.check)
            self._dearer *= 2
            try:
                result = machine_ip(roomy, context.limits(end - clock.now()), parts, _PLANS)
            except OutOfTime:
                return False
            context.spend(result.work)
            if result.value is not None:
                self._choose(_choice(result))
                self._told = self._apart_value = result.value
                self._started = True
                place(context, np.asarray(result.options), clock.share(chosen.placing))
        return self.no_start

    def _pooled_with_room(self) -> bool:
        """On other instances: choose options only, for the second worker. The first turn leaves
        much room for packing, so that a plan is found soon; later turns leave less, as long as a
        choice may still cost less than the best plan."""
        context, chosen = self._context, self._parameters
        while self._rooms and context.bound is not None and not context.over():
            roomy = with_room(context.instance, self._rooms.pop(0), chosen.slack)
            turn, seed = chosen.program_turn, context.settings.seed
            limits = context.limits(turn, seed, gap=chosen.margin)
            upper = None if context.objective is None else context.objective - 1
            parts = Parts(keep=context.keep, limit=upper, check=context.clock.check)
            try:
                result = pooled_ip(roomy, limits, parts)
            except OutOfTime:
                return False
            context.spend(result.work)
            if result.options is not None:
                self._told = result.value
                self._choose_second(_choice(result))
                break
        return bool(self._rooms)

    @property
    def no_start(self) -> bool:
        """Whether a small instance still lacks a choice of options and machines, and one may be
        found at less than twice the bound."""
        return self._several and not self._started and self._dearer < 1.0

    def start_is_urgent(self) -> bool:
        """Whether such a choice goes first: early, once there is a bound."""
        early = self._context.clock.now() < self._urgent and self._context.bound is not None
        return early and self.no_start

    def machines(self, amount: float) -> bool:
        """The program with separate machines; the second worker starts from its choices.

        It only has to find a choice below a limit between the bound and the best known choice, or
        to prove that none exists, which takes much less time than optimising. Without a result it
        is solved once more with CP-SAT's presolve, which helps to find a choice but whose proofs
        are not used, and then with a limit closer to the bound.
        """
        context, chosen = self._context, self._parameters
        context.drop()
        if not self._few(context.keep, chosen.most_apart):
            return False
        limit, first = self._limit()
        if limit is not None and limit <= (context.bound or limit - 1):
            return False
        if self._silent < chosen.patience:
            amount = min(amount, chosen.program_turn)
        known, self._questions = self._apart_value, self._questions + 1
        asked = Asked(Use.PLANS if self._seek else Use.CLAIMS, first=first)
        program = partial(machine_ip, asked=asked)
        more = self._below(amount, program, self._tell_second, limit, self._questions)
        bound = context.bound
        refuted = limit is not None and bound is not None and bound >= limit
        silent = not refuted and self._apart_value == known
        if refuted:
            self._way = min(0.5, 2 * self._way)
        elif silent and self._seek:
            self._way /= 2
        self._silent = self._silent + 1 if silent else 0
        self._seek = silent and not self._seek
        return more or first

    def _limit(self) -> tuple[int | None, bool]:
        """The limit for that program's next solve, and whether any choice below it is enough."""
        now, chosen = self._context.known, self._parameters
        known = [v for v in (self._apart_value, now.objective) if v is not None]
        limit, low = min(known, default=None), now.bound
        if limit is None or low is None or limit - low <= chosen.shrink * abs(low):
            return limit, False
        return low + 1 + int(self._way * (limit - low)), True

    def answers(self, spent: float) -> bool:
        """Whether that program, having used this much time, goes before the other parts: while it
        gives results, on small instances that are not solved soon, and elsewhere while the plan is
        far above the bound."""
        context, chosen = self._context, self._parameters
        if context.objective is None or self._silent >= chosen.patience or not self.askable:
            return False
        few = spent <= chosen.urgent_share * context.clock.now()
        far = self._small or context.known.above(chosen.far)
        patient = self._hopeless or context.clock.now() >= self._patient
        return few and far and patient and self._limit()[1]

    @property
    def askable(self) -> bool:
        """Whether options and machines are few enough to solve that program in seconds."""
        return self._few(self._context.keep, self._parameters.small_columns)

    def _few(self, keep: NDArray[np.bool_], most: int) -> bool:
        """Whether options times machines are so few."""
        return int(keep.sum()) * len(self._context.instance.machines) <= most

    def certified(self, amount: float, least: int | None = None) -> bool:
        """Have the prover certify the best plan or a bound close to it, or the bound ``least``."""
        context, start = self._context, self._context.clock.now()
        upper = context.objective if least is None else least
        self._asked = upper if least is None else self._asked
        if context.clock.counts or upper is None:
            return not context.clock.counts
        found = prove(context.instance, upper, amount)
        bound = None if found is None else found.target
        news = bound is not None and bound >= (context.bound or 0)
        if found is not None and news and context.accepts(context.instance, found):
            context.state.prove(found, CERTIFICATE)
        if context.clock.now() - start < amount and least is None:
            self._exhausted = upper
        return True

    def close(self, amount: float) -> bool:
        """Certify the caller's gap: by the linear program's certificate, if that suffices and is
        accepted, else by one made for the bound that suffices."""
        context, known = self._context, self._context.known
        first, value, gap = known.certificate, known.objective, context.settings.gap_asked
        unchecked = first if first is not None and not context.checked(first) else None
        if unchecked is not None and within_gap(value, unchecked.target, gap):
            context.accepts(context.instance, unchecked)
        elif value is not None:
            self._near = (value, known.bound)
            self.certified(amount, value - floor(Fraction(gap) * max(1, abs(value))))
        return True

    def may_end(self) -> bool:
        """Whether certifying the best bound would meet the gap; evaluated once for each pair of
        bound and plan."""
        context, known = self._context, self._context.known
        value, bound = known.objective, known.bound
        near = within_gap(value, bound, context.settings.gap_asked) and not context.enough
        return near and self._near != (value, bound)

    def last_word(self) -> None:
        """Have the linear program's certificate judged, and prove more in the time left."""
        context = self._context
        certificate = context.known.certificate
        if certificate is not None and not context.over():
            context.accepts(context.instance, certificate)
        left, check = context.clock.remaining(), seconds_to_check(context.instance)
        if left > LEAST_SECONDS and not context.over():
            self.certified(FINDING * (left - (check if 2 * check < left else 0.0)))

    def nothing_to_certify(self) -> bool:
        """Whether the prover has nothing to do: there is no plan, or it has finished with this
        one."""
        return self._context.objective in (None, self._exhausted)

    def may_close(self, spent: float) -> bool:
        """Whether the prover, having used this much time, should try the best plan now."""
        context = self._context
        few = spent <= self._parameters.urgent_share * context.clock.now()
        return few and self.exact_first() and context.objective not in (None, self._asked)

    def whole_is_large(self) -> bool:
        """Whether too many options are left for the exact model."""
        context = self._context
        return columns_of_whole(context, context.keep) > self._parameters.whole_columns

    def whole_is_news(self) -> bool:
        """Whether enough options were dropped since the last run that a proof may come at once."""
        context, chosen = self._context, self._parameters
        value = context.objective
        keep = context.keep if value is None else context.left_below(value)
        few = columns_of_whole(context, keep) <= chosen.small_columns
        return few and int(keep.sum()) < chosen.news_left * self._whole_of

    def whole(self, amount: float) -> bool:
        """The exact model over the options left. It restarts when a better plan leaves far fewer
        options."""
        context, chosen = self._context, self._parameters
        context.drop()
        if context.known.proved or self.whole_is_large():
            return True
        known, alone = context.objective, self.exact_first()
        options = self._whole_of = int(context.keep.sum())

        def stale() -> bool:
            now = context.known
            value = now.objective
            if alone and self.give_up():
                return True
            if now.proved or value is None or value == known:
                return now.proved
            return int(context.left_below(value).sum()) < chosen.news_left * options

        workers = context.workers if self.small and not self._hopeless else 1
        try:
            answer = solve_whole(context, amount, workers, stale)
        except OutOfTime:
            return False
        return not answer.done

    def _below(
        self,
        amount: float,
        program: Callable[..., PooledBound],
        tell: Callable[[PooledBound], None],
        limit: int | None = None,
        number: int = 0,
    ) -> bool:
        context = self._context
        context.drop()
        known = [v for v in (limit, context.objective) if v is not None]
        upper = min(known) - 1 if known else None
        keep = context.keep if upper is None else context.left_below(upper + 1)
        limits = context.limits(amount, context.settings.seed + number)
        parts = Parts(keep=keep, limit=upper, check=context.clock.check)
        try:
            result = program(context.instance, limits, parts)
        except OutOfTime:
            return False
        context.spend(result.work)
        if not result.infeasible:
            bound = result.bound
            beyond = bound is not None and upper is not None and bound > upper
            context.lift(upper + 1 if beyond and upper is not None else bound, result.source)
        elif upper is None:
            context.state.refute(result.source)
        else:
            context.lift(upper + 1, result.source)
        if result.options is not None:
            tell(result)
        met = result.value is not None and result.bound == result.value
        return not (result.infeasible or met)

    def _tell_second(self, result: PooledBound) -> None:
        """Pass on a choice that is cheaper than all before, and place it."""
        value = self._apart_value = result.value
        if value is not None and (self._told is None or value < self._told):
            self._told = value
            tell = self._choose if self.exact_first() else self._choose_second
            tell(_choice(result))
            amount = self._context.clock.share(self._parameters.placing)
            place(self._context, np.asarray(result.options), amount)

    def _tell(self, result: PooledBound) -> None:
        if not self._started:
            self._choose(_choice(result))


def _choice(result: PooledBound) -> Choice:
    options = np.asarray(result.options, dtype=np.int64)
    return Choice(options, result.machines, result.value)
