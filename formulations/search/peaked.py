"""Boxes of peaks as part of the search: bounds on the step time, with certificates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from formulations.evidence.certify import CERTIFICATE
from formulations.instance import Instance
from formulations.patterns.boxes import Boxes
from formulations.patterns.phases import peaks_to_limit
from formulations.proof.build import build_rows
from formulations.proof.tree import bare, empty_table, swept
from formulations.proof.weights import choice_prices, option_prices, vector_of
from formulations.result.certificate import Certificate
from formulations.search.context import Context
from formulations.search.numbers import PEAKED


class Peaked:
    """A tree of boxes that continues from turn to turn.

    Parameters
    ----------
    context : Context
    """

    def __init__(self, context: Context) -> None:
        self._context, self._boxes = context, None
        self._first: Certificate | None = None
        self._options = self._turns = 0

    _boxes: Boxes | None

    def waits(self) -> bool:
        """Whether there is no plan or no linear program yet."""
        return self._context.objective is None or self._context.known.certificate is None

    def urgent(self, spent: float) -> bool:
        """Whether the tree, having used this much time, goes before other parts: for a first turn,
        and for some of the time where it is about to raise the bound."""
        if self._boxes is None:
            return spent == 0.0
        context = self._context
        few = spent <= context.parameters.urgent_share * context.clock.now()
        return few and self._leads(self._boxes)

    def _leads(self, boxes: Boxes) -> bool:
        return boxes.bound >= PEAKED.near * (self._context.bound or 0)

    def run(self, amount: float) -> bool:
        """Split boxes for some time and certify their bound; whether more time may raise it.

        Work is not counted here, so nothing is done under a work clock.
        """
        context, clock = self._context, self._context.clock
        if clock.counts or context.instance.num_tables > PEAKED.tables:
            return False
        if self.waits():
            return True
        end = clock.now() + amount

        def over() -> bool:
            return context.over() or clock.now() >= end

        boxes = self._tree()
        if boxes is None:
            return False
        more = boxes.run(over)
        self._turns += 1
        self._certify(boxes)
        return more and (self._turns < PEAKED.turns or self._leads(boxes))

    def _tree(self) -> Boxes | None:
        """The tree, begun anew where the best plan now excludes many more options; None where
        boxes do not suit the instance, or no option of some table is left."""
        context, upper = self._context, self._context.objective
        assert upper is not None and context.known.certificate is not None
        first = self._first or context.known.certificate
        keep = left_by(context.instance, first, upper)
        if self._boxes is None or keep.sum() < PEAKED.fewer * self._options:
            first = context.known.certificate
            keep = left_by(context.instance, first, upper)
            peaks = (
                None
                if empty_table(build_rows(context.instance), keep)
                else peaks_to_limit(context.instance, keep, upper)
            )
            if peaks is None:
                return None
            self._first, self._options = first, int(keep.sum())
            self._boxes = Boxes(peaks, keep, upper)
        self._boxes.upper = upper
        return self._boxes

    def _certify(self, boxes: Boxes) -> None:
        """Adopt the bound if it is news and its certificate is accepted."""
        context = self._context
        assert self._first is not None and context.known.certificate is not None
        known = max(context.clock.certified or 0, context.known.certificate.target or 0)
        if boxes.bound <= known:
            return
        certificate = boxes.certificate(self._first.vectors[0])
        if context.accepts(context.instance, certificate):
            context.state.prove(certificate, CERTIFICATE)


def left_by(instance: Instance, certificate: Certificate, upper: int) -> NDArray[np.bool_]:
    """The options that a certificate's first vector leaves to plans below a cost."""
    rows = build_rows(instance)
    vector = vector_of(rows, certificate.vectors[0])
    keep = bare(rows, rows.possible.copy(), upper - 1)
    prices = option_prices(rows, choice_prices(rows, vector))
    keep, _ = swept(rows, keep, prices, vector.right(upper - 1))
    return bare(rows, keep, upper - 1)
