"""``compare``: every formulation on the same Instance, under every objective."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from formulations import Instance, Outcome, Settings, registry
from formulations.errors import UnsupportedInstance
from formulations.methods.auto import chosen
from formulations.result.check import check
from formulations.result.outcome import gap_between, standing
from formulations.runtime.interrupt import interruptible
from formulations.settings import TracePoint
from milp_planner.features.plan.cache import to_cache
from milp_planner.features.plan.call import planned
from milp_planner.plans.compile import (
    ClusterSource,
    Compiled,
    ModelSource,
    compile_for,
    compile_instance,
    under_all,
)
from milp_planner.request import Callbacks, Limits, PlanRequest
from scenarios.batch.curves import LowerBound, best_bound
from scenarios.batch.scenario import settings_for
from scenarios.compare.facts import BoundInfo, Comparison, ComparisonRow
from scenarios.compare.shared import Shared, ended

#: Every formulation.
DEFAULT = tuple(registry.FORMULATIONS)
#: Those compared by default; the plans' values are shown under all of them.
OBJECTIVES = ("total", "busiest_rank", "step_time")


def compare(
    model: ModelSource,
    cluster: ClusterSource,
    *,
    formulations: Sequence[str] = DEFAULT,
    objectives: Sequence[str] = OBJECTIVES,
    settings: Settings | None = None,
    on_start: Callable[[str, str], None] | None = None,
    **asked: Any,
) -> Comparison:
    """Solve the same Instance with every formulation, for every objective.

    Parameters
    ----------
    model, cluster
        Objects, or paths of their YAML files.
    formulations, objectives
        Names; default: all formulations, and ``OBJECTIVES``.
    settings, **asked
        Limits of each solve: fields of :class:`milp_planner.request.Limits`; and ``cache``, where
        the certificates of all rows are left for later plans of the same instances.
    on_start
        Called with formulation and objective before each solve.

    Work is shared between solves where that is fair (:mod:`scenarios.compare.shared`).
    If ``auto`` chooses another formulation in the list, one solve gives both rows. Secondary goals
    are not pursued.

    Returns
    -------
    Comparison
        After Ctrl-C, with the rows so far, as in :func:`milp_planner.plan`.

    Raises
    ------
    BadInput, InstanceError
        For malformed inputs or unknown names.
    """
    kept = to_cache(asked.pop("cache", None))
    settings = Limits.of(asked).settings(settings)
    _settings_of(formulations, settings)  # fail on a mistake before pricing
    first = compile_for(model, cluster, objectives[0])
    compiled = {o: replace(first, instance=compile_instance(first.options, o)) for o in objectives}
    own = _settings_of(formulations, replace(settings, polish=False, call=None))
    shared = Shared()
    rows = interruptible(lambda: _all_rows(compiled, own, shared, on_start), settings.stop)
    values = under_all(first.options)
    rows = [
        replace(row, objectives=values(row.outcome.placement)) if row.objectives and row.outcome
        else row for row in rows
    ]  # fmt: skip
    if kept is not None:
        for row in rows:
            if row.outcome is not None:
                kept.prove(compiled[row.asked].instance, row.outcome)
    bounds = {o: best_of(rows, o, shared.bounds.get(o, ())) for o in objectives}
    return Comparison(
        model=first.model.name,
        cluster=first.cluster.name,
        rows=tuple(replace(row, gap=gap_to(bounds[row.asked], row)) for row in rows),
        bounds=bounds,
        fingerprints={o: each.instance.fingerprint for o, each in compiled.items()},
        time_unit=first.instance.time_unit,
        profile=first.options.profile.name,
        error=first.options.profile.error,
    )


def _all_rows(
    compiled: dict[str, Compiled],
    own: dict[str, Settings],
    shared: Shared,
    on_start: Callable[[str, str], None] | None,
) -> list[ComparisonRow]:
    rows: list[ComparisonRow] = []
    for objective, each in compiled.items():
        mine: dict[str, list[ComparisonRow]] = {}
        for name, settings in own.items():
            if settings.stop.is_set():
                break
            twin = _twin(each.instance, name, mine, own)
            if twin is not None:
                mine[name] = [_renamed(row, name, twin) for row in mine[twin]]
            else:
                if on_start is not None:
                    on_start(name, objective)
                mine[name] = _of_formulation(each, name, settings, shared)
            rows += mine[name]
    return rows


def gap_to(best: BoundInfo | None, row: ComparisonRow) -> float | None:
    """(objective − best bound)/max(1, |objective|) of a feasible row's plan, else None."""
    if best is None or not row.feasible:
        return None
    return gap_between(row.objectives.get(row.asked), best.bound)


def _twin(
    instance: Instance, name: str, rows: dict[str, list[ComparisonRow]], own: dict[str, Settings]
) -> str | None:
    """A formulation with a row whose solve would be identical."""
    pair = {"auto", chosen(instance)}
    if name not in pair:
        return None
    other = next(iter(pair - {name}))
    return other if other in rows and own[other].options == own[name].options else None


def _renamed(row: ComparisonRow, name: str, twin: str) -> ComparisonRow:
    outcome = None if row.outcome is None else row.outcome.with_(formulation=name)
    note = f"the same solve as {twin}'s: on this instance both are the same"
    return replace(row, label=name, outcome=outcome, note=note)


def _settings_of(formulations: Sequence[str], settings: Settings) -> dict[str, Settings]:
    """The settings of each formulation, after validating names and options."""
    own = {name: settings_for(name, settings) for name in formulations}
    for name, each in own.items():
        registry.get(name).check(each.options)
    return own


def _of_formulation(
    compiled: Compiled, name: str, settings: Settings, shared: Shared
) -> list[ComparisonRow]:
    """The rows of one formulation; for the DP, also those of its fusion-aware variant."""
    if registry.get(name).proves != "nothing":
        return _rows(compiled, name, name, settings, shared)
    rows = _rows(compiled, name, name, settings)
    if name == "dp" and len(compiled.instance.fusion_groups) and rows[-1].outcome is not None:
        aware = replace(settings, options={**settings.options, "fusion_aware": True})
        rows += _rows(compiled, name, "dp, fusion-aware", aware)
    return rows


def _rows(
    compiled: Compiled, name: str, label: str, settings: Settings, shared: Shared | None = None
) -> list[ComparisonRow]:
    """The row of a plan; if it ignores fusion groups, one row as planned and one as run."""
    instance = compiled.instance
    asked = instance.objective.value
    given = settings if shared is None else shared.settings(name, instance, settings)
    asks = {"model": compiled.model, "cluster": compiled.cluster, "diagnose": False}
    request = PlanRequest.of({**asks, "formulation": name, "objective": asked})
    try:
        outcome = planned(request, Callbacks(progress=False), given, compiled).outcome
    except UnsupportedInstance as error:
        return [ComparisonRow(label, asked, "not covered", None, {}, None, None, None, str(error))]
    if shared is not None:
        outcome = ended(outcome, settings.stop.is_set())
        shared.take(name, instance, outcome)
    row = _row(label, instance, outcome)
    unfused = outcome.detail.get("unfused")
    if not isinstance(unfused, dict):
        return [row]
    groups = len(unfused["mixed"])
    note = f"mixes cache ratios in {groups} fusion group{'s' if groups > 1 else ''}"
    values = unfused["objectives"]
    run = _variant(outcome) if row.feasible else row.note
    return [
        ComparisonRow(
            f"{label}, as planned", asked, "breaks", False, values, None, None, None, note
        ),
        replace(row, label=f"{label}, as run", note=run),
    ]


def _row(label: str, instance: Instance, outcome: Outcome) -> ComparisonRow:
    """One row; its gap is known once all bounds are."""
    feasible = None
    if outcome.placement is not None:
        feasible = check(instance, outcome.placement).feasible
    end = TracePoint(round(outcome.seconds, 4), outcome.objective, outcome.bound, "end")
    return ComparisonRow(
        label=label,
        asked=instance.objective.value,
        status="breaks" if feasible is False else outcome.status.value,
        feasible=feasible,
        objectives=outcome.objectives,
        gap=None,
        bound=outcome.bound,
        seconds=outcome.seconds,
        note=outcome.note or _variant(outcome),
        trace=(*outcome.trace, end),
        standing=standing(outcome),
        outcome=outcome,
    )


def _variant(outcome: Outcome) -> str:
    """Which of the two published DPs was run, and its bins; empty for other formulations."""
    bins, axes = outcome.detail.get("bins"), outcome.detail.get("axes")
    if not isinstance(bins, list) or not bins or not isinstance(axes, list):
        return ""
    cells, memories = (" × ".join(map(str, each)) for each in (bins[-1], axes))
    return f"the variant {outcome.detail['variant']}, {cells} bins of {memories}"


def best_of(
    rows: Sequence[ComparisonRow], objective: str, others: Sequence[LowerBound] = ()
) -> BoundInfo | None:
    """The largest bound of the rows of one objective, and the largest that one certifies."""
    mine = [row for row in rows if row.asked == objective]
    plans = [row.objectives[objective] for row in mine if row.feasible]
    outcomes: list[Outcome] = [row.outcome for row in mine if row.outcome is not None]
    known = [
        LowerBound(outcome.bound, outcome.bound_source.method, outcome.bound_source.exact)
        for outcome in outcomes
        if outcome.bound is not None and outcome.bound_source is not None
    ]
    best = best_bound([*known, *others], min(plans, default=None))
    certified = (outcome.certified_bound for outcome in outcomes)
    most = max((bound for bound in certified if bound is not None), default=None)
    return None if best is None else BoundInfo(*best, certified=most)
