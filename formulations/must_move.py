"""What is known before a search that starts from an earlier plan: what must move, certified, and a
plan that moves little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from formulations import registry
from formulations.clock import Clock
from formulations.evidence.certify import certify
from formulations.instance import Instance
from formulations.result.check import check, moved_bytes, moved_tables
from formulations.result.outcome import Outcome, Status
from formulations.result.placement import Placement
from formulations.settings import Settings
from formulations.staying import (
    Counted,
    MustMove,
    flattened,
    limit_of,
    packed,
    pooled_question,
    question_to_plan,
    ways_to_lie,
    whole_question,
)

#: Units of work for a plan of the pooled question; share of the time left, and least seconds, for
#: its proof.
WORK, SHARE, LEAST = 0.1, 0.2, 1.0
#: Options × ranks up to which the whole question is asked, ways to lie up to which these are told
#: apart, and the share of the time left, or of the work, for that.
SMALL, WAYS, WHOLE = 100_000, 20_000, 0.3


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

    def forbidden() -> bool:
        return any(each.forbids(instance) for each in forced)

    if not forbidden():
        settings, detail = _with_hint(instance, chosen, settings, clock, forced)
    limited = instance.limits_moves and chosen.proves != "nothing"
    if limited and (forbidden() or settings.hint is None) and not clock.over():
        forced, least = _least_moves(instance, settings, clock, forced)
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
    return _pooled_least(instance, settings, clock)


def would_move(
    instance: Instance, settings: Settings, clock: Clock, begun: Begun
) -> dict[str, object]:
    """The least that was found to move in a plan that keeps no limit on moves."""
    from formulations.search.near import settled

    if not instance.limits_moves:
        return {}
    free, plan = replace(instance, max_moved_tables=None, max_moved_bytes=None), begun.least
    if plan is None and settings.hint is not None:
        plan = settled(
            free, settings.hint, settings.prices, clock.over, clock.over, seed=settings.seed,
            least=_bytes(begun.forced),
        )  # fmt: skip
    return {} if plan is None else {"would_move": _moved(instance, plan)}


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


def _pooled_least(instance: Instance, settings: Settings, clock: Clock) -> list[MustMove]:
    """What must move at least, in the units of each limit (in bytes if there is none).

    Empty where nothing must.
    """
    found = (_pooled(instance, each, settings, clock) for each in _wanted(instance))
    return [least for least in found if least is not None]


def _least_moves(
    instance: Instance, settings: Settings, clock: Clock, forced: Sequence[MustMove]
) -> tuple[list[MustMove], Placement | None]:
    """What must move at least, by the whole question, and the plan found that moves least.

    Where that is too large, or proves no more than ``forced``, that stays as it is.
    """
    known, best = {each.counted: each for each in forced}, None
    if instance.num_options * instance.num_ranks > SMALL:
        return list(forced), None
    free = replace(instance, max_moved_tables=None, max_moved_bytes=None)
    tables, apart = range(instance.num_tables), ways_to_lie(instance) <= WAYS
    for counted in _wanted(instance):
        question = whole_question(instance, counted, tables)
        found = _planned(question, settings, clock, clock.share(WHOLE), False)
        if found.status == Status.INFEASIBLE:  # whatever moves
            break
        plan = None
        if found.placement is not None:
            plan = question_to_plan(instance, question, found.placement)
            plan = plan if plan is not None and check(free, plan).feasible else None
        best, flat = plan or best, flattened(whole_question(instance, counted, tables, apart))
        if plan is None:  # of shards that differ, or pinned ranks, it knows too little
            found = _planned(flat.question, settings, clock, clock.share(WHOLE), False)
        outcome = _certified(flat.question, found, clock)
        least, proof = outcome.certified_bound or 0, outcome.certificate
        before = known[counted].least if counted in known else 0
        if proof is not None and least > before:
            text = packed(flat.whole(proof))
            known[counted] = MustMove(counted, least, flat.tables, apart, text)
    return list(known.values()), best


def _wanted(instance: Instance) -> list[Counted]:
    limited = [counted for counted in Counted if limit_of(instance, counted) is not None]
    return limited or [Counted.BYTES]


def _pooled(
    instance: Instance, counted: Counted, settings: Settings, clock: Clock
) -> MustMove | None:
    pooled = pooled_question(instance, counted)
    if not pooled.question.num_tables:
        return None
    outcome = _planned(pooled.question, settings, clock, min(WORK, clock.remaining()), True)
    outcome = _certified(pooled.question, outcome, clock)
    proof, least = outcome.certificate, outcome.certified_bound
    if proof is None or least is None or least <= 0:
        return None
    return MustMove(counted, least, pooled.tables, False, packed(pooled.whole(proof)))


def _planned(
    question: Instance, settings: Settings, clock: Clock, units: float, counted: bool
) -> Outcome:
    """A plan of a question, for so many units: of work if ``counted``, else as the clock has
    them."""
    work = units if counted or clock.counts else None
    own = replace(
        settings.for_another, options={}, call=None, on_progress=None, gap=0.0, workers=1,
        work_limit=work, time_limit=max(LEAST, clock.call.left() if work else units),
    )  # fmt: skip
    inner = Clock(own)
    outcome = registry.get("cpsat").load()(question, own, inner)
    if clock.counts:
        clock.spend(inner.work)
    return outcome


def _certified(question: Instance, outcome: Outcome, clock: Clock) -> Outcome:
    seconds = None if clock.counts else max(LEAST, clock.share(SHARE))
    return certify(question, outcome, seconds)
