"""Programs over pooled places and with separate machines, which raise the bound, and the choices of
options and machines that they give to those who make plans."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from formulations.clock import OutOfTime
from formulations.cpsat import Asked, Use
from formulations.model.parts import Parts
from formulations.search.anneal import Choice
from formulations.search.context import Context
from formulations.search.question import APART, POOLED, Question, Reply, ask, with_room
from formulations.search.whole import Whole


class Bounds:
    """Programs over pooled places and with separate machines, and choices for plans to start from;
    each first drops the options that the best plan rules out.

    Parameters
    ----------
    context : Context
    whole : Whole
    choose, choose_second : callable
        Called with the options that a program chooses, for all workers or for the second one only.
    """

    def __init__(
        self,
        context: Context,
        whole: Whole,
        choose: Callable[[Choice], None],
        choose_second: Callable[[Choice], None],
    ) -> None:
        self._context, self._whole, self.choose = context, whole, choose
        self._choose_second = choose_second
        self._told: int | None = None
        self._apart_value: int | None = None
        self._parameters = context.parameters
        self._rooms = list(self._parameters.surcharges)
        self._way, self._silent, self._seek = 0.5, 0, False
        self._questions = 0

    def pooled(self, amount: float) -> bool:
        """The program over pooled places."""
        return self._below(amount, POOLED, lambda reply: self.choose(_choice(reply)))

    def start_with_room(self, amount: float) -> bool:
        """Choose options for the second worker. The first turn leaves much room for packing, so
        that a plan is found soon; later turns leave less, as long as a choice may still cost less
        than the best plan."""
        context, chosen = self._context, self._parameters
        while self._rooms and context.bound is not None and not context.over():
            roomy = with_room(context.instance, self._rooms.pop(0), chosen.slack)
            turn, seed = chosen.program_turn, context.settings.seed
            limits = context.limits(turn, seed, gap=chosen.margin)
            upper = None if context.objective is None else context.objective - 1
            parts = Parts(keep=context.keep, limit=upper, check=context.clock.check)
            try:
                reply = ask(POOLED, roomy, limits, parts)
            except OutOfTime:
                return False
            context.clock.spend(reply.answer.work)
            if reply.options is not None:
                self._told = reply.value
                self._choose_second(_choice(reply))
                break
        return bool(self._rooms)

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
        use = Use.PLANS if self._seek else Use.CLAIMS
        question = replace(APART, asked=Asked(use, follow_lp=True, first=first))
        more = self._below(amount, question, self._tell_second, limit, self._questions)
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
        askable = self._few(context.keep, chosen.small_columns)  # in seconds
        if context.objective is None or self._silent >= chosen.patience or not askable:
            return False
        few = spent <= chosen.urgent_share * context.clock.now()
        far = self._whole.small or context.known.above(chosen.far)
        return few and far and self._whole.patient_no_more and self._limit()[1]

    def _few(self, keep: NDArray[np.bool_], most: int) -> bool:
        return int(keep.sum()) * len(self._context.instance.machines) <= most

    def _below(
        self,
        amount: float,
        question: Question,
        tell: Callable[[Reply], None],
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
            reply = ask(question, context.instance, limits, parts)
        except OutOfTime:
            return False
        context.clock.spend(reply.answer.work)
        if not reply.infeasible:
            bound = reply.bound
            beyond = bound is not None and upper is not None and bound > upper
            context.lift(upper + 1 if beyond and upper is not None else bound, reply.source)
        elif upper is None:
            context.state.refute(reply.source)
        else:
            context.lift(upper + 1, reply.source)
        if reply.options is not None:
            tell(reply)
        return not reply.closed

    def _tell_second(self, reply: Reply) -> None:
        """Pass on a choice that is cheaper than all before."""
        value = self._apart_value = reply.value
        if value is not None and (self._told is None or value < self._told):
            self._told = value
            tell = self.choose if self._whole.first else self._choose_second
            tell(_choice(reply))


def _choice(reply: Reply) -> Choice:
    options = np.asarray(reply.options, dtype=np.int64)
    return Choice(options, reply.machines, reply.value)
