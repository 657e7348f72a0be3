"""Certificates made during the search: for the best plan, and for the gap that the caller asked
for."""

from __future__ import annotations

from fractions import Fraction
from math import floor

from formulations.evidence.certify import CERTIFICATE, FINDING, LEAST_SECONDS
from formulations.evidence.verify import seconds_to_check
from formulations.proof.prove import prove
from formulations.result.outcome import within_gap
from formulations.search.context import Context
from formulations.search.whole import Whole


class Prover:
    """Makes certificates, each accepted by the checker before its bound counts.

    Parameters
    ----------
    context : Context
    whole : Whole
    """

    def __init__(self, context: Context, whole: Whole) -> None:
        self._context, self._whole, self._parameters = context, whole, context.parameters
        self._asked: int | None = None
        self._exhausted: int | None = None
        self._near: tuple[int | None, int | None] = (None, None)

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
        return few and self._whole.first and context.objective not in (None, self._asked)
