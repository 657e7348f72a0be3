"""Solve one scenario, from its inputs to the record of its Outcome."""

from __future__ import annotations

import time
import traceback
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from formulations import Instance, Outcome, Settings, solve
from formulations.errors import UnsupportedInstance
from formulations.result.check import check
from formulations.result.outcome import near_enough, standing
from milp_planner import plan
from milp_planner.drawing.units import memory_name
from milp_planner.features.plan.cache import to_cache, versions
from milp_planner.features.plan.divisions import divisions_of, sync_of
from milp_planner.features.plan.one_ratio import decoded
from milp_planner.plans.compile import compile_for, memories
from milp_planner.plans.divisions import is_open, words_of
from milp_planner.plans.ledger import ledger_of
from milp_planner.plans.placement import Plan, placed_tables
from milp_planner.plans.plan_file import plan_to_dict
from scenarios import catalog
from scenarios.batch.evidence import Shared, before, combined, start, written
from scenarios.batch.neighbours import shape_of
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
    _warm_up(scenario.asked.formulation)
    best, more = _shared(scenario, scenario.shared or Shared())
    samples = best.model.workload.batch_per_rank * best.instance.num_ranks * best.cluster.replicas
    found = {"samples": samples, **_answer(best.instance, best.outcome), **more}
    if best.cluster.two_d is not None:
        found["division"] = words_of(best.cluster)
        found |= _over_divisions(best)
    if best.outcome.placement is not None:
        found["sync"] = sync_of(best.instance, best.outcome.placement)
        found["modes"] = {table.name: table.mode for table in best.tables}
        found["hbm_used"] = _hbm_used(best)
        if scenario.keeps_plan:
            found["plan"] = plan_to_dict(best)
    return found


def _shared(scenario: Scenario, shared: Shared) -> tuple[Plan, dict[str, Any]]:
    """The plan, with what others found, and how it was obtained."""
    known = _before(scenario, shared) if shared.own else None
    if known is None:
        best, more = _planned(scenario, shared)
        best = _combined(best, shared)
    else:
        best, more = _combined(known, shared), {"cached": False}
        if shared.again and _may_improve(scenario, known.outcome, best.outcome):
            best, more = _planned(scenario, shared)
            own = Shared(plan=shared.own, proved=shared.own, certified=shared.own)
            best = _combined(_combined(best, shared), own)
    if not is_open(scenario.inputs()[1]):
        more["shape"] = shape_of(best.instance)
        if scenario.shared is not None:
            more["outcome"] = written(best.instance, best.outcome)
    return best, more


def _planned(scenario: Scenario, shared: Shared) -> tuple[Plan, dict[str, Any]]:
    kept, began, priced = to_cache(scenario.cache or None), time.perf_counter(), list[float]()
    best = plan(
        *scenario.inputs(),
        formulation=scenario.asked.formulation,
        objective=scenario.asked.objective,
        settings=replace(scenario.settings(), known=partial(start, shared)),
        progress=False,
        cache=kept,
        on_start=lambda *_: priced.append(time.perf_counter() - began),
        diagnose=False,
    )
    if is_open(scenario.inputs()[1]):
        return best, {}
    cached = kept is not None and kept.answered
    return best, {"pricing_seconds": priced[0], "cached": cached}


def _before(scenario: Scenario, shared: Shared) -> Plan | None:
    """The plan that the scenario had before; None if that is not known."""
    compiled = compile_for(*scenario.inputs(), scenario.asked.objective)
    outcome = before(compiled, shared)
    return None if outcome is None else decoded(compiled, outcome)


def _combined(plan: Plan, shared: Shared) -> Plan:
    """The plan, or a better one of others, with the best of all bounds."""
    outcome = combined(plan.instance, plan.outcome, shared)
    if outcome.placement is plan.outcome.placement:
        return replace(plan, outcome=outcome)
    tables = placed_tables(plan.model, plan.cluster, plan.instance, outcome.placement)
    return replace(plan, outcome=outcome, tables=tables)


def _may_improve(scenario: Scenario, known: Outcome, outcome: Outcome) -> bool:
    """Whether a plan taken from another scenario may not be the best one here."""
    settled = outcome.closed or near_enough(outcome, scenario.asked.gap)
    return outcome.objective != known.objective and not settled


def _over_divisions(plan: Plan) -> dict[str, Any]:
    """Bounds over all divisions into sharding groups, if several were tried and some are open."""
    info = divisions_of(plan)
    if info is None or info.best is None or info.gap == 0:
        return {}
    share = "nothing" if info.gap is None else f"to {100 * info.gap:.2f}%"
    bound = None if info.certified is None else int(info.certified)
    standing = f"feasible, certified {share} over all divisions"
    return {"bound": bound, "certified_bound": bound, "gap": info.gap, "status": "feasible",
            "standing": standing}  # fmt: skip


def _hbm_used(plan: Plan) -> float | None:
    """Share of the fullest rank's HBM in use, including memory outside the embeddings."""
    ledger = ledger_of(plan)
    places = ledger.hbm if ledger is not None else ()
    return max((place.used / place.whole for place in places if place.whole), default=None)


def _solving(outcome: Outcome) -> float:
    """Seconds of the solve, without pricing."""
    stages: Any = outcome.detail.get("stages", {})
    return max(0.0, outcome.seconds - stages.get("pricing", 0.0))


def _answer(instance: Instance, outcome: Outcome) -> dict[str, Any]:
    source = outcome.bound_source
    exact = "exact" if source is not None and source.exact else "floating point"
    return {
        "status": outcome.status.value,
        "standing": standing(outcome),
        "stopped_by": outcome.stopped_by.value,
        "objective": outcome.objective,
        "bound": outcome.bound,
        "bound_source": None if source is None else f"{source.method}, {exact}",
        "certified_bound": outcome.certified_bound,
        "gap": outcome.gap,
        "objectives": outcome.objectives,
        "headroom": headroom(instance, outcome),
        "seconds": _solving(outcome),
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
    for index, resource in memories(instance):
        use, capacity = loads.use[index], resource.capacity
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
