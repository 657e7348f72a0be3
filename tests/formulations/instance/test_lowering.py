"""Kinds of place, pins and current places as candidates: by hand, and shard by shard."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from formulations.instance import Current, Instance, Pin, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.instance.candidates import Candidates
from formulations.instance.lowering import crowded, lower, settled_ranks
from tests.formulations.brute_force import table_placements
from tests.formulations.examples import every_kind
from tests.formulations.strategies import instances

LOOSE = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))


def all_of(instance: Instance) -> Candidates:
    """The candidates of every option."""
    return lower(instance, np.ones(instance.num_options, dtype=bool))


def test_every_kind_of_place_has_its_form() -> None:
    """Each kind of place gets its normal form; an even one is corrected where ranks differ."""
    found = all_of(every_kind())
    every, anywhere, machine, inside, listed, off = range(6)
    assert found.option.tolist() == list(range(6)) and not found.stays.any()
    assert found.even_candidate.tolist() == [every]
    corrections = np.flatnonzero(found.fixed.candidate == every)
    assert [(int(found.fixed.rank[i]), int(found.fixed.length[i]), int(found.fixed.times[i]))
            for i in corrections] == [(3, 1, 1), (3, 1, -1)]  # fmt: skip
    on = np.flatnonzero(found.fixed.candidate == listed)
    assert found.fixed.rank[on].tolist() == [3, 1]
    ((spread,), (whole,), (among,)) = found.spread, found.whole, found.inside
    assert (spread.candidate.tolist(), spread.count.tolist()) == ([anywhere], [2])
    assert spread.ranks.tolist() == [0, 1, 2, 3] and spread.room is None
    assert (whole.candidate.tolist(), whole.machines.tolist()) == ([machine], [0, 1])
    assert whole.entries.shape == (1, 2)
    assert (among.candidate.tolist(), among.distinct) == ([inside], True)
    assert (found.off_candidate.tolist(), found.off_times.tolist()) == ([off], [2])


def two_shards(**options: object) -> Instance:
    """One table of two equal shards, free among the ranks of two machines."""
    builder = InstanceBuilder([[0, 1], [2]], ["p"], [], "busiest_rank")
    builder.add_table("t")
    builder.add_option("o", [Block(count=2, shards=[Shard({}, [3])], **options)])  # type: ignore[arg-type]
    return builder.build()


@pytest.mark.parametrize(
    ("where", "count", "over"),
    [
        (Where.ANY_RANK, 3, False), (Where.ANY_RANK, 4, True),
        (Where.ANY_RANK_OF_ONE_MACHINE, 2, False), (Where.ANY_RANK_OF_ONE_MACHINE, 3, True),
        (Where.ONE_MACHINE, 2, False), (Where.ONE_MACHINE, 3, True),
    ],
)  # fmt: skip
def test_shards_that_must_part_need_as_many_places(where: Where, count: int, over: bool) -> None:
    """An option with more distinct shards than there are places for them has no candidate."""
    builder = InstanceBuilder([[0, 1], [2]], ["p"], [], "busiest_rank")
    builder.add_table("t")
    builder.add_option("o", [Block(where, [Shard({}, [1])], count, distinct=True)])
    instance = builder.build()
    assert crowded(instance).tolist() == [over]
    assert all_of(instance).count == (0 if over else 1)


def test_a_pin_is_a_multiset_of_ranks() -> None:
    """Two shards pinned to ranks 2 and 0 are fixed there, one on each."""
    instance = replace(two_shards(where=Where.ANY_RANK), pins=(Pin(0, 0, ((2, 0),)),))
    found = all_of(instance)
    assert found.count == 1 and not found.spread
    assert sorted(zip(found.fixed.rank.tolist(), found.fixed.times.tolist(), strict=True)) == [
        (0, 1), (2, 1)]  # fmt: skip
    assert sorted(settled_ranks(found, 0, 0).tolist()) == [0, 2]


def test_a_current_place_is_a_candidate_that_does_not_move() -> None:
    """With moves limited a table may stay or be placed anew; only the latter counts as moved."""
    instance = replace(
        two_shards(where=Where.ANY_RANK),
        current=(Current(0, 0, ((1, 1),)),),
        max_moved_tables=0,
    )
    found = all_of(instance)
    assert found.option.tolist() == [0, 0]
    assert found.stays.tolist() == [False, True] and found.moves.tolist() == [True, False]
    assert settled_ranks(found, 1, 0).tolist() == [1, 1]


def test_no_current_place_where_moves_are_free() -> None:
    """Without a limit on moves, staying in place gets no candidate of its own."""
    instance = replace(two_shards(where=Where.ANY_RANK), current=(Current(0, 0, ((1, 1),)),))
    assert all_of(instance).stays.tolist() == [False]


@LOOSE
@given(instances(constraints=False))
def test_what_can_be_placed_has_a_candidate(instance: Instance) -> None:
    """Without pins and moves: one candidate for each option that has a placement, no other."""
    placeable = [
        o for o in range(instance.num_options) if any(True for _ in table_placements(instance, o))
    ]
    found = all_of(instance)
    assert found.option.tolist() == placeable
    assert not found.stays.any() and not found.moves.any()
