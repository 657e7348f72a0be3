"""A placement found for several scenarios, as a Plan of one of them."""

from __future__ import annotations

from formulations import Instance, Placement
from formulations.outcome import StoppedBy, found
from milp_planner.explain.perturb import options_of
from milp_planner.placement import Plan, decode


def adopt(plan: Plan, instance: Instance, placement: Placement, formulation: str) -> Plan:
    """The plan with another placement, on an Instance of the same options.

    It was made for more than this Instance, so only the plan's own bound is claimed, and that only
    where the Instance is the plan's own.

    Raises
    ------
    BadInput
        When the plan's options are not those that this version prices.
    """
    own = instance is plan.instance
    outcome = found(
        instance, formulation, placement, StoppedBy.EXHAUSTED,
        plan.outcome.bound if own else None, plan.outcome.bound_source if own else None,
    )  # fmt: skip
    return decode(options_of(plan), instance, outcome)
