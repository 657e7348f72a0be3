"""What must move at least: certified, and a limit below it is answered at once."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from formulations import Instance, InstanceBuilder, Placement, Settings, Where, solve
from formulations.errors import InstanceError
from formulations.evidence.verify import verify
from formulations.instance import Current
from formulations.instance.build import Block, Shard
from formulations.result.outcome import Status
from formulations.result.outcome_file import outcome_from_dict, outcome_to_dict
from formulations.staying import Counted, what_must_move
from tests.formulations.brute_force import brute_force
from tests.formulations.search.test_near import tables_on
from tests.formulations.strategies import instances
from tests.formulations.test_priced import moving

QUICK = Settings(time_limit=20, workers=1)


@pytest.mark.parametrize("formulation", ["auto", "cpsat", "mip", "scale"])
def test_a_limit_that_is_too_small_is_answered_with_what_must_move(formulation: str) -> None:
    """Rank 0 holds 11 of 9, so that the table of 2 moves at least; the answer holds as a file."""
    instance, there = tables_on([0, 0, 0, 1], [5, 4, 2, 3], 9)
    instance = replace(instance, max_moved_bytes=1)
    outcome = solve(instance, formulation, replace(QUICK, hint=there))
    assert outcome.status == Status.INFEASIBLE
    assert [each["least"] for each in outcome.detail["must_move"]] == [2]
    assert outcome.detail["would_move"] == {"tables": 1, "bytes": 2}
    again = outcome_from_dict(instance, outcome_to_dict(instance, outcome))
    judged = verify(instance, again)
    assert judged.ok and not [claim for claim in judged.claims if claim.ok is None]


def test_a_forged_least_is_refuted() -> None:
    """A certificate proves what it proves: not one byte more, and not on another instance."""
    instance, there = tables_on([0, 0, 0, 1], [5, 4, 2, 3], 9)
    instance = replace(instance, max_moved_bytes=1)
    outcome = solve(instance, "cpsat", replace(QUICK, hint=there))
    detail = {**outcome.detail, "must_move": [{**outcome.detail["must_move"][0], "least": 3}]}
    assert not verify(instance, outcome.with_(detail=detail)).ok
    roomy = replace(instance.resources[0], capacity=np.full(2, 11))
    with pytest.raises(InstanceError, match="what is not there"):
        verify(replace(instance, resources=(roomy,)), outcome)


def test_within_a_limit_that_is_enough_there_is_a_plan() -> None:
    """Two bytes must move and may; the outcome says so too."""
    instance, there = tables_on([0, 0, 0, 1], [5, 4, 2, 3], 9)
    instance = replace(instance, max_moved_bytes=2)
    outcome = solve(instance, "cpsat", replace(QUICK, hint=there))
    assert outcome.placement is not None and verify(instance, outcome).ok
    assert [each["least"] for each in outcome.detail["must_move"]] == [2]


@given(moving())
def test_no_plan_moves_less(case: tuple[Instance, Placement]) -> None:
    """The least is never more than what a plan needs, in bytes and in tables, and moves that
    nothing forces count nothing."""
    instance, _ = case
    tight = [replace(r, capacity=r.capacity - r.capacity // 3) for r in instance.resources]
    instance = replace(instance, resources=tuple(tight))
    for counted in Counted:
        question = what_must_move(instance, counted)
        least = brute_force(question).objective if question.num_tables else 0
        if least is None or not instance.current:
            assert least is not None or brute_force(instance).objective is None
            continue
        if least:
            limit = {f"max_moved_{counted}": least - 1}
            assert brute_force(replace(instance, **limit)).objective is None


@given(instances(max_tables=3, max_combinations=200), st.integers(0, 3))
@hypothesis_settings(max_examples=150, deadline=None)
def test_whatever_lies_where_no_plan_moves_less(instance: Instance, cut: int) -> None:
    """Nor where tables lie on ranks that their option cannot have, or at one that is gone; with
    pins, forbidden options, fusion groups, uneven shards, and resources of machines."""
    assume(instance.current)
    tight = tuple(replace(r, capacity=r.capacity * cut // 3) for r in instance.resources)
    instance = replace(instance, resources=tight, max_moved_tables=None, max_moved_bytes=None)
    for counted in Counted:
        question = what_must_move(instance, counted)
        least = brute_force(question).objective if question.num_tables else 0
        if least is None or least > 0:
            limit = {} if least is None else {f"max_moved_{counted}": least - 1}
            assert brute_force(replace(instance, **limit)).objective is None


def test_a_table_that_is_not_where_its_option_puts_it_may_move_there() -> None:
    """It was on rank 0 alone, at an option for every rank: it moves 2 bytes there, not 5."""
    builder = InstanceBuilder([[0, 1]], ["time"], [("hbm", "rank", 9)], "step_time")
    builder.add_table("t")
    for name, where, size in (("everywhere", Where.EVERY_RANK, 1), ("whole", Where.ANY_RANK, 5)):
        builder.add_option(name, [Block(where, [Shard({"hbm": size}, [1], move_bytes=size)])])
    instance = builder.build(current=[Current(0, 0, ((0,),))], max_moved_bytes=2)
    outcome = solve(instance, "cpsat", QUICK)
    assert [each["least"] for each in outcome.detail["must_move"]] == [2]
    assert outcome.status == Status.OPTIMAL
    short = solve(replace(instance, max_moved_bytes=1), "cpsat", QUICK)
    assert short.status == Status.INFEASIBLE
