"""Goals against brute force: the lexicographic optimum is reached, or a goal reported open."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from math import ceil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formulations import Settings, solve
from formulations.clock import Clock
from formulations.goals import seek
from formulations.goals.seek import improve
from formulations.instance import Current, Instance, Scope, Where
from formulations.result.check import Loads, check, moved_tables
from formulations.result.outcome import Outcome, Status, StoppedBy, found
from formulations.result.placement import Placement
from formulations.search import loops
from formulations.search.anneal import Sampler, Within
from formulations.search.numbers import AIMS
from formulations.settings import GOALS, Goals
from tests.formulations.brute_force import brute_force, table_placements
from tests.formulations.examples import ANY, EVERY, at, built, placed
from tests.formulations.strategies import instances

LOOSE = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def plans(instance: Instance) -> Iterator[tuple[Placement, int, Loads]]:
    """Every feasible plan, its objective and loads."""
    ways = [
        [(option, ranks) for option in instance.options_of(table)
         for ranks in table_placements(instance, option)]
        for table in range(instance.num_tables)
    ]  # fmt: skip
    for chosen in itertools.product(*ways):
        plan = Placement(
            np.asarray([option for option, _ in chosen], dtype=np.int64),
            [[np.asarray(r, dtype=np.int64) for r in ranks] for _, ranks in chosen],
        )
        verdict = check(instance, plan)
        if verdict.feasible and verdict.loads is not None:
            yield plan, verdict.objectives[instance.objective.value], verdict.loads


def worth(instance: Instance, goals: Goals, plan: Placement, loads: Loads) -> tuple[float, ...]:
    """The value of each goal for a plan, computed here independently."""
    shards = 0
    for table, option in enumerate(plan.options.tolist()):
        for block, ranks in zip(instance.blocks_of(option), plan.ranks[table], strict=True):
            view = instance.block(block)
            shards += view.count if view.where == Where.CLUSTER else len(ranks)
    pairs = list(zip(instance.resources, loads.use, strict=True))
    host = [(r, use) for r, use in pairs if r.scope != Scope.RANK and r.capacity.any()]
    most = max((int(r.capacity.sum()) for r, _ in host), default=1)
    share = sum(use.sum() * most / r.capacity.sum() for r, use in host)
    found: dict[str, list[float]] = {
        "host_memory": [share],
        "shards": [shards],
        "total": [int(loads.cost.sum() + loads.unplaced_cost.sum())],
        "moves": [len(moved_tables(instance, plan))],
        "even_memory": [_fullest(pairs, scope, goals) for scope in ("rank", "machine")],
    }
    return tuple(value for goal in goals.order for value in found[goal])


def _fullest(pairs: list[tuple[object, np.ndarray]], scope: str, goals: Goals) -> int:
    shares = [
        ceil(1000 * int(used) / int(room))
        for r, use in pairs
        if r.scope == scope  # type: ignore[attr-defined]
        for used, room in zip(use, r.capacity, strict=True)  # type: ignore[attr-defined]
        if room
    ]
    step = round(1000 * goals.step)
    return max(round(1000 * goals.enough), ceil(max(shares) / step) * step) if shares else 0


def one_memory(instance: Instance) -> bool:
    """Whether at most one memory beyond ranks has room; the shares of several would be rounded."""
    return sum(r.scope != Scope.RANK and bool(r.capacity.any()) for r in instance.resources) < 2


@LOOSE
@given(
    instances(max_combinations=400, max_tables=3),
    st.permutations(GOALS),
    st.sampled_from([0.0, 0.2]),
    st.sampled_from([(0.0, 0.001), (0.5, 0.05), (0.0, 0.05)]),
    st.sampled_from([None, 20.0]),
)
def test_the_lexicographic_optimum_is_reached(
    instance: Instance, order: list[str], tolerance: float, even: tuple[float, float],
    work: float | None,
) -> None:  # fmt: skip
    """From an optimal plan every goal is met, at the value it has in the best of all plans: by
    CP-SAT alone, and with compiled search before it."""
    truth = brute_force(instance)
    if truth.placement is None or truth.objective is None or not one_memory(instance):
        return
    goals = Goals(tuple(order), tolerance, *even)
    asked = Settings(time_limit=None, work_limit=work, workers=1, goals=goals)
    start = found(instance, "cpsat", truth.placement, StoppedBy.PROOF)
    outcome = improve(instance, start, asked, Clock(asked))
    assert outcome.placement is not None and outcome.objective is not None
    most = goals.most(truth.objective)
    assert outcome.objective <= most
    verdict = check(instance, outcome.placement)
    assert verdict.feasible and verdict.loads is not None
    best = min(
        worth(instance, goals, plan, loads)
        for plan, value, loads in plans(instance)
        if value <= most
    )
    assert worth(instance, goals, outcome.placement, verdict.loads) == best
    assert all(goal.met for goal in outcome.goals)


def cut_cheaply() -> Instance:
    """A table that fills one rank to 96%, or is cut over all four ranks beside what these carry."""
    large = {"whole": at(ANY, 99_997, hbm=96), "cut": at(EVERY, 1, hbm=24)}
    small = [at([index], 100_000 * (index > 0) + 3, hbm=3) for index in range(4)]
    return built([large, *small], machines=[range(4)], hbm=100)


def test_next_to_nothing_is_given_up_for_much_room() -> None:
    """Whole, the table fills a rank to 99% at 100,003; cut, it fills ranks to 27% at 1 more."""
    instance = cut_cheaply()
    exact = solve(instance, "cpsat", Settings(workers=1, goals=Goals(tolerance=0.0)))
    assert (exact.status, exact.objective) == (Status.OPTIMAL, 100_003)
    outcome = solve(instance, "cpsat", Settings(workers=1))
    assert (outcome.objective, outcome.before_goals) == (100_004, 100_003)
    assert outcome.status == Status.FEASIBLE and outcome.bound == 100_003
    assert outcome.certified_bound is not None and outcome.certified_bound <= 100_003
    fullest = next(g for g in outcome.goals if g.goal == "even_memory")
    assert (fullest.value, fullest.met) == (270, True)


def test_nothing_is_given_up_for_little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where cutting the table frees too little room to be worth it, the plan stays optimal."""
    monkeypatch.setattr(seek, "AIMS", replace(AIMS, worth=750))
    outcome = solve(cut_cheaply(), "cpsat", Settings(workers=1))
    assert (outcome.status, outcome.objective, outcome.before_goals) == (
        Status.OPTIMAL, 100_003, None,
    )  # fmt: skip


def test_what_time_does_not_prove_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without time to search, a goal that could be better is reported as open, not as met."""
    monkeypatch.setattr(seek, "AIMS", replace(AIMS, share=0.0, least=0.0))
    instance = cut_cheaply()
    truth = brute_force(instance)
    assert truth.placement is not None
    asked = Settings(workers=1)
    outcome = improve(
        instance, found(instance, "cpsat", truth.placement, StoppedBy.PROOF), asked, Clock(asked)
    )
    fullest = next(g for g in outcome.goals if g.goal == "even_memory")
    assert (fullest.value, fullest.met, fullest.bound) == (990, False, None)


def test_a_goal_met_at_no_cost_gives_nothing_up() -> None:
    """With shards first, the plan has the fewest, the goal is met, and no cost is given up."""
    instance = cut_cheaply()
    goals = Goals(("shards", "even_memory", "host_memory", "total", "moves"))
    outcome = solve(instance, "cpsat", Settings(workers=1, goals=goals))
    shards = next(g for g in outcome.goals if g.goal == "shards")
    assert outcome.before_goals is None and (shards.value, shards.met) == (5, True)


def test_a_total_below_zero_is_sought_to_its_least() -> None:
    """Given up a fifth of −10, no host memory is used at −8 and at −9: −8 is not yet met."""
    options = {"host": at(ANY, -10, ddr=5), "dear": at(ANY, -8), "less": at(ANY, -9)}
    instance = built([options], "total", ddr=9)
    asked = Settings(workers=1, goals=Goals(("host_memory", "total"), tolerance=0.2))
    start = found(instance, "cpsat", placed([1], [0]), StoppedBy.PROOF)
    outcome = improve(instance, start, asked, Clock(asked))
    total = next(goal for goal in outcome.goals if goal.goal == "total")
    assert (outcome.objective, total.value, total.met) == (-9, -9, True)


def test_moves_are_a_goal_against_todays_plan() -> None:
    """Of two equally good ranks, the table stays on the one where production has it."""
    for rank in (0, 1):
        instance = built([at(ANY, 7, hbm=5)], hbm=9, current=[Current(0, 0, ((rank,),))])
        outcome = solve(instance, "cpsat", Settings(workers=1))
        assert _ranks(outcome) == [rank]
        assert outcome.goals[-1].goal == "moves" and outcome.goals[-1].value == 0


@pytest.mark.parametrize("looks", [0, 1, 2])
def test_a_long_pass_ends_soon_after_the_time_limit(looks: int) -> None:
    """Of 160 tables in two shards each, 64 become whole between two looks at the time."""
    tables = [{"two": at(ANY, 1, hbm=1, count=2), "one": at(ANY, 1, hbm=1)}] * 160
    instance, plan = built(tables, hbm=999), placed(range(0, 320, 2), *[[0, 1]] * 160)
    loops.waited_for(lambda: False)
    sampler, looked = Sampler(instance), itertools.count()
    sampler.begin(plan, Within([160]))
    sampler.tidy(np.tile([1, 0], 320), 160, lambda: next(looked) == looks)
    assert (sampler.placement().options % 2).sum() == 64 * looks


def _ranks(outcome: Outcome) -> list[int]:
    assert outcome.placement is not None
    return outcome.placement.ranks[0][0].tolist()


@pytest.mark.parametrize("quick", [True, False])
def test_no_long_pass_begins_after_the_time_limit(
    quick: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table in two shards becomes whole where a pass over all options is quick, else it stays."""
    monkeypatch.setattr(seek, "AIMS", replace(AIMS, quick=AIMS.quick if quick else 0))
    instance = built([{"two": at(ANY, 1, hbm=1, count=2), "one": at(ANY, 1, hbm=1)}], hbm=10)
    asked = Settings(time_limit=1e-9, workers=1)
    loops.waited_for(lambda: False)
    start = found(instance, "scale", placed([0], [0, 1]), StoppedBy.EXHAUSTED)
    ended = improve(instance, start, asked, Clock(asked)).placement
    assert ended is not None and bool(ended.options[0]) == quick
