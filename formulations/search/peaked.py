"""Boxes of peaks as part of the search: bounds with certificates."""

from __future__ import annotations

from collections.abc import Callable

from formulations.classes import classes_of
from formulations.evidence.certify import CERTIFICATE
from formulations.patterns.boxes import FUNCTIONS, Boxes, left_by, limited
from formulations.patterns.merged import merged
from formulations.proof.build import build_rows
from formulations.proof.tree import empty_table
from formulations.result.certificate import Certificate
from formulations.search.anneal import Choice
from formulations.search.context import Context
from formulations.search.numbers import EQUAL, PEAKED
from formulations.search.question import with_room
from formulations.search.whole import place


class Peaked:
    """A tree of boxes that continues from turn to turn.

    Parameters
    ----------
    context : Context
    level : int
        ``FUNCTIONS``, or the first level of patterns.
    choose : callable
        Called with the options that the lowest box takes; that functions take, where many tables
        are equal. Where it returns False, as their shards do not fit, boxes with less memory choose
        others.
    """

    def __init__(
        self, context: Context, level: int, choose: Callable[[Choice], bool | None]
    ) -> None:
        self._choose = choose
        self._context, self._level, self._boxes = context, level, None
        self._first: Certificate | None = None
        self._options = self._turns = 0
        self._risen = 0, 0  # turns and boxes until the bound last rose
        self._spent = 0.0

    _boxes: Boxes | None
    _roomy: Boxes | None = None

    def waits(self) -> bool:
        """Whether there is no plan or no linear program yet."""
        return self._context.objective is None or self._context.known.certificate is None

    def urgent(self, spent: float) -> bool:
        """Whether the tree, having used this much time, goes before other parts: for a first turn,
        and for some of the time where it is about to raise the bound and has not stood still, or
        where a better plan excludes more options than when it began."""
        if self._boxes is None:
            return spent == 0.0
        context = self._context
        few = spent <= context.parameters.urgent_share * context.clock.now()
        leads = not self._still(self._boxes) and self._leads(self._boxes, PEAKED.rising)
        return few and (leads or self._behind(self._boxes))

    def _leads(self, boxes: Boxes, first: float = PEAKED.near) -> bool:
        """Whether its bound is near the best one; in the first turns a share of that will do."""
        near = first if self._turns < PEAKED.turns else PEAKED.near
        return boxes.bound >= near * (self._context.bound or 0)

    def _still(self, boxes: Boxes) -> bool:
        """Whether the bound has not risen for some turns, in which there were some boxes."""
        turns, count = self._risen
        return self._turns >= turns + PEAKED.idle and boxes.count >= count + PEAKED.few

    def _behind(self, boxes: Boxes) -> bool:
        """Whether the best plan is cheaper by more than a little than the tree's."""
        best = self._context.objective
        return best is not None and best < PEAKED.near * boxes.upper

    def run(self, amount: float) -> bool:
        """Split boxes for some time and certify their bound; whether more time may raise it.

        The work of patterns is not counted, so nothing is done with them under a work clock.
        """
        context, clock = self._context, self._context.clock
        uncounted = clock.counts and self._level != FUNCTIONS
        classes = classes_of(context.instance).members
        many = len(classes) > PEAKED.tables and self._level == FUNCTIONS
        if uncounted or many or context.instance.num_tables > PEAKED.most:
            return False
        if self.waits():
            return True
        end = clock.now() + amount
        boxes = self._tree()
        if boxes is None:
            return False

        def over() -> bool:
            context.clock.spend(boxes.work - self._spent)
            self._spent = boxes.work
            return context.over() or clock.now() >= end

        before, more = boxes.bound, boxes.run(over)
        risen = boxes.bound - before > PEAKED.risen * boxes.upper
        self._turns += 1
        if risen:
            self._risen = self._turns, boxes.count
        self._certify(boxes, more)
        equal = EQUAL * len(classes) <= context.instance.num_tables
        told = equal if self._level == FUNCTIONS else risen
        options = boxes.choice(context.keep) if told else None
        if options is not None:
            fit = self._choose(Choice(options, value=boxes.bound))
            place(context, options, context.parameters.first_turn)
            if fit is False:
                self._with_room(boxes, amount)
        return more and (self._turns < PEAKED.turns or self._leads(boxes))

    def _with_room(self, boxes: Boxes, amount: float) -> None:
        """Split boxes of ranks with less memory for some time, and tell what the lowest takes."""
        context, clock = self._context, self._context.clock
        if self._roomy is None:
            less = with_room(context.instance, 0.0, PEAKED.room)
            peaks = limited(less, context.keep, boxes.upper, self._level)
            self._roomy = (
                None if peaks is None else Boxes(peaks, context.keep, boxes.upper, self._level)
            )
        if self._roomy is None:
            return
        end, before = clock.now() + amount, self._roomy.work
        self._roomy.run(lambda: context.over() or clock.now() >= end)
        context.clock.spend(self._roomy.work - before)
        options = self._roomy.choice(context.keep)
        if options is not None:
            self._choose(Choice(options, value=boxes.bound))

    def _tree(self) -> Boxes | None:
        """The tree, begun anew where the best plan now excludes many more options; None where
        boxes do not suit the instance, or no option of some table is left."""
        context, upper = self._context, self._context.objective
        assert upper is not None and context.known.certificate is not None
        instance, first = context.instance, self._first or context.known.certificate
        keep = left_by(instance, first, upper)
        if self._boxes is None or keep.sum() < PEAKED.fewer * self._options:
            first = context.known.certificate
            keep = left_by(instance, first, upper)
            empty = empty_table(build_rows(instance), keep)
            peaks = None if empty else limited(instance, keep, upper, self._level)
            if peaks is None or (
                self._level != FUNCTIONS and len(merged(peaks, keep).times) > PEAKED.tables
            ):
                return None
            self._first, self._options, self._spent = first, int(keep.sum()), 0.0
            self._turns, self._risen = 0, (0, 0)
            self._boxes = Boxes(peaks, keep, upper, self._level)
        self._boxes.upper = upper
        return self._boxes

    def _certify(self, boxes: Boxes, more: bool) -> None:
        """Adopt the bound if it is news, and its certificate is accepted. While boxes may still
        raise it, a certificate is worth its time for a part of the gap only."""
        context = self._context
        assert self._first is not None and context.known.certificate is not None
        known = max(context.clock.certified or 0, context.known.certificate.target or 0)
        worth = PEAKED.worth * (boxes.upper - known) if more else 0
        if boxes.bound <= known + worth:
            return
        certificate = boxes.certificate(self._first.vectors[0])
        if context.accepts(context.instance, certificate):
            context.state.prove(certificate, CERTIFICATE)
