"""What is known before a search that starts from an earlier plan: what must move, certified, and a
plan that moves little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from formulations import registry
from formulations.classes import classes_of
from formulations.clock import Clock
from formulations.evidence.verify import accepted
from formulations.fewest import fewest, housed, moves_of
from formulations.instance import Instance, IntArray
from formulations.instance.facts import bytes_to_move, total_use
from formulations.proof.cover import cover
from formulations.proof.prove import prove
from formulations.result.certificate import Certificate
from formulations.result.check import check, moved_bytes, moved_tables
from formulations.result.must_move import Counted, MustMove, limit_of, packed
from formulations.result.placement import Placement, current_part
from formulations.settings import Settings
from formulations.staying import (
    Pooled,
    all_stay,
    as_it_is,
    flattened,
    pooled_question,
    ways_to_lie,
    whole_question,
)

#: Units of work that a case of the pooled question counts; share of the time left, and least
#: seconds, for a proof.
CASE, SHARE, LEAST = 1e-4, 0.2, 1.0
#: What a checker is to read: choices, in all nodes of the proof of a pooled question.
READ = 10_000_000
#: Options × ranks up to which the whole question is asked, the share of the time left, or of the
#: work, for that, and how many ways to lie are told apart at most, and for each of its seconds.
SMALL, WHOLE, WAYS, A_SECOND = 100_000, 0.3, 50_000, 5_000


@dataclass(frozen=True)
class Begun:
    """What is known before the search.

    Attributes
    ----------
    forced : sequence of MustMove
    forbidden : bool
        Whether less may move than must.
    settings : Settings
        With a feasible hint, or none where none was found in spite of a limit.
    least : Placement or None
        The plan found that moves least, where it was sought; it need not keep the limit.
    detail : dict
        For the outcome.
    """

    forced: Sequence[MustMove]
    forbidden: bool
    settings: Settings
    least: Placement | None
    detail: dict[str, object]


def begin(
    instance: Instance, chosen: registry.Formulation, settings: Settings, clock: Clock
) -> Begun:
    """What must move at least, and a feasible plan to start from."""
    forced, least, detail = _must_move(instance, chosen, settings, clock), None, dict[str, object]()
    wish = settings.hint or current_part(instance)

    def forbidden() -> bool:
        return any(each.forbids(instance) for each in forced)

    if not forbidden():
        settings, detail = _with_hint(instance, chosen, settings, clock, forced)
    limited = instance.limits_moves and chosen.proves != "nothing"
    if limited and (forbidden() or settings.hint is None) and not clock.over():
        forced, least = _least_moves(instance, replace(settings, hint=wish), clock, forced)
        if least is not None and check(instance, least).feasible:
            settings = replace(settings, hint=least)
    if forced:
        detail["must_move"] = [each.to_dict() for each in forced]
    return Begun(forced, forbidden(), settings, least, detail)


def _must_move(
    instance: Instance, chosen: registry.Formulation, settings: Settings, clock: Clock
) -> list[MustMove]:
    """What must move at least, where moves are limited or the hint no longer fits."""
    hint = settings.hint
    if not instance.current or chosen.proves == "nothing":
        return []
    from formulations.search.near import fits

    if not instance.limits_moves and (hint is None or fits(instance, hint)):
        return []
    found = (_pooled(instance, each, clock) for each in _wanted(instance))
    return [least for least in found if least is not None]


def would_move(instance: Instance, begun: Begun) -> dict[str, object]:
    """The least found to move in a plan that keeps no limit on moves."""
    return {} if begun.least is None else {"would_move": _moved(instance, begun.least)}


def _bytes(forced: Sequence[MustMove]) -> int:
    """The least number of bytes that must move."""
    return max((least.least for least in forced if least.counted == Counted.BYTES), default=0)


def _moved(instance: Instance, plan: Placement) -> dict[str, int]:
    """Tables and bytes that a plan moves."""
    moved = moved_tables(instance, plan)
    return {"tables": len(moved), "bytes": moved_bytes(instance, plan, moved)}


def _with_hint(
    instance: Instance, chosen: registry.Formulation, settings: Settings, clock: Clock,
    forced: Sequence[MustMove],
) -> tuple[Settings, dict[str, object]]:  # fmt: skip
    """The settings with a feasible hint, if necessary one with few bytes moved, or without a hint
    if none was found; and details of what had to move."""
    from formulations.evidence.certify import kept_to_prove
    from formulations.search.near import complete, fits, settled

    hint = settings.hint
    if hint is None or chosen.proves == "nothing":
        return settings, {}
    if complete(instance, hint) and not instance.current:
        return settings, {}
    if not instance.limits_moves and fits(instance, hint):
        return settings, {}
    left = None if clock.counts else clock.remaining
    with clock.holding_back(kept_to_prove(instance, settings)):
        plan = settled(
            instance, hint, settings.prices, clock.over, clock.interrupted, left, settings.seed,
            _bytes(forced),
        )  # fmt: skip
    detail: dict[str, object] = {} if plan is None else {"settled": _moved(instance, plan)}
    return replace(settings, hint=plan), detail


def _least_moves(
    instance: Instance, settings: Settings, clock: Clock, forced: Sequence[MustMove]
) -> tuple[list[MustMove], Placement | None]:
    """What must move at least, and the plan found that moves least, or keeps the limits.

    Where nothing proves more than ``forced``, that stays as it is.
    """
    known, best = {each.counted: each for each in forced}, None
    small = instance.num_options * instance.num_ranks <= SMALL
    free = replace(instance, max_moved_tables=None, max_moved_bytes=None)
    for counted in _wanted(instance):
        before = known.get(counted)
        start = best if small else _first(free, counted, settings, clock, before)
        if start is None and not small:
            break
        least = 0 if before is None else before.least
        enough = max(least, limit_of(instance, counted) or 0)
        best = fewest(free, counted, start, enough, settings, clock, clock.share(WHOLE))
        if best is None or check(instance, best).feasible:
            break  # whatever moves, or nothing more is asked
        if not small:
            continue
        found = _proved_least(free, counted, best, clock)
        if found is not None and found.least > least:
            known[counted] = found
    return list(known.values()), best


def _first(
    instance: Instance, counted: Counted, settings: Settings, clock: Clock, least: MustMove | None
) -> Placement | None:
    """A plan that moves little: what goes by the pooled question is put elsewhere, or the plan to
    start from is repaired."""
    from formulations.search.near import settled

    wish = all_stay(instance)
    hint = settings.hint
    if hint is not None:
        stays = wish.options >= 0
        ranks = [a if s else b for s, a, b in zip(stays, wish.ranks, hint.ranks, strict=True)]
        wish = Placement(np.where(stays, wish.options, hint.options), ranks)
    if least is None or least.goes is not None:
        plan = housed(instance, counted, wish, (least.goes if least else None) or ())
        if plan is not None:
            return plan
    known = least.least if least is not None and counted == Counted.BYTES else 0
    return settled(
        instance, hint or wish, settings.prices, clock.over, clock.interrupted,
        seed=settings.seed, least=known, improve=False,
    )  # fmt: skip


def _proved_least(
    instance: Instance, counted: Counted, best: Placement, clock: Clock
) -> MustMove | None:
    """What must move at least, where a plan is the best known: by the whole question, with the ways
    to lie told apart of the tables that no place can hold; then of what the plan moves and of the
    largest others, as long as they are few; and with what goes placed where they are too many."""
    tables, most = range(instance.num_tables), moves_of(instance, counted, best)
    size = np.minimum.reduceat(bytes_to_move(instance), instance.table_options[:-1])
    moved = np.isin(tables, moved_tables(instance, best))
    ways, found = ways_to_lie(instance), None
    few = WAYS if clock.counts else min(WAYS, int(A_SECOND * clock.share(WHOLE)))
    orders = _spread(instance), np.lexsort((-size, ~moved))
    for some in dict.fromkeys(tuple(sorted(_few(ways, order, few))) for order in orders):
        if not some or clock.over():
            continue
        apart = len(some) == len(tables) or some
        flat = flattened(whole_question(instance, counted, tables, apart))
        found = _higher(found, _proved(flat, counted, most, apart, clock))
        if apart is True or (found is not None and found.least == most):
            return found
    whole = as_it_is(whole_question(instance, counted, tables))
    return _higher(found, _proved(whole, counted, most, False, clock))


def _few(ways: list[int], order: IntArray, left: int) -> list[int]:
    """The tables, in an order, whose ways to lie are few enough together to be told apart."""
    some = list[int]()
    for table in order.tolist():
        if ways[table] <= left:
            left -= ways[table]
            some.append(table)
    return some


def _spread(instance: Instance) -> IntArray:
    """Tables whose shards in production no place of a resource could hold together."""
    now = np.asarray([each.option for each in instance.current if each.option >= 0], dtype=np.int64)
    largest = [resource.capacity.max() for resource in instance.resources]
    return instance.table_of[now[(total_use(instance)[now] > largest).any(axis=1)]]


def _higher(one: MustMove | None, other: MustMove | None) -> MustMove | None:
    return max(filter(None, (one, other)), key=lambda each: each.least, default=None)


def _wanted(instance: Instance) -> list[Counted]:
    limited = [counted for counted in Counted if limit_of(instance, counted) is not None]
    return limited or [Counted.BYTES]


def _pooled(instance: Instance, counted: Counted, clock: Clock) -> MustMove | None:
    """What must move at least by the pooled question; None where nothing must."""
    pooled, classes = pooled_question(instance, counted), classes_of(instance).of
    if not pooled.question.num_tables:
        return None
    now = {each.table: each.ranks for each in instance.current}
    equal = dict[object, list[int]]()
    for own, table in enumerate(pooled.tables):
        equal.setdefault((classes[table], now.get(table)), []).append(own)
    parts = list(map(np.asarray, equal.values()))
    full = [pooled.places[resource.name] for resource in pooled.question.resources]
    # where a machine has room, a checker takes all that goes as one
    some = all("at" in place for place in full) and len(full) < len(instance.machines)
    told = (2 if some else sum(map(len, pooled.ways[part[0]])) for part in parts)
    read = sum(told) + len(pooled.tables)
    end = clock.now() + max(LEAST, clock.share(SHARE))
    found = cover(
        pooled.question, parts, READ // read,
        lambda: clock.over() or (not clock.counts and clock.now() >= end),
    )  # fmt: skip
    clock.spend(found.cases * CASE)
    goes = None if found.goes is None else tuple(pooled.tables[own] for own in found.goes)
    return _accepted(pooled, counted, found.certificate, False, goes)


def _proved(
    pooled: Pooled, counted: Counted, most: int | None, apart: bool | tuple[int, ...], clock: Clock
) -> MustMove | None:
    """What a question's certificate proves of the whole one, where a plan moves ``most``."""
    seconds = None if clock.counts else max(LEAST, clock.share(SHARE))
    return _accepted(
        pooled, counted, prove(pooled.question, most, seconds, counts=True), apart, None
    )


def _accepted(
    pooled: Pooled, counted: Counted, proof: Certificate | None, apart: bool | tuple[int, ...],
    goes: tuple[int, ...] | None,
) -> MustMove | None:  # fmt: skip
    """What a certificate proves, where it is accepted and that is something."""
    if proof is None or (proof.target or 0) <= 0 or not accepted(pooled.question, proof):
        return None
    whole = packed(pooled.whole(proof))
    return MustMove(counted, proof.target or 0, pooled.tables, apart, whole, goes)
