"""``compare``: every formulation on the same Instance, under every objective."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from formulations import Instance, Outcome, Placement, Settings, registry, solve
from formulations.errors import UnsupportedInstance
from formulations.methods.auto import chosen
from formulations.result.check import check
from formulations.result.outcome import gap_between, standing
from formulations.runtime.interrupt import interruptible
from formulations.settings import TracePoint
from milp_planner.drawing.page import Shown
from milp_planner.features.plan.limits import limited
from milp_planner.plans.compile import (
    ClusterSource,
    ModelSource,
    compile_for,
    compile_instance,
    under_all,
)
from milp_planner.request import Limits
from scenarios.batch.curves import LowerBound, best_bound
from scenarios.batch.scenario import settings_for
from scenarios.compare.facts import (
    BoundInfo,
    ComparisonInfo,
    ComparisonRow,
    draw_comparison,
)
from scenarios.compare.shared import Shared, ended

if TYPE_CHECKING:
    from rich.console import RenderableType

#: Every formulation.
DEFAULT = tuple(registry.FORMULATIONS)
#: Those compared by default; the plans' values are shown under all of them.
OBJECTIVES = ("total", "busiest_rank", "step_time")


@dataclass(frozen=True, eq=False)
class Entry:
    """One row: a formulation minimising one objective, with its plan (as planned or as run)."""

    label: str
    """Name of the formulation, and what distinguishes the row from its others."""
    asked: str
    """The objective that it minimises."""
    outcome: Outcome | None
    """None for a formulation that does not cover this instance (``note`` says why), and for a plan
    that ignores fusion groups (the row *as planned*)."""
    feasible: bool | None
    """Whether the solver-free check accepts its plan on the Instance; None without a plan."""
    objectives: dict[str, int]
    """Values of its plan under all objectives that are known; empty without a plan."""
    seconds: float | None
    """None for a row without a solve of its own."""
    note: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Shown):
    """All rows, with the best bound known for each objective."""

    instances: dict[str, Instance]
    """The Instance for each objective, with the same tables, options and capacities."""
    entries: tuple[Entry, ...]
    bounds: dict[str, LowerBound | None]
    """Largest bound proved by any formulation, by objective. It holds for every row."""
    certified: dict[str, int | None]
    """Largest bound proved by a certificate, by objective; at most the bound in ``bounds``."""
    model: str = ""
    cluster: str = ""
    """Names of model and cluster; empty for Instances from other sources."""

    def drawing(self) -> RenderableType:
        """One section per objective, with one row per formulation."""
        return draw_comparison(comparison_of(self))

    def gap(self, entry: Entry) -> float | None:
        """(objective − best bound)/max(1, |objective|) of a feasible row's plan, else None."""
        best = self.bounds.get(entry.asked)
        if best is None or not entry.feasible:
            return None
        return gap_between(entry.objectives.get(entry.asked), best.bound)


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
        Limits of each solve: fields of :class:`milp_planner.request.Limits`.
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
    settings = limited(Limits.of(asked), settings)
    _settings_of(formulations, settings)  # fail on a mistake before pricing
    compiled = compile_for(model, cluster, objectives[0])
    instances = {o: compile_instance(compiled.options, o) for o in objectives}
    found = interruptible(
        lambda: compare_instances(instances, formulations, settings, on_start),
        settings.stop,
    )
    values = under_all(compiled.options)
    return replace(
        found,
        entries=tuple(_valued(entry, values) for entry in found.entries),
        model=compiled.model.name,
        cluster=compiled.cluster.name,
    )


def _valued(entry: Entry, values: Callable[[Placement], dict[str, int]]) -> Entry:
    """The row with its plan's values under all objectives."""
    plan = None if entry.outcome is None else entry.outcome.placement
    return entry if plan is None else replace(entry, objectives=values(plan))


def compare_instances(
    instances: dict[str, Instance],
    formulations: Sequence[str],
    settings: Settings,
    on_start: Callable[[str, str], None] | None = None,
) -> Comparison:
    """Compare on given Instances, one per objective."""
    own = _settings_of(formulations, replace(settings, polish=False))
    entries: list[Entry] = []
    shared = Shared()
    for objective, instance in instances.items():
        mine: dict[str, list[Entry]] = {}
        for name in formulations:
            if settings.stop.is_set():
                break
            twin = _twin(instance, name, mine, own)
            if twin is not None:
                mine[name] = [_renamed(row, name, twin) for row in mine[twin]]
            else:
                if on_start is not None:
                    on_start(name, objective)
                mine[name] = _entries(instance, name, own[name], shared)
            entries += mine[name]
    bounds = {o: _best_bound(entries, o, shared.bounds.get(o, ())) for o in instances}
    certified = {objective: _certified(entries, objective) for objective in instances}
    return Comparison(instances, tuple(entries), bounds, certified)


def _twin(
    instance: Instance, name: str, rows: dict[str, list[Entry]], own: dict[str, Settings]
) -> str | None:
    """A formulation with a row whose solve would be identical."""
    pair = {"auto", chosen(instance)}
    if name not in pair:
        return None
    other = next(iter(pair - {name}))
    return other if other in rows and own[other].options == own[name].options else None


def _renamed(row: Entry, name: str, twin: str) -> Entry:
    outcome = None if row.outcome is None else row.outcome.with_(formulation=name)
    note = f"the same solve as {twin}'s: on this instance both are the same"
    return replace(row, label=name, outcome=outcome, note=note)


def _settings_of(formulations: Sequence[str], settings: Settings) -> dict[str, Settings]:
    """The settings of each formulation, after validating names and options."""
    own = {name: settings_for(name, settings) for name in formulations}
    for name, each in own.items():
        registry.get(name).check(each.options)
    return own


def _entries(instance: Instance, name: str, settings: Settings, shared: Shared) -> list[Entry]:
    """The rows of one formulation; for the DP, also those of its fusion-aware variant."""
    if registry.get(name).proves != "nothing":
        return _rows(instance, name, name, settings, shared)
    rows = _rows(instance, name, name, settings)
    if name == "dp" and len(instance.fusion_groups) and rows[-1].outcome is not None:
        aware = replace(settings, options={**settings.options, "fusion_aware": True})
        rows += _rows(instance, name, "dp, fusion-aware", aware)
    return rows


def _rows(
    instance: Instance, name: str, label: str, settings: Settings, shared: Shared | None = None
) -> list[Entry]:
    """The row of a plan; if it ignores fusion groups, one row as planned and one as run."""
    asked = instance.objective.value
    given = settings if shared is None else shared.settings(name, instance, settings)
    try:
        outcome = solve(instance, name, given)
    except UnsupportedInstance as error:
        return [Entry(label, asked, None, None, {}, None, str(error))]
    if shared is not None:
        outcome = ended(outcome, settings.stop.is_set())
        shared.take(name, instance, outcome)
    feasible = None
    if outcome.placement is not None:
        feasible = check(instance, outcome.placement).feasible
    note = outcome.note or _variant(outcome)
    row = Entry(label, asked, outcome, feasible, outcome.objectives, outcome.seconds, note)
    unfused = outcome.detail.get("unfused")
    if not isinstance(unfused, dict):
        return [row]
    groups = len(unfused["mixed"])
    note = f"mixes cache ratios in {groups} fusion group{'s' if groups > 1 else ''}"
    planned = Entry(f"{label}, as planned", asked, None, False, unfused["objectives"], None, note)
    run = _variant(outcome) if feasible else row.note
    return [planned, replace(row, label=f"{label}, as run", note=run)]


def _variant(outcome: Outcome) -> str:
    """Which of the two published DPs was run, and its bins; empty for other formulations."""
    bins, axes = outcome.detail.get("bins"), outcome.detail.get("axes")
    if not isinstance(bins, list) or not bins or not isinstance(axes, list):
        return ""
    cells, memories = (" × ".join(map(str, each)) for each in (bins[-1], axes))
    return f"the variant {outcome.detail['variant']}, {cells} bins of {memories}"


def _best_bound(
    entries: Sequence[Entry], objective: str, others: Sequence[LowerBound] = ()
) -> LowerBound | None:
    mine = [entry for entry in entries if entry.asked == objective]
    plans = [entry.objectives[objective] for entry in mine if entry.feasible]
    known = [
        LowerBound(outcome.bound, outcome.bound_source.method, outcome.bound_source.exact)
        for outcome in (entry.outcome for entry in mine)
        if outcome is not None and outcome.bound is not None and outcome.bound_source is not None
    ]
    return best_bound([*known, *others], min(plans, default=None))


def _certified(entries: Sequence[Entry], objective: str) -> int | None:
    known = (e.outcome.certified_bound for e in entries if e.asked == objective and e.outcome)
    return max((bound for bound in known if bound is not None), default=None)


def comparison_of(comparison: Comparison) -> ComparisonInfo:
    """Collect the figures of a comparison."""
    first = next(iter(comparison.instances.values()))
    return ComparisonInfo(
        model=comparison.model,
        cluster=comparison.cluster,
        rows=tuple(_row(comparison, entry) for entry in comparison.entries),
        bounds={
            objective: None
            if best is None
            else BoundInfo(*best, certified=comparison.certified[objective])
            for objective, best in comparison.bounds.items()
        },
        fingerprints={o: i.fingerprint for o, i in comparison.instances.items()},
        time_unit=first.time_unit,
    )


def _row(comparison: Comparison, entry: Entry) -> ComparisonRow:
    outcome = entry.outcome
    return ComparisonRow(
        label=entry.label,
        asked=entry.asked,
        status=_status(entry),
        feasible=entry.feasible,
        objectives=entry.objectives,
        gap=comparison.gap(entry),
        bound=None if outcome is None else outcome.bound,
        seconds=entry.seconds,
        note=entry.note,
        trace=_trace(entry),
        standing="" if outcome is None else standing(outcome),
    )


def _trace(entry: Entry) -> tuple[TracePoint, ...]:
    """The trace, with the final plan and bound added."""
    outcome = entry.outcome
    if outcome is None:
        return ()
    end = TracePoint(round(outcome.seconds, 4), outcome.objective, outcome.bound, "end")
    return (*outcome.trace, end)


def _status(entry: Entry) -> str:
    """The outcome's status, or ``breaks`` for a plan that the check rejects."""
    if entry.feasible is False:
        return "breaks"
    return "not covered" if entry.outcome is None else entry.outcome.status.value
