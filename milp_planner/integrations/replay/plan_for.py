"""Plan for the trainer that will run it: the best that it can be made to run, and a bound."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from formulations import Instance, Outcome, Placement, Settings, Status, solve
from formulations.result.outcome import StoppedBy, found
from formulations.settings import TracePoint
from milp_planner.drawing.units import show_cost
from milp_planner.errors import FallsShort
from milp_planner.features.plan.call import plan
from milp_planner.files import Facts
from milp_planner.integrations import replay
from milp_planner.integrations.replay import Trainer
from milp_planner.integrations.replay.judge import cost_of
from milp_planner.integrations.replay.search import Search, held, widened
from milp_planner.plans.compile import ClusterSource, ModelSource, to_model
from milp_planner.plans.placement import Plan, decode
from milp_planner.pricing import Options, price
from milp_planner.request import Limits

SEARCH_SHARE = 0.2
"""Share of the time limit for the search over the trainer's settings."""
MOST_SECONDS = 60.0
"""Time limit where none is given."""
FAR_TIMES = 1.05
"""From how many times the best plan on it is said why the trainer's is worse."""
TRAINER = "trainer"
"""Key of an outcome's detail."""


@dataclass(frozen=True)
class ForTrainer(Facts):
    """What is known about a plan for a trainer."""

    trainer: str
    unrestricted: int
    """Objective of the best plan found that the trainer need not be able to run."""
    tried: int
    """Settings replayed."""


def plan_for(
    trainer: str,
    model: ModelSource,
    cluster: ClusterSource,
    *,
    settings: Settings | None = None,
    **keywords: Any,
) -> Plan:
    """The best plan found that a trainer can be made to run, on the ranks on which it runs it.

    Parameters
    ----------
    trainer : str
        Such as ``dlrmv4``.
    model, cluster, settings, **keywords
        As in :func:`milp_planner.plan`. A fifth of the time is for the search over settings.

    Returns
    -------
    Plan
        Bound and certificate are those of all plans, whatever runs them;
        ``outcome.detail["trainer"]`` holds the best of those (:class:`ForTrainer`). If no plan at
        all is found, that answer; what would help is tried with the trainer's widths and ratios.

    Raises
    ------
    BadInput
        For an unknown trainer, or inputs that ``plan`` refuses.
    FallsShort
        If no settings were found with which the trainer runs and has the memory.
    """
    runner = replay.get(trainer)
    named = [name for name in keywords if name in ("time_limit", "work_limit", "gap", "seed")]
    limits = Limits.of({name: keywords.pop(name) for name in named}).settings(settings)
    seconds = limits.time_limit or MOST_SECONDS
    limits = replace(limits, time_limit=seconds * (1 - SEARCH_SHARE))
    begun = time.monotonic()
    best = plan(widened(to_model(model), runner), cluster, settings=limits, **keywords)
    rest = replace(limits, time_limit=seconds * SEARCH_SHARE)
    if best.outcome.status == Status.INFEASIBLE:  # what would help must help there, too
        left = max(seconds * SEARCH_SHARE, seconds - (time.monotonic() - begun))
        there = plan(
            held(best.model, runner), cluster, settings=replace(rest, time_limit=left), **keywords
        )
        return there if there.outcome.status == Status.INFEASIBLE else best
    if best.outcome.placement is None:
        return best
    return _run_by(best, trainer, runner, rest)


def _run_by(best: Plan, name: str, trainer: Trainer, settings: Settings) -> Plan:
    """The plan of what runs, with the bound of the best plan."""
    start = time.monotonic()
    options = price(best.model, best.cluster, best.profile)
    search = _replayed if trainer.decides else _allowed
    placement, tried = search(best, options, trainer, settings)
    if placement is None:
        raise FallsShort(_why_not(best, options, name, trainer, settings))
    outcome = best.outcome
    result = found(
        best.instance, outcome.formulation, placement, StoppedBy.TIME_LIMIT, outcome.bound,
        outcome.bound_source, certified_bound=outcome.certified_bound,
        certificate=outcome.certificate, seconds=outcome.seconds + time.monotonic() - start,
        solver=outcome.solver, version=outcome.version, settings=outcome.settings,
    )  # fmt: skip
    known = ForTrainer(name, min(cost_of(best), result.objective or 0), tried)
    result = result.with_(
        trace=_trace(outcome, result), detail={**outcome.detail, TRAINER: known.to_dict()}
    )
    return decode(options, best.instance, result)


def _trace(before: Outcome, after: Outcome) -> tuple[TracePoint, ...]:
    """The bounds that were reached, and the plan at the end."""
    bounds = [replace(point, objective=None) for point in before.trace if point.bound is not None]
    return (*bounds, TracePoint(after.seconds, after.objective, after.bound, "replay"))


def _replayed(
    best: Plan, options: Options, trainer: Trainer, settings: Settings
) -> tuple[Placement | None, int]:
    """The best placement found by replays, and how many were made."""
    search = Search(trainer, options, best.instance, settings, best.outcome.bound)
    assert best.outcome.placement is not None
    start = search.nearest(best.outcome.placement.options.tolist())
    result = search.run(start)
    return None if result is None else result.placement, len(search.tried)


def _allowed(
    best: Plan, options: Options, trainer: Trainer, settings: Settings
) -> tuple[Placement | None, int]:
    """The best placement with the options that the trainer holds, on ranks of our choice."""
    placement, instance = best.outcome.placement, _restricted(best, options, trainer)
    assert placement is not None
    if not {*instance.forbidden} & {*enumerate(placement.options.tolist())}:
        return placement, 0
    return solve(instance, "auto", settings).placement, 0


def _restricted(best: Plan, options: Options, trainer: Trainer) -> Instance:
    """The instance without the options that the trainer cannot run."""
    forbidden = [
        (index, option)
        for index, table in enumerate(best.model.tables)
        for option in options.of(index)
        if options.choices[option].nodes > 1 or not trainer.can_run(table, options.choices[option])
    ]
    return replace(best.instance, forbidden=(*best.instance.forbidden, *forbidden))


def _why_not(best: Plan, options: Options, name: str, trainer: Trainer, settings: Settings) -> str:
    """Whether any plan of what the trainer holds fits, and what would cost how much."""
    outcome = solve(_restricted(best, options, trainer), "auto", settings)
    ours = show_cost(cost_of(best), best.instance.time_unit)
    modes = ", ".join(dict.fromkeys(t.mode for t in best.tables))
    end = f"the best plan for a trainer that takes any costs {ours} ({modes})"
    end = "; ".join([end, *trainer.priced_otherwise(best.model)])
    if outcome.status == Status.INFEASIBLE:
        return f"{name} cannot run this: proved that no plan of the options it has fits; {end}"
    return f"no settings were found with which {name} runs in this memory; {end}"


def for_trainer(outcome: Outcome) -> ForTrainer | None:
    """What an outcome says about the trainer that it was planned for."""
    known = outcome.detail.get(TRAINER)
    return ForTrainer(**known) if isinstance(known, dict) else None


def told(plan: Plan) -> str | None:
    """The sentence about the trainer that a plan is for; None if it is for any."""
    known, unit = for_trainer(plan.outcome), plan.instance.time_unit
    if known is None:
        return None
    parts = [f"{known.trainer} runs this plan as it is, at {show_cost(cost_of(plan), unit)}"]
    if (bound := plan.outcome.certified_bound or plan.outcome.bound) is not None:
        parts.append(f"no plan at all is below {show_cost(bound, unit)}")
    parts.append(
        f"the best found for trainers that take any: {show_cost(known.unrestricted, unit)}"
    )
    trainer = replay.get(known.trainer)
    if trainer.why and cost_of(plan) > FAR_TIMES * known.unrestricted:
        parts.append(trainer.why)
    return "; ".join([*parts, *trainer.priced_otherwise(plan.model)])
