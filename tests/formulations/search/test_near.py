"""Plans near a wish: plans that fit stay, others are repaired with few bytes moved."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formulations import Instance, InstanceBuilder, Placement, Settings, Where, solve
from formulations.instance import Current
from formulations.instance.build import Block, Shard
from formulations.result.check import check, moved_bytes, moved_tables
from formulations.search.anneal import Sampler
from formulations.search.near import nearest, repaired, settled
from formulations.search.numbers import NEAR
from tests.formulations.brute_force import brute_force
from tests.formulations.strategies import instances


def tables_on(ranks: list[int], sizes: list[int], room: int) -> tuple[Instance, Placement]:
    """Whole tables of some bytes on ranks with some room, and the plan that puts them there."""
    last = max(2, max(ranks) + 1)
    builder = InstanceBuilder([list(range(last))], ["time"], [("hbm", "rank", room)], "step_time")
    for index, size in enumerate(sizes):
        builder.add_table(f"t{index}")
        shard = Shard({"hbm": size}, [size], move_bytes=size)
        builder.add_option("whole", [Block(Where.ANY_RANK, [shard])])
    instance = builder.build()
    current = tuple(Current(t, t, ((rank,),)) for t, rank in enumerate(ranks))
    there = Placement(np.arange(len(sizes)), [[np.asarray([rank])] for rank in ranks])
    return replace(instance, current=current), there


def bytes_of(instance: Instance, plan: Placement) -> int:
    """That move."""
    return moved_bytes(instance, plan, moved_tables(instance, plan))


def test_a_plan_that_fits_is_kept() -> None:
    """The wish itself comes back."""
    instance, there = tables_on([0, 0, 1], [3, 3, 3], 9)
    assert settled(instance, there) is there


def test_the_fewest_bytes_move() -> None:
    """Rank 0 holds 11 of 9: moving the table of 2 is enough."""
    instance, there = tables_on([0, 0, 0, 1], [5, 4, 2, 3], 9)
    plan = settled(instance, there)
    assert plan is not None and check(instance, plan).feasible
    assert bytes_of(instance, plan) == 2
    assert [int(plan.ranks[t][0][0]) for t in range(4)] == [0, 0, 1, 1]


def test_tables_without_a_place_are_packed() -> None:
    """A new table of 4 fits on rank 1 only; nothing that was there moves."""
    instance, there = tables_on([0, 1, 0], [6, 3, 4], 9)
    instance = replace(instance, current=instance.current[:2])
    wish = Placement(np.asarray([0, 1, -1]), [*there.ranks[:2], []])
    plan = settled(instance, wish)
    assert plan is not None and bytes_of(instance, plan) == 0
    assert int(plan.ranks[2][0][0]) == 1


def test_no_plan_no_answer() -> None:
    """Twelve bytes do not fit into ten."""
    instance, there = tables_on([0, 0, 1], [4, 4, 4], 5)
    assert settled(instance, there) is None


def test_a_repair_ends_after_its_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no plan, each try is made once: none repeats one that allowed everything."""
    instance, there = tables_on([0, 0, 1], [4, 4, 4], 5)
    tries: list[object] = []
    run = Sampler.run
    monkeypatch.setattr(Sampler, "run", lambda *given: tries.append(given) or run(*given))
    assert settled(instance, there) is None
    assert len(tries) == len(NEAR.tries)


@given(instances(max_tables=4, constraints=False), st.randoms(use_true_random=False))
def test_whatever_is_found_is_a_plan_and_no_limit_is_forgotten(instance, random) -> None:  # type: ignore[no-untyped-def]
    """From any wish of an option a table anywhere; where there is no plan, none is found."""
    if not instance.num_tables:
        return
    options = [random.choice([-1, *instance.options_of(t)]) for t in range(instance.num_tables)]
    wish = Placement(np.asarray(options), [[] for _ in options])
    current = tuple(Current(t, o, ()) for t, o in enumerate(options) if o >= 0)
    asked = replace(instance, current=current)
    plan = settled(asked, wish)
    if plan is not None:
        assert check(asked, plan).feasible
        assert brute_force(instance).objective is not None


def test_solve_mends_its_hint_and_says_what_moved() -> None:
    """The hint does not fit; the outcome tells the least that was found to move."""
    instance, there = tables_on([0, 0, 0, 1], [5, 4, 2, 3], 9)
    asked = replace(instance, max_moved_bytes=2)
    outcome = solve(asked, "auto", Settings(time_limit=5, hint=there))
    assert outcome.detail["settled"] == {"tables": 1, "bytes": 2}
    assert outcome.status == "optimal" and outcome.objective == 9
    assert brute_force(asked).objective == 9


@pytest.mark.parametrize("objective", ["total", "busiest_rank"])
def test_a_plan_that_fits_is_improved_within_the_limit(objective: str) -> None:
    """Without multipliers too: of three tables with a cheaper option, one may move."""
    builder = InstanceBuilder([[0, 1, 2]], ["time"], [("hbm", "rank", 9)], objective)
    for index in range(3):
        builder.add_table(f"t{index}")
        for name, cost in (("dear", 10 + 10 * (index == 1)), ("cheap", 1)):
            shard = Shard({"hbm": 1}, [cost], move_bytes=1)
            builder.add_option(name, [Block(Where.ANY_RANK, [shard])])
    current = tuple(Current(t, 2 * t, ((t,),)) for t in range(3))
    instance = replace(builder.build(), current=current, max_moved_tables=1)
    there = Placement(2 * np.arange(3), [[np.asarray([t])] for t in range(3)])
    assert repaired(instance, there) is there
    plan = settled(instance, there)
    assert plan is not None and check(instance, plan).feasible
    most = {"total": 31, "busiest_rank": 10}  # of 40 and 20
    assert check(instance, plan).objectives[objective] <= most[objective]


@pytest.mark.parametrize(("most", "bytes_"), [(12, {0}), (8, {4, 5, 7}), (7, {5, 7}), (6, None)])
def test_a_cost_is_reached_with_few_moves(most: int, bytes_: set[int] | None) -> None:
    """Rank 0 holds 5 + 4 + 3. Nothing moves where that is cheap enough; for 8 at least 4 bytes
    must, for 7 at least 5, and 6 is less than any plan costs."""
    instance, there = tables_on([0, 0, 0], [5, 4, 3], 20)
    plan = nearest(instance, there, most)
    if bytes_ is None:
        assert plan is None
        return
    assert plan is not None and bytes_of(instance, plan) in bytes_
    verdict = check(instance, plan)
    assert verdict.feasible and verdict.objectives["step_time"] <= most


def test_no_limit_is_forgotten_while_a_cost_is_sought() -> None:
    """Three bytes may move, and that is not enough for a cost of 8."""
    instance, there = tables_on([0, 0, 0], [5, 4, 3], 20)
    assert nearest(replace(instance, max_moved_bytes=3), there, 8) is None
    plan = nearest(replace(instance, max_moved_bytes=4), there, 8)
    assert plan is not None and bytes_of(instance, plan) == 4
