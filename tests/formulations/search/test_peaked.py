"""Boxes of peaks as a part of the search."""

from __future__ import annotations

from random import Random

from formulations import Settings, solve
from formulations.clock import Clock
from formulations.evidence.certify import CERTIFICATE
from formulations.instance import Instance, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.patterns.boxes import FUNCTIONS
from formulations.patterns.program import LEVELS
from formulations.presolve import usable
from formulations.proof.prove import symmetric_lp
from formulations.search.context import Context
from formulations.search.peaked import Peaked


def distinct(tables: int = 14) -> Instance:
    """Tables of their own compute, exchange and memory, whole or in halves, on four ranks."""
    rng = Random(0)
    builder = InstanceBuilder(
        [[0, 1, 2, 3]], ["compute", "exchange"], [("hbm", "rank", 70)], "step_time"
    )
    for table in range(tables):
        compute, exchange = rng.randint(1000, 9000), rng.randint(1, 6) * 500
        memory = rng.randint(2, 30)
        builder.add_table(f"t{table}")
        whole = Shard({"hbm": memory}, (compute, exchange))
        builder.add_option("whole", [Block(Where.ANY_RANK, [whole])])
        half = Shard({"hbm": memory // 2}, (compute // 2 + 200, exchange))
        builder.add_option("halves", [Block(Where.ANY_RANK, [half], count=2)])
    return builder.build()


def begun(work: float) -> Context:
    """A search that knows a plan by greedy, and the linear program's certificate."""
    instance = distinct()
    limits = Settings(time_limit=None, work_limit=work, workers=1)
    context = Context(instance, limits, Clock(limits), usable(instance))
    plan = solve(instance, "greedy").placement
    lp = symmetric_lp(instance)
    assert plan is not None and lp is not None
    assert context.offer(plan, "greedy")
    context.state.price(lp.certificate)
    return context


def test_functions_raise_the_certified_bound_in_counted_work() -> None:
    """Above the linear program's, the same in two runs; no work is left out of the count."""
    found = []
    for _ in range(2):
        context = begun(3.0)
        boxes = Peaked(context, FUNCTIONS)
        assert not boxes.waits()
        boxes.run(0.5)
        found.append((context.clock.certified, context.work))
    assert found[0] == found[1]
    certified, work = found[0]
    first = context.known.certificate
    assert first is not None and certified is not None and certified > (first.target or 0)
    assert 0.1 < work < 0.6


def test_patterns_wait_for_the_wall_clock() -> None:
    """Their work is not counted, so under a limit on work they have nothing to do."""
    context = begun(3.0)
    assert not Peaked(context, LEVELS[0]).run(0.5)
    assert context.work == 0.0 and context.clock.certified is None


def test_a_cheaper_plan_makes_the_tree_urgent() -> None:
    """It is begun with the first plan; one that is far cheaper excludes options."""
    context = begun(3.0)
    boxes = Peaked(context, FUNCTIONS)
    assert boxes.urgent(0.0) and not boxes.urgent(0.1)
    boxes.run(0.1)
    context.spend(1.0)
    context.lift((context.objective or 0) - 1, CERTIFICATE)  # so that the tree does not lead
    assert not boxes.urgent(0.1)
    best = solve(context.instance, "auto", Settings(time_limit=None, work_limit=2.0, workers=1))
    assert best.placement is not None and best.objective < 0.97 * context.objective
    context.offer(best.placement, "better")
    assert boxes.urgent(0.1) and not boxes.urgent(1.0)
