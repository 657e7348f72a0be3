"""Choose the best division into sharding groups together with the plan.

Every division is an Instance of its own with the same objective
(:mod:`milp_planner.features.plan.several`). The best division's Instance is re-solved with the full
settings.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from formulations import Outcome, Settings
from milp_planner.drawing.units import show_gap
from milp_planner.errors import BadInput
from milp_planner.features.plan.several import Try, best_of, kept
from milp_planner.inputs import Cluster, Model
from milp_planner.plans.compile import Compiled, compile_for
from milp_planner.plans.divisions import (
    Division,
    Divisions,
    best_cost,
    groups_of,
    least_elsewhere,
    words_of,
)
from milp_planner.plans.placement import Plan, decode


def divided(
    model: Model,
    cluster: Cluster,
    formulation: str,
    objective: str,
    settings: Settings,
    report: Callable[[str], None],
    planned: Callable[[Compiled, str, Settings], Outcome],
) -> Plan:
    """The best plan over all divisions that a cluster leaves open.

    Parameters
    ----------
    model, cluster
        The cluster's ``two_d`` must leave something open.
    formulation, objective, settings
        As for one plan; a time or work limit covers all divisions.
    report : callable
        Called with a description of each division before it is bounded or solved.
    planned : callable
        Solves one division.

    Returns
    -------
    Plan
        The best division's plan, with ``divisions``.

    Raises
    ------
    BadInput
        For the objective ``total``, which counts one group only; or if no division can be priced.
    """
    if objective == "total":
        raise BadInput(
            "objective total counts the ranks of one sharding group; allowed where two_d leaves "
            "the group open: step_time or busiest_rank"
        )
    start, groups = time.monotonic(), [*groups_of(cluster)]
    priced = [_priced(model, group, objective) for group in groups]
    if not any(isinstance(each, Compiled) for each in priced):
        raise BadInput(str(priced[0]))
    tries = [_try(group, each) for group, each in zip(groups, priced, strict=True)]
    chosen, rest = best_of(tries, formulation, settings, report)
    compiled = priced[tries.index(chosen)]
    assert isinstance(compiled, Compiled) and cluster.two_d is not None
    outcome = kept(chosen, planned(compiled, formulation, rest))
    others = tuple(
        Division(group, each.instance, each.outcome if each.instance else None, each.refused)
        for group, each in zip(groups, tries, strict=True)
        if each is not chosen
    )
    divisions = Divisions(cluster.two_d, others)
    outcome = outcome.with_(note=note_of(outcome, divisions), seconds=time.monotonic() - start)
    plan = decode(compiled.options, compiled.instance, outcome)
    return replace(plan, divisions=divisions)


def note_of(outcome: Outcome, divisions: Divisions) -> str:
    """The outcome's note, with a warning if another division may have a better plan."""
    best, least = best_cost(outcome), least_elsewhere(divisions)
    if best is None or (least is not None and least >= best):
        return outcome.note
    share = "" if least is None else f", by at most {show_gap((best - least) / max(1, best))}"
    text = f"certified for this division alone: another one may hold a better plan{share}"
    return "; ".join(filter(None, (outcome.note, text)))


def _priced(model: Model, group: Cluster, objective: str) -> Compiled | BadInput:
    try:
        return compile_for(model, group, objective)
    except BadInput as error:
        return error


def _try(group: Cluster, priced: Compiled | BadInput) -> Try:
    if isinstance(priced, Compiled):
        return Try(words_of(group), priced.instance)
    return Try(words_of(group), None, str(priced))
