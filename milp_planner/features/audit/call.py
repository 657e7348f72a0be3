"""``audit``: judge the plan in production on our Instance of its model and cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from formulations import Instance, Outcome, Placement, Settings, registry, solve
from formulations.fusion import mixed_groups, respread
from formulations.result.check import Verdict, check
from formulations.result.outcome import Status, found, gap_between, standing
from milp_planner.drawing.page import Shown
from milp_planner.errors import BadInput
from milp_planner.features.audit import facts
from milp_planner.features.moves.way import MovesInfo, PlansOnTheWay, moves_of
from milp_planner.features.plan.one_ratio import as_it_runs, clashing
from milp_planner.features.plan.one_ratio import asked as question_of
from milp_planner.features.plan.tables import tables_of
from milp_planner.plans.compile import ClusterSource, Compiled, ModelSource
from milp_planner.plans.placement import Plan, decode
from milp_planner.request import Aims
from milp_planner.start.mapping import start_on
from milp_planner.start.rows import StartSource

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Shown):
    """An audited plan, and the best plan found for the same Instance."""

    compiled: Compiled
    """Model, cluster, options and Instance, including the plan's own ratios and widths."""
    placement: Placement
    verdict: Verdict
    """The audited plan and its solver-free check."""
    as_run: Verdict | None
    """The check of the plan as run, if it mixes cache ratios in a fusion group."""
    best: Outcome
    """The best plan found for the same tables and cluster, with its bound."""

    def drawing(self) -> RenderableType:
        """Whether it fits, its distance from the bound, and the tables to blame."""
        return facts.draw_audit(audit_of(self), "audit")

    @property
    def instance(self) -> Instance:
        """The Instance of both plans."""
        return self.compiled.instance

    @cached_property
    def plan(self) -> Plan:
        """The best plan found, for saving, explaining and exporting."""
        return decode(self.compiled.options, self.instance, self.best)

    @cached_property
    def today(self) -> Plan:
        """The audited plan, even if it does not fit, for its ledger; it claims no status."""
        outcome = self.best.with_(
            placement=self.placement, objective=self.objective,
            objectives=self.verdict.objectives, status=Status.UNKNOWN,
        )  # fmt: skip
        return decode(self.compiled.options, self.instance, outcome)

    @cached_property
    def way(self) -> tuple[MovesInfo, list[Placement]] | None:
        """The moves from the audited plan to the best one, in an order that fits at every step.

        None if the audited plan does not fit, or if no better plan is known.
        """
        better = self.best.placement
        if better is None or not self.verdict.feasible or not (self.saving or 0) > 0:
            return None
        links = self.compiled.cluster.interconnect
        return moves_of(self.instance, self.placement, better, links)

    def steps(self) -> Sequence[Plan]:
        """The feasible plans after moves, with the best bound; each is built on access."""
        if self.way is None:
            return ()
        info, placements = self.way
        return PlansOnTheWay([placements[p.moves - 1] for p in info.points[1:]], self._step)

    def _step(self, placement: Placement) -> Plan:
        best = self.best
        outcome = found(
            self.instance, best.formulation, placement, best.stopped_by, best.bound,
            best.bound_source,
        )  # fmt: skip
        return decode(self.compiled.options, self.instance, outcome)

    @property
    def objective(self) -> int | None:
        """Of the audited plan, even if it does not fit; None if its ranks and options do not
        match."""
        return self.verdict.objectives.get(self.instance.objective.value)

    @property
    def distance(self) -> float | None:
        """(objective − bound)/max(1, |objective|): the most that a better plan could save."""
        return gap_between(self.objective, self.best.bound)

    @property
    def saving(self) -> float | None:
        """(objective − best objective)/max(1, |objective|): the saving of the best plan found."""
        return gap_between(self.objective, self.best.objective)


def audit(
    plan: StartSource,
    model: ModelSource,
    cluster: ClusterSource,
    *,
    settings: Settings | None = None,
    on_start: Callable[..., None] | None = None,
    **asked: Any,
) -> Audit:
    """Judge the plan you run today: whether it fits, and how far it is from the bound.

    Parameters
    ----------
    plan
        Anything that :func:`milp_planner.start.rows.read_start` takes: a Plan, a plan.json, a CSV
        with the columns table, mode, ratio, sharding_type, ranks, TorchRec's printed statistics, or
        pins.
    model, cluster
        Objects, or paths of their YAML files. Cache ratios and column widths of the plan that are
        not on the model's grids are added to them.
    settings, on_start
        As in :func:`milp_planner.plan`.
    **asked
        Fields of :class:`milp_planner.request.Aims`: ``objective``, ``goals``, ``formulation`` and
        limits.

    Raises
    ------
    BadInput, InstanceError
        For malformed inputs, or a plan that does not belong to the model and cluster.
    """
    request = Aims.of(asked)
    limits = request.settings(settings)
    registry.get(request.formulation).check(limits.options)
    start = start_on(plan, model, cluster, request.objective, exact=True)
    if start.new:
        more = f" (and {len(start.new) - 1} more)" if len(start.new) > 1 else ""
        raise BadInput(f"the plan does not place table {start.new[0]}{more}")
    if on_start is not None:
        on_start(request.formulation)
    compiled, today = start.compiled, start.placement

    def solved(instance: Instance, own: Settings) -> Outcome:
        return solve(instance, request.formulation, own)

    instance, caches, own = compiled.instance, compiled.caches, replace(limits, hint=today)
    alike = not clashing(instance, caches, today)  # else its bound is to hold for today's plan
    best = as_it_runs(instance, caches, own, request.formulation, solved, alike)
    compiled = replace(compiled, instance=question_of(compiled, best.detail))
    verdict, as_run = check(compiled.instance, today), _as_run(compiled.instance, today)
    return Audit(compiled, today, verdict, as_run, best)


def _as_run(instance: Instance, placement: Placement) -> Verdict | None:
    """The check of what the runtime makes of a plan that mixes cache ratios in a fusion group."""
    if not mixed_groups(instance, placement):
        return None
    run = respread(instance, placement)
    return None if run is None else check(instance, run)


def audit_of(audit: Audit) -> facts.AuditInfo:
    """Collect the figures of an audit."""
    instance, best = audit.instance, audit.best
    source = best.bound_source
    loads = audit.verdict.loads
    assert loads is not None  # the audit refuses plans that are not well formed
    run = audit.as_run
    by_table = facts.Contributions(instance, audit.placement)
    return facts.AuditInfo(
        fits=audit.verdict.feasible,
        violations=audit.verdict.violations,
        objective_kind=instance.objective.value,
        objective=audit.objective,
        objectives=audit.verdict.objectives,
        bound=best.bound,
        bound_method=None if source is None else source.method,
        certified_bound=best.certified_bound,
        best=best.objective,
        best_status=best.status.value,
        best_standing=standing(best),
        certified_distance=gap_between(audit.objective, best.certified_bound),
        distance=audit.distance,
        saving=audit.saving,
        as_run=None if run is None else {"fits": run.feasible, "objectives": run.objectives},
        overfull=tuple(facts.overfull(instance, loads, by_table)),
        slow=tuple(facts.slow(instance, loads, by_table, best.objective)),
        gains=tuple(_gains(audit)),
        way=None if audit.way is None else audit.way[0],
        time_unit=instance.time_unit,
    )


def _gains(audit: Audit) -> list[facts.Gain]:
    """Tables by the best plan's saving on them; none if it saves nothing in all."""
    if audit.best.placement is None or audit.saving is None or audit.saving <= 0:
        return []
    now = tables_of(audit.instance, audit.placement).rows
    best = tables_of(audit.instance, audit.best.placement).rows
    pairs = [(a, b) for a, b in zip(now, best, strict=True) if a.cost > b.cost]
    pairs.sort(key=lambda pair: pair[1].cost - pair[0].cost)
    most = pairs[: facts.MOST_NAMED]
    return [facts.Gain(a.name, a.option, b.option, a.cost, b.cost) for a, b in most]
