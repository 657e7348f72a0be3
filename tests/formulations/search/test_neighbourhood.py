"""The whole placement as one neighbourhood is the exact model; a part never breaks the rest."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import HealthCheck, given, settings

from formulations.aggregate.cpsat import Limits, solve_cpsat
from formulations.bounds.own import usable
from formulations.build import Block, InstanceBuilder, Shard
from formulations.check import check
from formulations.instance import Instance, Objective, Where
from formulations.placement import Placement
from formulations.search.neighbourhood import Neighbourhood, Part
from formulations.search.parts import Chooser, Sizes
from formulations.search.state import load_of, peak_costs
from tests.formulations.brute_force import brute_force
from tests.formulations.strategies import instances

LOOSE = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@LOOSE
@given(instances())
def test_the_whole_is_exact(instance: Instance) -> None:
    """With every table and rank open, CP-SAT reaches brute force's optimum with a checked plan."""
    truth = brute_force(instance)
    if truth.placement is None:
        return
    costs, tables = peak_costs(instance), range(instance.num_tables)
    free = np.ones(instance.num_ranks, dtype=bool)
    rest = load_of(instance, costs, truth.placement, [])
    part = Part(tables, free, usable(instance))
    model = Neighbourhood(instance, costs, truth.placement, rest, part)
    assert model.hint() is not None
    result = solve_cpsat(model.model, Limits(seconds=10), model.hint())
    assert result.status == "optimal"
    assert result.values is not None
    verdict = check(instance, model.placement(result.values))
    assert verdict.feasible, verdict.violations
    assert verdict.objectives[instance.objective.value] == truth.objective


@LOOSE
@given(instances())
def test_a_part_keeps_the_plan_feasible(instance: Instance) -> None:
    """Any part drawn from a feasible plan gives a feasible plan that is no worse."""
    truth = brute_force(instance)
    if truth.placement is None or truth.objective is None or not instance.num_tables:
        return
    costs, everything = peak_costs(instance), range(instance.num_tables)
    load = load_of(instance, costs, truth.placement, everything)
    keep = usable(instance)
    _, tables, free = Chooser(instance, keep, random.Random(4)).draw(truth.placement, load)
    rest = load.minus(load_of(instance, costs, truth.placement, tables))
    limit = None if instance.objective == Objective.TOTAL else truth.objective
    model = Neighbourhood(instance, costs, truth.placement, rest, Part(tables, free, keep, limit))
    result = solve_cpsat(model.model, Limits(seconds=10), model.hint())
    assert result.status == "optimal"
    assert result.values is not None
    verdict = check(instance, model.placement(result.values))
    assert verdict.feasible, verdict.violations
    assert verdict.objectives[instance.objective.value] == truth.objective


def test_ranks_of_a_machine_open_what_lies_on_all_of_it() -> None:
    """Two of four ranks open: the table-row-wise table is open as well, if not its seat."""
    builder = InstanceBuilder([[0, 1, 2, 3], [4]], ["p"], [], "busiest_rank")
    builder.add_table("wide")
    builder.add_option("o", [Block(Where.ONE_MACHINE, [Shard({}, [3])], 1)])
    for table in "abcd":
        builder.add_table(table)
        builder.add_option("o", [Block(Where.ANY_RANK, [Shard({}, [5])])])
    instance = builder.build()
    ranks = [[np.arange(4)], *([np.asarray([r])] for r in range(4))]
    placement = Placement(np.arange(5), ranks)
    load = load_of(instance, peak_costs(instance), placement, range(5))
    chooser = Chooser(instance, usable(instance), random.Random(0), Sizes(ranks=2.0))
    drawn = [chooser.draw(placement, load) for _ in range(50)]
    parts = [(tables, free) for kind, tables, free in drawn if kind == "ranks"]
    assert parts
    assert all(0 in tables and free.sum() == 2 for tables, free in parts)
