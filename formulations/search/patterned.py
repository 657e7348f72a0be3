"""Patterns as part of the search: bounds with certificates, and plans, between bound and plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from formulations.patterns.pack import packed
from formulations.patterns.portions import Portions, portions_of
from formulations.patterns.tree import Decision, decide
from formulations.result.certificate import Certificate
from formulations.result.certify import CERTIFICATE
from formulations.search.context import Context

#: Cases of one target, seconds to pack one choice, and how near bound and plan are near enough.
CASES, PACKING, NEAR = 200, 5.0, 1e-5
#: The first step above the bound is its part by this; seconds in which something must be decided.
LEAST_STEP, FIRST = 200, 4.0


def seek_patterns(context: Context, known: set[tuple[int, ...]], amount: float) -> bool:
    """Halve what is between the bound and the best plan; whether it may deliver more later.

    Each target is closed with a certificate, or gives options to pack into ranks. Where few large
    shards fill a rank, this takes a second or two; where many small ones do, the first target
    stays open. Work is not counted here, so that a work clock leaves it out. Patterns found are
    kept in ``known`` for the next turn.
    """
    clock = context.clock
    # a certificate stands alone: options that the search ruled out meanwhile count
    instance = context.instance
    portions = None if clock.counts else portions_of(instance, instance.allowed)
    if portions is None or context.bound is None:
        return portions is not None
    start, moved = clock.now(), False

    def over() -> bool:
        spent = clock.now() - start
        return context.over() or spent >= (amount if moved else min(amount, FIRST))

    unit = portions.unit  # costs are multiples of it, so that targets between two are the lower
    closed, value = -(-context.bound // unit) - 1, context.objective
    high = 2 * closed + 2 if value is None else -(-value // unit)
    step, missed = 1 + closed // LEAST_STEP, False
    while high - closed > max(1, int(NEAR * high)) and not over():
        middle = (closed + high) // 2
        if not missed:  # low targets are fast: from the bound up, in growing steps
            middle, step = min(middle, closed + step), 2 * step
        decision = decide(portions, (middle + 1) * unit - 1, known, over, CASES)
        if _lifted(context, decision):
            closed, moved = middle, True
            continue
        high, missed, moved = middle, True, moved or decision.options is not None
        _place(context, portions, decision, middle * unit, over)
    return moved and high - closed > max(1, int(NEAR * high))


def _lifted(context: Context, decision: Decision) -> bool:
    """Take a bound whose certificate the checker accepts."""
    if decision.certificate is None or context.certificate is None:
        return False
    certificate = _after(context.certificate, decision.certificate)
    if not context.accepts(context.instance, certificate):
        return False
    context.proven = certificate
    context.lift(certificate.target, CERTIFICATE)
    return True


def _after(first: Certificate, patterns: Certificate) -> Certificate:
    """The same with the linear program's vector in front: its prices are read there."""
    nodes = [
        {**node, "use": [v + 1 for v in node["use"]]} if "use" in node else node
        for node in patterns.nodes
    ]
    return replace(patterns, vectors=(first.vectors[0], *patterns.vectors), nodes=tuple(nodes))


def _place(
    context: Context,
    portions: Portions,
    decision: Decision,
    target: int,
    over: Callable[[], bool],
) -> None:
    """Pack the options that a target left; where memory is in the way, others."""
    for fits in (False, True):
        if fits:
            decision = decide(portions, target, set(), over, CASES, fits=True)
        if decision.options is None:
            continue
        plan = packed(portions, decision.options, target, PACKING, over)
        if plan is not None:
            context.offer(plan, "patterns")
            return
