"""``audit``: the plan a user runs today, judged on our Instance of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from formulations import Instance, Outcome, Placement, Settings, registry, solve
from formulations.fusion import mixed_groups, respread
from formulations.result.check import Verdict, check
from formulations.result.outcome import Status, found, gap_between
from milp_planner.drawing.page import Shown
from milp_planner.features.explain.moves import MovesInfo, PlansOnTheWay, moves_of
from milp_planner.features.plan.call import limited
from milp_planner.plans.compile import ClusterSource, Compiled, ModelSource
from milp_planner.plans.placement import Plan, decode
from milp_planner.today.matching import compile_today
from milp_planner.today.rows import TodaySource

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Shown):
    """A plan and the best plan of the same Instance."""

    compiled: Compiled
    """Model, cluster, options and Instance, the plan's own ratios and widths among them."""
    placement: Placement
    verdict: Verdict
    """The audited plan and its solver-free check."""
    as_run: Verdict | None
    """Where it mixes cache ratios in a fusion group: what the runtime would make of it."""
    best: Outcome
    """The best plan found for the same tables and cluster, with its bound."""

    def drawing(self) -> RenderableType:
        """Whether it fits, how far from the bound, who is to blame."""
        from milp_planner.features.audit.facts import audit_of, draw_audit

        return draw_audit(audit_of(self), "audit")

    @property
    def instance(self) -> Instance:
        """What both plans are plans of."""
        return self.compiled.instance

    @cached_property
    def plan(self) -> Plan:
        """The best plan found, to be saved, explained and exported."""
        return decode(self.compiled.options, self.instance, self.best)

    @cached_property
    def today(self) -> Plan:
        """The audited plan, fit or not, for its ledger; its outcome claims no status."""
        outcome = self.best.with_(
            placement=self.placement, objective=self.objective,
            objectives=self.verdict.objectives, status=Status.UNKNOWN,
        )  # fmt: skip
        return decode(self.compiled.options, self.instance, outcome)

    @cached_property
    def way(self) -> tuple[MovesInfo, list[Placement]] | None:
        """The moves from the audited plan to the best one, in an order that fits on the way.

        None where the audited plan does not fit, or no better one is known.
        """
        better = self.best.placement
        if better is None or not self.verdict.feasible or not (self.saving or 0) > 0:
            return None
        links = self.compiled.cluster.interconnect
        return moves_of(self.instance, self.placement, better, links)

    def steps(self) -> Sequence[Plan]:
        """The plan after every move on the way at which it keeps all rules, with the best bound;
        each is made when it is asked for."""
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
        """Of the audited plan, fit or not; None when its ranks do not belong to its options."""
        return self.verdict.objectives.get(self.instance.objective.value)

    @property
    def distance(self) -> float | None:
        """(objective − bound)/max(1, |objective|): how far it may be from the best plan."""
        return gap_between(self.objective, self.best.bound)

    @property
    def saving(self) -> float | None:
        """(objective − best objective)/max(1, |objective|): what a known better plan saves."""
        return gap_between(self.objective, self.best.objective)


def audit(  # noqa: PLR0913 - the keywords of a public call
    plan: TodaySource,
    model: ModelSource,
    cluster: ClusterSource,
    *,
    formulation: str = "auto",
    objective: str = "step_time",
    settings: Settings | None = None,
    time_limit: float | None = None,
    goals: str | None = None,
    on_start: Callable[..., None] | None = None,
) -> Audit:
    """Judge the plan you run today: does it fit, how far is it from the bound?

    Parameters
    ----------
    plan
        What :func:`milp_planner.today.rows.read_today` takes: a Plan, a plan.json, a CSV with the
        columns table, mode, ratio, sharding_type, ranks, TorchRec's printed statistics, or pins.
    model, cluster
        Objects, or paths of their YAML files. Cache ratios and column widths of the plan that are
        not on the model's grids are added to them.
    formulation, objective, settings, time_limit, goals
        As in :func:`milp_planner.plan`.
    on_start : callable, optional
        Called with the formulation's name when solving begins.

    Raises
    ------
    BadInput, InstanceError
        For malformed inputs, or a plan that does not belong to the model and cluster.
    """
    registry.get(formulation)
    compiled, today = compile_today(plan, model, cluster, objective)
    if on_start is not None:
        on_start(formulation)
    limits = limited(settings, time_limit, goals, objective)
    instance = compiled.instance
    best = solve(instance, formulation, replace(limits, hint=today))
    return Audit(compiled, today, check(instance, today), _as_run(instance, today), best)


def _as_run(instance: Instance, placement: Placement) -> Verdict | None:
    """The check of what the runtime makes of a plan that mixes ratios in a fusion group."""
    if not mixed_groups(instance, placement):
        return None
    run = respread(instance, placement)
    return None if run is None else check(instance, run)
