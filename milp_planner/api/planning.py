"""``plan``: tables and a cluster in, a checked and bounded plan out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from formulations import Settings, registry, solve
from milp_planner.api.compiling import compile_for
from milp_planner.api.shortage import with_advice, with_diagnosis
from milp_planner.api.sources import ClusterSource, ModelSource
from milp_planner.placement import Plan, decode


def plan(
    model: ModelSource,
    cluster: ClusterSource,
    *,
    formulation: str = "auto",
    objective: str = "step_time",
    settings: Settings | None = None,
    time_limit: float | None = None,
    on_start: Callable[..., None] | None = None,
) -> Plan:
    """Place every table of a model on a cluster.

    Parameters
    ----------
    model, cluster
        Objects, or paths of their YAML files.
    formulation : str
        How to solve; ``auto`` proves what can be proved.
    objective : str
        ``step_time`` (the embedding part of a step with barriers between phases and no overlap),
        ``busiest_rank`` or ``total``.
    settings : Settings, optional
        All limits and wishes.
    time_limit : float, optional
        Seconds of wall clock to solve; default: that of ``settings`` (60).
    on_start : callable, optional
        Called with the formulation's name when pricing is done and solving begins.

    Returns
    -------
    Plan
        Its outcome's status tells what is known: ``optimal`` and ``feasible`` have tables and have
        passed the solver-free check, ``infeasible`` is a proof that no plan exists (with
        ``outcome.detail["diagnosis"]``: what lacks, and the least that would do), ``unknown`` is
        neither.

    Raises
    ------
    BadInput, InstanceError
        For malformed inputs, unknown names, or a table without any legal option.
    """
    registry.get(formulation)
    settings = settings or Settings()
    if time_limit is not None:
        settings = replace(settings, time_limit=time_limit)
    compiled = compile_for(model, cluster, objective)
    if on_start is not None:
        on_start(formulation)
    outcome = solve(compiled.instance, formulation, settings)
    outcome = with_diagnosis(compiled.instance, outcome, settings)
    outcome = with_advice(outcome, compiled.model, compiled.cluster)
    return decode(compiled.options, compiled.instance, outcome)
