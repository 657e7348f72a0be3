"""The whole model: solved to the end, and improved without a proof."""

from __future__ import annotations

from hypothesis import HealthCheck, assume, given, settings

from formulations.clock import Clock
from formulations.instance import Instance, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.presolve import usable
from formulations.result.placement import Placement
from formulations.search.context import Context
from formulations.search.whole import improve_whole, solve_whole
from formulations.settings import Settings
from tests.formulations.brute_force import brute_force
from tests.formulations.strategies import instances

LOOSE = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def open_context(instance: Instance) -> Context:
    """Nothing known yet, one worker, a little work."""
    asked = Settings(time_limit=20, work_limit=3.0, workers=1)
    return Context(instance, asked, Clock(asked), usable(instance))


@LOOSE
@given(instances())
def test_solving_the_whole_proves_it(instance: Instance) -> None:
    """The optimum is found and the bound meets it, or it is told that there is no plan."""
    truth = brute_force(instance)
    assume(instance.num_tables > 0)
    context = open_context(instance)
    solve_whole(context, 2.0, workers=1, stale=lambda: False)
    assert context.objective == truth.objective
    assert truth.objective is None or context.bound == truth.objective
    assert (context.known.refuted is not None) == (truth.objective is None)


@LOOSE
@given(instances())
def test_improving_is_never_worse_and_claims_nothing(instance: Instance) -> None:
    """From a plan, CP-SAT's neighbourhood search ends at a plan no worse, and lifts no bound."""
    truth = brute_force(instance)
    assume(instance.num_tables > 0 and truth.placement is not None)
    context = open_context(instance)
    assert isinstance(truth.placement, Placement)
    assert context.offer(truth.placement, "start")
    improve_whole(context, 0.5, seed=1)
    assert context.objective == truth.objective
    assert context.bound is None


def test_a_stale_model_ends_early() -> None:
    """The whole model ends as soon as there is a better one to solve."""
    context = open_context(many_alike())
    reply = solve_whole(context, 60.0, workers=1, stale=lambda: True)
    assert not reply.answer.done


def many_alike() -> Instance:
    """Sixty tables whose best spread over seven ranks takes CP-SAT long to prove."""
    builder = InstanceBuilder([list(range(7))], ["p"], [], "busiest_rank")
    for table in range(60):
        builder.add_table(f"t{table}")
        cost = 1000 + 37 * table % 101
        builder.add_option("o", [Block(Where.ANY_RANK, [Shard({}, [cost])])])
    return builder.build()
