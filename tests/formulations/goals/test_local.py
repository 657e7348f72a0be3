"""The compiled search for goals keeps the objective and prefers less host memory, fewer shards."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from formulations.clock import Clock
from formulations.goals import seek
from formulations.goals.local import preferences
from formulations.goals.problem import Problem
from formulations.instance import Current, Instance
from formulations.result.check import check, moved_tables
from formulations.result.outcome import StoppedBy, found
from formulations.result.placement import Placement
from formulations.settings import DEFAULT_GOALS, GOALS, Goals, Settings
from milp_planner.start.mapping import start_on
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import ANY, at, built, placed
from tests.formulations.needless import needless
from tests.formulations.strategies import instances


def finished(instance: Instance, placement: Placement, goals: Goals = DEFAULT_GOALS) -> Placement:
    """The plan that the local search alone reaches: tables and shards change one after another."""
    asked = Settings(time_limit=None, work_limit=100.0, workers=1, goals=goals)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seek._Seek, "_modelled", lambda self, index: self.plan)
        patch.setattr(seek._Seek, "_opened", lambda self, index: self.plan)
        patch.setattr(seek._Seek, "_annealed", lambda self, index: self.plan)
        start = found(instance, "scale", placement, StoppedBy.EXHAUSTED)
        outcome = seek.improve(instance, start, asked, Clock(asked))
    assert outcome.placement is not None
    return outcome.placement


#: Memory is evened after the goals that options decide, and as far as possible.
LATE = Goals(("host_memory", "shards", "total", "even_memory", "moves"), 0.0, 0.0, 0.001)
#: The usual goals, but moves come first: tables stay where production has them.
HOME = Goals(("moves", *(goal for goal in GOALS if goal != "moves")), 0.0)
LOOSE = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@LOOSE
@given(instances())
def test_it_costs_nothing_and_breaks_nothing(instance: Instance) -> None:
    """From an optimal plan the search ends at one; no table's option is preferred less."""
    truth = brute_force(instance)
    if truth.placement is None:
        return
    plan = finished(instance, truth.placement, LATE)
    verdict = check(instance, plan)
    assert verdict.feasible, verdict.violations
    assert verdict.objectives[instance.objective.value] == truth.objective
    rank = preferences(Problem(replace(instance, current=()), LATE))
    assert (rank[plan.options] <= rank[truth.placement.options]).all()


@LOOSE
@given(instances())
def test_nothing_is_in_host_memory_or_cut_without_need(instance: Instance) -> None:
    """No table can leave host memory or become whole afterwards while all others stay."""
    free = replace(instance, pins=(), max_moved_tables=None, max_moved_bytes=None)
    truth = brute_force(free)
    if truth.placement is None:
        return
    assert needless(free, finished(free, truth.placement, LATE)) == []


def test_small_tables_leave_host_memory_and_stay_whole() -> None:
    """A small table leaves host memory for a rank with room, and a cut table becomes whole."""
    table = {"host": at(ANY, 1, ddr=2), "two": at(ANY, 1, hbm=1, count=2), "one": at(ANY, 2, hbm=2)}
    instance = built({"busy": at([0], 9, hbm=4), "small": table, "cut": table}, hbm=10, ddr=10)
    plan = finished(instance, placed([0, 1, 5], [0], [1], [1, 1]))
    assert [instance.option_names[o] for o in plan.options] == ["o", "one", "one"]


def test_a_table_becomes_whole_on_a_full_rank_if_the_empty_one_is_busy() -> None:
    """The objective comes before room: the emptier rank is the busiest and has no time left."""
    cut = {"two": at(ANY, 1, hbm=10**9, count=2), "one": at(ANY, 2, hbm=10**9)}
    instance = built([at([0], 10, hbm=1), at([1], 5, hbm=8 * 10**9), cut], hbm=10**10)
    plan = finished(instance, placed([0, 1, 2], [0], [1], [1, 1]), LATE)
    assert instance.option_names[plan.options[2]] == "one"
    assert plan.ranks[2][0].tolist() == [1]


def two_ranks() -> tuple[Instance, Placement]:
    """A table of cost 6 on rank 0; in production two more are cut in two, over both ranks."""
    table = {"two": at(ANY, 1, hbm=1, count=2), "one": at(ANY, 3, hbm=2)}
    home = placed([0, 1, 3], [0], [0, 1], [0, 1])
    current = [Current(0, 0, ((0,),)), Current(1, 1, ((0, 1),)), Current(2, 3, ((0, 1),))]
    return built([at([0], 6, hbm=4), table, table], hbm=10, current=current), home


def test_moves_before_shards_leave_tables_where_they_are() -> None:
    """By default both cut tables become whole on the idle rank; with moves first, none moves."""
    instance, home = two_ranks()
    assert check(instance, home).objectives["busiest_rank"] == 8
    whole = finished(instance, home)
    assert [instance.option_names[o] for o in whole.options] == ["o", "one", "one"]
    kept = finished(instance, home, HOME)
    assert [instance.option_names[o] for o in kept.options] == ["o", "two", "two"]


def test_small_instances_need_no_loops() -> None:
    """In a fresh process, without compiled loops, the exact model pursues the goals."""
    script = """
import sys
from formulations import Settings, solve
from formulations.settings import parse_goals
from tests.formulations.goals.test_local import one_at_home

goals = parse_goals("moves", "busiest_rank")
print(*solve(one_at_home(), "cpsat", Settings(time_limit=120.0, goals=goals)).placement.options)
print("formulations.search.kernels" in sys.modules)
"""
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=200
    )
    assert ran.stdout.split() == ["1", "False"]


def one_at_home() -> Instance:
    """A table that costs the same in either memory; in production it is in DDR."""
    table = {"hbm": at(ANY, 7, hbm=5), "ddr": at(ANY, 7, ddr=5)}
    return built([table], hbm=9, ddr=9, current=[Current(0, 1, ((1,),))])


def test_what_may_be_given_up_brings_tables_home() -> None:
    """The plan in production costs 8, not 6: only a tolerance for that brings both tables back."""
    instance, _ = two_ranks()
    best = placed([0, 2, 4], [0], [1], [1])
    moved = [
        len(moved_tables(instance, finished(instance, best, Goals(HOME.order, tolerance))))
        for tolerance in (0.0, 0.2, 0.34)
    ]
    assert moved == [2, 1, 0]


def test_memory_is_evened_without_cost() -> None:
    """Tables without cost are spread evenly over two ranks; with moves first, they stay."""
    plain, before = built([at(ANY, 0, hbm=2)] * 4, hbm=10), placed(range(4), *[[0]] * 4)
    assert sorted(check(plain, finished(plain, before)).loads.use[0].tolist()) == [4, 4]
    known = replace(plain, current=tuple(Current(t, t, ((0,),)) for t in range(4)))
    kept = finished(known, before, HOME)
    assert check(known, kept).loads.use[0].tolist() == [8, 0]


def test_a_fusion_group_leaves_host_memory_together() -> None:
    """No table of a fusion group can change its level alone; together they move to the ranks."""
    table = {"l0": (at(ANY, 1, ddr=3), ("f", 0)), "l1": (at(ANY, 1, hbm=3), ("f", 1))}
    instance = built([table] * 2, hbm=10, ddr=10)
    assert finished(instance, placed([0, 2], [0], [1])).options.tolist() == [1, 3]


@pytest.mark.slow
def test_no_table_of_a_production_model_is_cut_without_need(
    shared_data: Path, production: tuple[Path, Path]
) -> None:
    """TorchRec's published plan (1,935 tables, 96 ranks): 34 needless cuts before, none after."""
    now = shared_data / "torchrec-production" / "today.csv"
    start = start_on(now, *production, "busiest_rank", exact=True)
    compiled, today = start.compiled, start.placement
    assert len(needless(compiled.instance, today)) > 20
    assert needless(compiled.instance, finished(compiled.instance, today, LATE)) == []


def test_the_quick_pass_runs_even_when_no_time_is_left() -> None:
    """Even when no time is left, the quick pass makes tables whole that are cut without need."""
    from formulations.search import kernels  # noqa: F401 - loaded, as after a search

    instance, home = two_ranks()
    asked = Settings(time_limit=1e-9, workers=1)
    start = found(instance, "scale", home, StoppedBy.TIME_LIMIT)
    outcome = seek.improve(instance, start, asked, Clock(asked))
    assert outcome.placement is not None
    assert [instance.option_names[o] for o in outcome.placement.options] == ["o", "one", "one"]
    assert not outcome.goals[2].met or outcome.goals[2].bound == outcome.goals[2].value
