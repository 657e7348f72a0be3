"""One entry for every formulation: run it, time it, attach a certificate, doubt what it claims."""

from __future__ import annotations

from dataclasses import replace

from formulations import registry
from formulations.clock import Clock
from formulations.evidence import best_plan, contradiction, without_claims
from formulations.instance import Instance
from formulations.interrupt import interruptible
from formulations.result.outcome import Outcome, with_plan
from formulations.settings import Settings

#: Share of the time limit kept for the certificate and the most seconds of it: on one machine,
#: where trees are small, and on several.
KEEP, MOST_SECONDS = (0.05, 0.15), (5.0, 30.0)


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
        Its placement, if any, has passed :func:`formulations.result.check.check`. A claim that
        something known contradicts is not handed out: it is solved again, then told as feasible.
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
    outcome = _certified(instance, chosen, settings, clock)
    doubt = contradiction(instance, outcome, settings, clock)
    if doubt is not None:
        outcome = _again(instance, chosen, outcome, settings, clock, doubt)
    told = {point.known for point in clock.trace[-1:]} | {(None, None)}
    if (outcome.objective, outcome.bound) not in told:
        clock.record(outcome.objective, outcome.bound, formulation)
    return outcome.with_(
        formulation=formulation,
        seconds=clock.seconds(),
        trace=tuple(clock.trace),
        settings=settings.describe(),
    )


def _certified(
    instance: Instance, chosen: registry.Formulation, settings: Settings, clock: Clock
) -> Outcome:
    """What a formulation answers, with a certificate where time is kept for one."""
    with clock.holding_back(_kept_for_certificate(instance, settings)):
        outcome = chosen.load()(instance, settings, clock)
    outcome = _finished(instance, chosen, outcome, settings, clock)
    closed = outcome.certificate is not None and outcome.certified_bound == outcome.objective
    if not settings.certificate or closed or clock.interrupted():
        return outcome
    from formulations.result.certify import certify, seconds_to_check

    if settings.time_limit is None or settings.work_limit is not None:
        return certify(instance, outcome)
    left = clock.remaining()
    if outcome.certified_bound is not None and left <= seconds_to_check(instance, outcome):
        return outcome  # no time is left to prove more
    return certify(instance, outcome, left)


def _finished(
    instance: Instance,
    chosen: registry.Formulation,
    outcome: Outcome,
    settings: Settings,
    clock: Clock,
) -> Outcome:
    """The outcome with what the finishing pass makes of its plan.

    Baselines are told as they are; nobody waits for the pass to be compiled.
    """
    wanted = settings.polish and chosen.proves != "nothing" and not clock.interrupted()
    if outcome.placement is None or outcome.objective is None or not wanted:
        return outcome
    from formulations.search.finish import finished
    from formulations.search.loops import loaded

    if not clock.counts and not loaded():
        return outcome
    plan = finished(instance, outcome.placement, settings.goals)
    return with_plan(instance, outcome, plan, settings.goals.most(outcome.objective))


def _again(
    instance: Instance,
    chosen: registry.Formulation,
    before: Outcome,
    settings: Settings,
    clock: Clock,
    doubt: str,
) -> Outcome:
    """Solved once more with another seed, from the best plan; without claims if that is no better.

    Everything claimed so far is forgotten, the trace's bounds with it.
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
    told = without_claims(instance, before, other, doubt)
    if not settings.certificate:
        return told
    from formulations.result.certify import certify

    certified = certify(instance, told, 0.0)
    return told if contradiction(instance, certified, other, clock) else certified


def _kept_for_certificate(instance: Instance, settings: Settings) -> float:
    if not settings.certificate or settings.work_limit is not None:
        return 0.0
    several = len(instance.machines) > 1
    return min(MOST_SECONDS[several], KEEP[several] * (settings.time_limit or 0.0))
