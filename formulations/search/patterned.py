"""Patterns as part of the search: bounds with certificates, and plans, from targets between the
bound and the best plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from formulations.evidence.certify import CERTIFICATE
from formulations.patterns.pack import packed
from formulations.patterns.portions import Portions, portions_of
from formulations.patterns.tree import Decision, decide
from formulations.result.certificate import Certificate
from formulations.search.context import Context
from formulations.search.numbers import PATTERNS


def seek_patterns(context: Context, known: set[tuple[int, ...]], amount: float) -> bool:
    """Bisect between the bound and the best plan; returns whether another turn may achieve more.

    Each target is refuted with a certificate, or gives options to pack into ranks. Where few large
    shards fill a rank, this takes a second or two; where many small ones do, the first target stays
    open. Work is not counted here, so nothing is done under a work clock. Patterns found are kept
    in ``known`` for the next turn.
    """
    clock = context.clock
    # a certificate must stand alone, so options that the search has ruled out are included
    instance = context.instance
    portions = None if clock.counts else portions_of(instance, instance.allowed)
    if portions is None or context.bound is None:
        return portions is not None
    start, moved = clock.now(), False

    def over() -> bool:
        spent = clock.now() - start
        return context.over() or spent >= (amount if moved else min(amount, PATTERNS.first))

    unit = portions.unit  # costs are multiples of it, so other targets are no use
    closed, value = -(-context.bound // unit) - 1, context.objective
    high = 2 * closed + 2 if value is None else -(-value // unit)
    step, missed = 1 + closed // PATTERNS.step, False
    while high - closed > max(1, int(PATTERNS.near * high)) and not over():
        middle = (closed + high) // 2
        if not missed:  # low targets are fast, so go up from the bound in growing steps
            middle, step = min(middle, closed + step), 2 * step
        decision = decide(portions, (middle + 1) * unit - 1, known, over, PATTERNS.cases)
        if _lifted(context, decision):
            closed, moved = middle, True
            continue
        high, missed, moved = middle, True, moved or decision.options is not None
        _place(context, portions, decision, middle * unit, over)
    return moved and high - closed > max(1, int(PATTERNS.near * high))


def _lifted(context: Context, decision: Decision) -> bool:
    """Adopt the bound if its certificate is accepted; returns whether it was."""
    first = context.known.certificate
    if decision.certificate is None or first is None:
        return False
    certificate = _after(first, decision.certificate)
    if not context.accepts(context.instance, certificate):
        return False
    context.state.prove(certificate, CERTIFICATE)
    return True


def _after(first: Certificate, patterns: Certificate) -> Certificate:
    """The certificate of patterns with the linear program's vector first, where its prices are
    read."""
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
    """Pack the options that a target left or, if they do not fit in memory, others that may."""
    for fits in (False, True):
        if fits:
            decision = decide(portions, target, set(), over, PATTERNS.cases, fits=True)
        if decision.options is None:
            continue
        plan = packed(portions, decision.options, target, PATTERNS.packing, over)
        if plan is not None:
            context.offer(plan, "patterns")
            return
