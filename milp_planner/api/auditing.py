"""``audit``: the plan a user runs today, judged on our Instance of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from formulations import Instance, Outcome, Placement, Settings, registry, solve
from formulations.check import Verdict, check
from formulations.fusion import mixed_groups, respread
from formulations.outcome import gap_between
from milp_planner.api.compiling import compile_for
from milp_planner.api.current import read_current
from milp_planner.api.matching import in_order, place, widened
from milp_planner.api.sources import ClusterSource, ModelSource, to_model
from milp_planner.errors import BadInput
from milp_planner.placement import Plan


@dataclass(frozen=True, eq=False)
class Audit:
    """A plan beside the best plan of the same Instance.

    Attributes
    ----------
    instance : Instance
    placement : Placement
        The audited plan.
    verdict : Verdict
        Its solver-free check.
    as_run : Verdict or None
        Where it mixes cache ratios in a fusion group: what the runtime would make of it.
    best : Outcome
        The best plan found for the same tables and cluster, with its bound.
    """

    instance: Instance
    placement: Placement
    verdict: Verdict
    as_run: Verdict | None
    best: Outcome

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


def audit(
    plan: Plan | str | Path,
    model: ModelSource,
    cluster: ClusterSource,
    *,
    formulation: str = "auto",
    objective: str = "step_time",
    settings: Settings | None = None,
    on_start: Callable[..., None] | None = None,
) -> Audit:
    """Judge a plan: does it fit, how far is it from the bound?

    Parameters
    ----------
    plan
        A Plan, the path of a plan.json, or the path of a CSV with the columns table, mode, ratio,
        sharding_type, ranks.
    model, cluster
        Objects, or paths of their YAML files. Cache ratios and column widths of the plan that are
        not on the model's grids are added to them.
    formulation, objective, settings
        As in :func:`milp_planner.plan`.
    on_start : callable, optional
        Called with the formulation's name when solving begins.

    Returns
    -------
    Audit

    Raises
    ------
    BadInput, InstanceError
        For malformed inputs, or a plan that does not belong to the model and cluster.
    """
    registry.get(formulation)
    read = to_model(model)
    rows = in_order(read_current(plan), read)
    compiled = compile_for(widened(read, rows), cluster, objective)
    instance = compiled.instance
    placement = place(compiled.options, instance, rows)
    verdict = check(instance, placement)
    if not verdict.objectives:
        raise BadInput(f"the plan to audit: {verdict.violations[0]}")
    if on_start is not None:
        on_start(formulation)
    hint = replace(settings or Settings(), hint=placement)
    best = solve(instance, formulation, hint)
    return Audit(instance, placement, verdict, _as_run(instance, placement), best)


def _as_run(instance: Instance, placement: Placement) -> Verdict | None:
    """The check of what the runtime makes of a plan that mixes ratios in a fusion group."""
    if not mixed_groups(instance, placement):
        return None
    run = respread(instance, placement)
    return None if run is None else check(instance, run)
