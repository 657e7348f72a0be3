"""The whole model: repaired into the capacities, solved out, and improved without a proof."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, assume, given, settings

from formulations.bounds.own import usable
from formulations.clock import Clock
from formulations.instance import Instance, Objective
from formulations.result.placement import Placement
from formulations.search.context import Context
from formulations.search.exact import improve_whole, repair_whole, solve_whole
from formulations.search.starts import fallback
from formulations.settings import Settings
from tests.formulations.brute_force import brute_force
from tests.formulations.strategies import instances

LOOSE = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
PEAKS = [Objective.BUSIEST_RANK, Objective.STEP_TIME]


def open_context(instance: Instance) -> Context:
    """Nothing known yet, one worker, a little work."""
    asked = Settings(time_limit=20, work_limit=3.0, workers=1)
    return Context(instance, asked, Clock(asked), usable(instance))


@LOOSE
@given(instances(objectives=PEAKS))
def test_repairing_ends_at_a_plan_within_the_target(instance: Instance) -> None:
    """With the optimum as target, an overfull placement is repaired into an optimal plan."""
    truth = brute_force(instance)
    assume(instance.num_tables > 0 and truth.objective is not None)
    assert truth.objective is not None
    context = open_context(instance)
    base = fallback(context, truth.objective).placement
    repair_whole(context, base, 1.0, context.keep, truth.objective)
    assert context.objective == truth.objective


@LOOSE
@given(instances())
def test_solving_the_whole_proves_it(instance: Instance) -> None:
    """From any placement as hint the optimum is found and the bound meets it, or there is none."""
    truth = brute_force(instance)
    assume(instance.num_tables > 0)
    context = open_context(instance)
    base = fallback(context, 1).placement
    solve_whole(context, base, 2.0, context.keep)
    assert context.objective == truth.objective
    assert context.bound == truth.objective
    assert (context.refuted is not None) == (truth.objective is None)


@LOOSE
@given(instances())
def test_improving_is_never_worse_and_claims_nothing(instance: Instance) -> None:
    """From a plan, CP-SAT's neighbourhood search ends at a plan no worse, and lifts no bound."""
    truth = brute_force(instance)
    assume(instance.num_tables > 0 and truth.placement is not None)
    context = open_context(instance)
    assert isinstance(truth.placement, Placement)
    assert context.offer(truth.placement, "start")
    improve_whole(context, 0.5, np.zeros(instance.num_options, dtype=bool), seed=1)
    assert context.objective == truth.objective
    assert context.bound is None
