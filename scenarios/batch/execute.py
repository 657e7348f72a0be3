"""Solve one scenario, from its inputs to the record of its Outcome."""

from __future__ import annotations

import time
import traceback
from datetime import UTC, datetime
from functools import cache
from typing import Any

from formulations import Instance, Outcome, Settings, solve
from formulations.errors import UnsupportedInstance
from formulations.result.check import check
from formulations.result.outcome import near_enough, standing
from milp_planner.drawing.units import memory_name
from milp_planner.features.batch.neighbours import shape_of
from milp_planner.features.plan.cache import answered, question_of, to_cache, versions
from milp_planner.features.plan.divide import divided
from milp_planner.features.plan.divisions import divisions_of, sync_of
from milp_planner.inputs import Cluster, Model
from milp_planner.plans.compile import Compiled, compile_for, to_cluster, to_model
from milp_planner.plans.divisions import is_open, words_of
from milp_planner.plans.ledger import ledger_of
from milp_planner.plans.placement import Plan, decode
from milp_planner.plans.plan_file import plan_to_dict
from scenarios import catalog
from scenarios.batch.evidence import Shared, before, combined, started, written
from scenarios.batch.scenario import Scenario

FAILED, NOT_COVERED = "failed", "not_covered"
"""Further statuses: an error, and an Instance that the formulation does not support."""


def execute(scenario: Scenario, key: str) -> dict[str, Any]:
    """Solve a scenario and return its record; errors in the scenario are recorded, not raised.

    Parameters
    ----------
    scenario
    key
        Key of the result, as the caller computed it.

    Returns
    -------
    dict
        Plain JSON values. ``error`` is None, or type, message and traceback; ``plan`` is the
        document of a plan.json, if the scenario keeps plans, ``outcome`` the outcome's bytes
        (:func:`scenarios.batch.evidence.written`), if it shares them.
    """
    try:
        if scenario.key() != key:
            raise RuntimeError("the inputs or versions here differ from those of the caller")
        return {**_head(scenario, key), **_solve(scenario), "error": None}
    except Exception as error:  # kept in the record: one failure must not stop the others
        return failure(scenario, key, error)


def failure(scenario: Scenario, key: str, error: BaseException) -> dict[str, Any]:
    """The record of a scenario that has no Outcome."""
    covered = not isinstance(error, UnsupportedInstance)
    return {
        **_head(scenario, key),
        "status": FAILED if covered else NOT_COVERED,
        "error": {
            "type": type(error).__name__,
            "message": str(error),
            "traceback": "".join(traceback.format_exception(error)),
        },
    }


def _head(scenario: Scenario, key: str) -> dict[str, Any]:
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    return {"key": key, **scenario.label(), "versions": versions(), "finished": finished}


def _solve(scenario: Scenario) -> dict[str, Any]:
    _warm_up(scenario.formulation)
    inputs = to_model(scenario.inputs()[0]), to_cluster(scenario.inputs()[1])
    plan, more = (_divided if is_open(inputs[1]) else _planned)(scenario, *inputs)
    samples = plan.model.workload.batch_per_rank * plan.instance.num_ranks * plan.cluster.replicas
    found = {"samples": samples, **_answer(plan.instance, plan.outcome), **more}
    if plan.cluster.two_d is not None:
        found["division"] = words_of(plan.cluster)
    if plan.outcome.placement is not None:
        found["sync"] = sync_of(plan.instance, plan.outcome.placement)
        found["modes"] = {table.name: table.mode for table in plan.tables}
        found["hbm_used"] = _hbm_used(plan)
        if scenario.keeps_plan:
            found["plan"] = plan_to_dict(plan)
    return found


def _planned(scenario: Scenario, model: Model, cluster: Cluster) -> tuple[Plan, dict[str, Any]]:
    """The plan of one Instance, and how it was obtained."""
    start = time.perf_counter()
    compiled = compile_for(model, cluster, scenario.objective)
    priced = time.perf_counter() - start
    kept, instance = to_cache(scenario.cache or None), compiled.instance
    shared, name = scenario.shared or Shared(), scenario.formulation
    settings = started(instance, scenario.settings(), shared)

    def found() -> Outcome:
        question = question_of(compiled, name, settings)
        outcome = answered(kept, question, lambda: solve(instance, name, settings))
        return combined(instance, outcome.with_(formulation=name), shared)

    known = before(instance, shared)
    outcome = found() if known is None else combined(instance, known, shared)
    if known is not None and shared.again and _may_improve(scenario, known, outcome):
        own = Shared(plan=shared.own, proved=shared.own, certified=shared.own)
        outcome = combined(instance, found(), own)
    cached = kept is not None and kept.answered
    more = {"pricing_seconds": priced, "cached": cached, "shape": shape_of(instance)}
    if scenario.shared is not None:
        more["outcome"] = written(instance, outcome)
    return decode(compiled.options, instance, outcome), more


def _may_improve(scenario: Scenario, known: Outcome, outcome: Outcome) -> bool:
    """Whether a plan taken from another scenario may not be the best one here."""
    settled = outcome.closed or near_enough(outcome, scenario.gap)
    return outcome.objective != known.objective and not settled


def _divided(scenario: Scenario, model: Model, cluster: Cluster) -> tuple[Plan, dict[str, Any]]:
    """The plan of the best division into sharding groups; bounds and seconds are those of all."""

    def planned(compiled: Compiled, name: str, settings: Settings) -> Outcome:
        return solve(compiled.instance, name, settings)

    settings, name = scenario.settings(), scenario.formulation
    plan = divided(model, cluster, name, scenario.objective, settings, lambda _: None, planned)
    found: dict[str, Any] = {}
    info = divisions_of(plan)
    if info is None or info.best is None or info.gap == 0:
        return plan, found
    share = "nothing" if info.gap is None else f"to {100 * info.gap:.2f}%"
    certified = None if info.certified is None else int(info.certified)
    found |= {"bound": certified, "certified_bound": certified, "gap": info.gap}
    found |= {"status": "feasible", "standing": f"feasible, certified {share} over all divisions"}
    return plan, found


def _hbm_used(plan: Plan) -> float | None:
    """Share of the fullest rank's HBM in use, including memory outside the embeddings."""
    ledger = ledger_of(plan)
    places = ledger.hbm if ledger is not None else ()
    return max((place.used / place.whole for place in places if place.whole), default=None)


def _answer(instance: Instance, outcome: Outcome) -> dict[str, Any]:
    source = outcome.bound_source
    return {
        "status": outcome.status.value,
        "standing": standing(outcome),
        "stopped_by": outcome.stopped_by.value,
        "objective": outcome.objective,
        "bound": outcome.bound,
        "bound_source": None if source is None else f"{source.method}, {_exactness(source.exact)}",
        "certified_bound": outcome.certified_bound,
        "gap": outcome.gap,
        "objectives": outcome.objectives,
        "headroom": headroom(instance, outcome),
        "seconds": outcome.seconds,
        "solver": f"{outcome.solver} {outcome.version}".strip(),
        "settings": outcome.settings,
        "note": outcome.note,
        "instance": instance.fingerprint,
        "ranks": instance.num_ranks,
        "tables": len(instance.table_names),
    }


def headroom(instance: Instance, outcome: Outcome) -> dict[str, float]:
    """For every memory, the least free share of its capacity over all places and moments.

    Places without capacity do not count. Empty without a plan.
    """
    if outcome.placement is None:
        return {}
    loads = check(instance, outcome.placement).loads
    if loads is None:
        return {}
    free: dict[str, float] = {}
    for resource, use in zip(instance.resources, loads.use, strict=True):
        capacity = resource.capacity
        shares = [1 - int(u) / int(c) for u, c in zip(use, capacity, strict=True) if c > 0]
        if shares:
            name = memory_name(resource.name)
            free[name] = min(free.get(name, 1.0), *shares)
    return free


@cache
def _warm_up(formulation: str) -> None:
    """Load a formulation's solver once in a process, so that no scenario is charged for it."""
    inputs = catalog.find_model("generated:tables=4"), catalog.find_cluster("8xh100")
    instance = compile_for(*inputs, "busiest_rank").instance
    solve(instance, formulation, Settings(time_limit=0.1, workers=1, polish=False))


def _exactness(exact: bool) -> str:
    return "exact" if exact else "floating point"
