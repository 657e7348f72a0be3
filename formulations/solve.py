"""The entry point of all formulations: run one, attach a certificate, and verify its claims."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from formulations import registry
from formulations.baselines.greedy import starting_plan
from formulations.clock import Clock
from formulations.errors import InstanceError
from formulations.instance import Instance
from formulations.must_move import begin, would_move
from formulations.result.certificate import Certificate
from formulations.result.check import check
from formulations.result.outcome import (
    MUST_MOVE,
    Outcome,
    Status,
    StoppedBy,
    found,
    infeasible,
    near_enough,
    nothing,
    why_stopped,
)
from formulations.result.placement import Placement
from formulations.runtime.interrupt import interruptible
from formulations.settings import Settings

#: Seconds of compiling from which on an outcome tells them.
NOTICED = 0.5
#: Seconds beyond the time limit from which on an outcome tells them.
LATE = 1.0


def solve(
    instance: Instance, formulation: str = "auto", settings: Settings | None = None
) -> Outcome:
    """Solve an Instance with a formulation by name.

    Parameters
    ----------
    instance : Instance
    formulation : str
        A name in :data:`formulations.registry.FORMULATIONS`.
    settings : Settings, optional

    Returns
    -------
    Outcome
        Its placement, if any, has passed :func:`formulations.result.check.check`. If a known plan
        contradicts a claim, the instance is solved again; if it still does, the claim is dropped.
        Ctrl-C, or a notebook's interrupt, ends the search: ``stopped_by`` is ``interrupted`` then,
        and the outcome is the best known; a second one raises ``KeyboardInterrupt``.

    Raises
    ------
    InstanceError
        For an unknown formulation or option, or an instance of a shape it does not cover.
    InternalError
        When an exact model returns an answer that the check rejects.
    """
    settings = settings or Settings()
    registry.get(formulation).check(settings.options)
    return interruptible(lambda: _solve(instance, formulation, settings), settings.stop)


def _solve(instance: Instance, formulation: str, settings: Settings) -> Outcome:
    chosen = registry.get(formulation)
    clock = Clock(settings)
    settings = _of(instance, settings)
    with clock.call.stage("repair"):
        begun = begin(instance, chosen, settings, clock)
    outcome, detail = infeasible(formulation, MUST_MOVE), dict(begun.detail)
    if not begun.forbidden:
        outcome = _solved(instance, chosen, begun.settings, clock)
    if outcome.placement is None:
        detail |= would_move(instance, begun)
    if outcome.before_goals is None:  # the trace covers only the search for the objective
        _record(outcome, clock)
    if clock.compiling() > NOTICED:
        detail["compiling"] = round(clock.compiling(), 1)
        clock.tell(f"{clock.compiling():.0f} s went into compiling the search, which is kept for "
                   "later solves and not counted in the time limit")  # fmt: skip
    if clock.late() > LATE:
        clock.tell(f"{clock.late():.0f} s beyond the time limit went into steps under way, such as "
                   "setting up a linear program, which are not cut short")  # fmt: skip
    return outcome.with_(
        formulation=formulation,
        seconds=clock.seconds(),
        trace=tuple(clock.trace),
        settings=settings.describe(),
        note="; ".join(filter(None, (outcome.note, *clock.notes))),
        detail={**outcome.detail, **detail, "stages": clock.call.told()},
    )


def _solved(
    instance: Instance, chosen: registry.Formulation, settings: Settings, clock: Clock
) -> Outcome:
    """The outcome from the hint on, solved again where a known plan contradicts it."""
    outcome = _certified(instance, chosen, settings, clock)
    doubt = contradiction(instance, outcome, settings, clock)
    if doubt is not None:
        outcome = _again(instance, chosen, outcome, settings, clock, doubt)
    return outcome


def _of(instance: Instance, settings: Settings) -> Settings:
    """The settings without multipliers of another instance; a hint for other tables is refused."""
    from formulations.reduce import suits

    if settings.known is not None:
        data = settings.known(instance)
        settings = replace(
            settings, hint=settings.hint or data.hint, prices=settings.prices or data.prices
        )
    hint, prices = settings.hint, settings.prices
    if hint is not None:
        first, end = instance.table_options[:-1], instance.table_options[1:]
        if len(hint.options) != instance.num_tables or len(hint.ranks) != instance.num_tables:
            raise InstanceError(
                f"hint: it places {len(hint.options)} tables, the instance has "
                f"{instance.num_tables}"
            )
        wrong = (hint.options >= 0) & ((hint.options < first) | (hint.options >= end))
        if wrong.any():
            name = instance.table_names[int(wrong.argmax())]
            raise InstanceError(f"hint: the option of table {name!r} is not one of its own")
    if prices is not None and not suits(instance, prices):
        return replace(settings, prices=None)
    return settings


def _certified(
    instance: Instance, chosen: registry.Formulation, settings: Settings, clock: Clock
) -> Outcome:
    """The outcome of a formulation, with a certificate if time is left for one, then the goals."""
    from formulations.goals.seek import improve, kept_for_goals

    wanted = settings.polish and chosen.proves != "nothing"  # baselines are reported unchanged
    kept = kept_for_goals(instance, settings) if wanted else 0.0
    with clock.call.stage("search"), clock.holding_back(kept):
        outcome = _proved(instance, chosen, settings, clock)
    if outcome.objective is not None:  # what follows takes time, and adds nothing to the proof
        _record(outcome, clock)
    if not wanted or clock.interrupted():
        return outcome
    with clock.call.stage("goals"):
        return improve(instance, outcome, settings, clock)


def _proved(
    instance: Instance, chosen: registry.Formulation, settings: Settings, clock: Clock
) -> Outcome:
    """The outcome of a formulation, with a certificate if time is left for one; at the end, its own
    certificate is tried with the plan's cost as target."""
    from formulations.evidence.certify import LEAST_SECONDS, raised

    outcome = _with_proof(instance, chosen, settings, clock)
    if outcome.stopped_by == StoppedBy.GAP and not near_enough(outcome, settings.gap):
        outcome = _continued(instance, chosen, outcome, settings, clock)
    near = near_enough(outcome, settings.gap_asked)
    if settings.certificate:
        outcome = _no_worse(instance, outcome, settings.prices)
    if not settings.certificate or near or clock.interrupted():
        return outcome
    return raised(instance, outcome, max(LEAST_SECONDS, clock.remaining()), clock.tell)


def _no_worse(instance: Instance, outcome: Outcome, known: Certificate | None) -> Outcome:
    """The outcome with the caller's certificate where that proves more here."""
    from formulations.evidence.certify import with_certificate

    if known is None or known.kind != "bound" or not known.target or outcome.objective is None:
        return outcome
    return with_certificate(
        instance, outcome, replace(known, target=min(known.target, outcome.objective))
    )


def _continued(
    instance: Instance,
    chosen: registry.Formulation,
    before: Outcome,
    settings: Settings,
    clock: Clock,
) -> Outcome:
    """Continue a solve whose own bound met the gap asked for, while its certificate did not."""
    if clock.over():
        return before.with_(stopped_by=why_stopped(clock))
    rest = replace(settings, gap=0.0, hint=before.placement)
    return _with_proof(instance, chosen, rest, clock)


def _with_proof(
    instance: Instance, chosen: registry.Formulation, settings: Settings, clock: Clock
) -> Outcome:
    from formulations.evidence.certify import LEAST_SECONDS, certify, kept_to_prove

    conducted = chosen.proves == "optimum or gap"  # reserves time itself, or proves on the way
    with clock.holding_back(0.0 if conducted else kept_to_prove(instance, settings)):
        outcome = chosen.load()(instance, settings, clock)
    met = outcome.certificate is not None and outcome.certified_bound == outcome.objective
    closed = met or near_enough(outcome, settings.gap_asked)
    if not settings.certificate or closed or clock.interrupted():
        return outcome
    if settings.time_limit is None or settings.work_limit is not None:
        return certify(instance, outcome, tell=clock.tell)
    left = clock.remaining()
    if outcome.certified_bound is not None and left <= LEAST_SECONDS:
        return outcome  # no time is left to prove more
    return certify(instance, outcome, left, clock.tell)


def _record(outcome: Outcome, clock: Clock) -> None:
    """Add the final objective and bound to the trace, if they are new."""
    known = {point.known for point in clock.trace[-1:]} | {(None, None)}
    if (outcome.objective, outcome.bound) not in known:
        source, plan = outcome.formulation, outcome.placement
        clock.record(outcome.objective, outcome.bound, source, plan)


def _again(
    instance: Instance,
    chosen: registry.Formulation,
    before: Outcome,
    settings: Settings,
    clock: Clock,
    doubt: str,
) -> Outcome:
    """Solve once more with another seed, from the best plan; if that contradicts too, drop claims.

    All earlier claims are discarded, including the bounds in the trace.
    """
    clock.forget_bounds()
    other = replace(
        settings, workers=1, seed=settings.seed + 1, hint=best_plan(instance, before, settings)
    )
    if not clock.over():
        outcome = _certified(instance, chosen, other, clock)
        if contradiction(instance, outcome, other, clock) is None:
            return outcome
        clock.forget_bounds()
        before = outcome
    cleared = without_claims(instance, before, other, doubt)
    if not settings.certificate:
        return cleared
    from formulations.evidence.certify import certify

    certified = certify(instance, cleared, 0.0, clock.tell)
    return cleared if contradiction(instance, certified, other, clock) else certified


def contradiction(
    instance: Instance, outcome: Outcome, settings: Settings, clock: Clock
) -> str | None:
    """A known fact that contradicts an outcome's claims.

    Every bound, including those reported on the way, is compared with the outcome's own plan, the
    caller's, and the best plan reported on the way. A claim that there is no plan is compared with
    these and with greedy's plan, unless a certificate proves it.

    Returns
    -------
    str or None
        A part of a sentence; None where nothing contradicts.
    """
    values = [point.objective for point in clock.trace if point.objective is not None]
    values += [value for _, value in _plans(instance, outcome, settings)]
    if outcome.status == Status.INFEASIBLE:
        if not values and outcome.certificate is None:
            values = _greedy(instance, settings, clock)
        text = "the claim was that no plan exists, but one costs"
        return f"{text} {min(values)}" if values else None
    bounds = [point.bound for point in clock.trace if point.bound is not None]
    bounds += [b for b in (outcome.bound, outcome.certified_bound) if b is not None]
    if not values or not bounds or max(bounds) <= min(values):
        return None
    return f"a bound of {max(bounds)} was claimed, but a plan costs {min(values)}"


def best_plan(instance: Instance, outcome: Outcome, settings: Settings) -> Placement | None:
    """The cheaper of the outcome's plan and the caller's, if they pass the check."""
    plans = list(_plans(instance, outcome, settings))
    return min(plans, key=lambda plan: plan[1])[0] if plans else None


def without_claims(instance: Instance, outcome: Outcome, settings: Settings, why: str) -> Outcome:
    """The best known plan without claims, and a note that says why."""
    note = f"a solver's proof was dropped: {why}"
    rest: dict[str, Any] = {"solver": outcome.solver, "version": outcome.version, "note": note,
            "detail": outcome.detail}  # fmt: skip
    plan = best_plan(instance, outcome, settings)
    if plan is None:
        return nothing(outcome.formulation, outcome.stopped_by, **rest)
    return found(instance, outcome.formulation, plan, outcome.stopped_by, **rest)


def _plans(
    instance: Instance, outcome: Outcome, settings: Settings
) -> Iterator[tuple[Placement, int]]:
    for plan in (outcome.placement, settings.hint):
        if plan is not None and (verdict := check(instance, plan)).feasible:
            yield plan, verdict.objectives[instance.objective.value]


def _greedy(instance: Instance, settings: Settings, clock: Clock) -> list[int]:
    plan = starting_plan(instance, settings, clock)
    if plan is None:
        return []
    return [check(instance, plan).objectives[instance.objective.value]]
