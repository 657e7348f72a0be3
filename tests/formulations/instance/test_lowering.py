"""Kinds of place, pins and current places as candidates: by hand, and shard by shard.

Checking all blocks at once, rule by rule, refuses the same as checking each block. The guard
against sums beyond 62 bits counts every shard once. Where a shard may lie is written in one
package, and twice more to check it.
"""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import formulations
from formulations.errors import InstanceError
from formulations.instance import Current, Instance, Pin, Scope, Where
from formulations.instance.build import Block, Shard
from formulations.instance.candidates import Candidates
from formulations.instance.lowering import crowded, lower, settled_ranks
from formulations.instance.validate import at_block, check_blocks
from tests.formulations.brute_force import table_placements
from tests.formulations.examples import ANY, EVERY, INSIDE, MACHINE, at, built, every_kind
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


#: One table of two equal shards, free among the ranks of two machines.
TWO_SHARDS = built([at(ANY, 3, count=2)], machines=[[0, 1], [2]])


@pytest.mark.parametrize(
    ("where", "count", "over"),
    [
        (ANY, 3, False), (ANY, 4, True), (INSIDE, 2, False), (INSIDE, 3, True),
        (MACHINE, 2, False), (MACHINE, 3, True),
    ],
)  # fmt: skip
def test_shards_that_must_part_need_as_many_places(where: Where, count: int, over: bool) -> None:
    """An option with more distinct shards than there are places for them has no candidate."""
    instance = built([at(where, 1, count=count, distinct=True)], machines=[[0, 1], [2]])
    assert crowded(instance).tolist() == [over]
    assert all_of(instance).count == (0 if over else 1)


def test_a_pin_is_a_multiset_of_ranks() -> None:
    """Two shards pinned to ranks 2 and 0 are fixed there, one on each."""
    instance = replace(TWO_SHARDS, pins=(Pin(0, 0, ((2, 0),)),))
    found = all_of(instance)
    assert found.count == 1 and not found.spread
    assert sorted(zip(found.fixed.rank.tolist(), found.fixed.times.tolist(), strict=True)) == [
        (0, 1), (2, 1)]  # fmt: skip
    assert sorted(settled_ranks(found, 0, 0).tolist()) == [0, 2]


def test_a_current_place_is_a_candidate_that_does_not_move() -> None:
    """With moves limited a table may stay or be placed anew; only the latter counts as moved."""
    now = (Current(0, 0, ((1, 1),)),)
    found = all_of(replace(TWO_SHARDS, current=now, max_moved_tables=0))
    assert found.option.tolist() == [0, 0]
    assert found.stays.tolist() == [False, True] and found.moves.tolist() == [True, False]
    assert settled_ranks(found, 1, 0).tolist() == [1, 1]


def test_no_current_place_where_moves_are_free() -> None:
    """Without a limit on moves, staying in place gets no candidate of its own."""
    instance = replace(TWO_SHARDS, current=(Current(0, 0, ((1, 1),)),))
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


DRAWS = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def damaged(draw: st.DrawFn) -> Instance:
    """An Instance with a few values of its blocks replaced by others."""
    instance = draw(instances())
    changes = {}
    for name, values in {
        "block_where": st.sampled_from([int(w) for w in Where]),
        "block_count": st.integers(1, 4),
        "block_places": st.integers(-1, len(instance.place_sets) - 1),
        "shard_repeat": st.integers(1, 5),
        "shard_use": st.integers(0, 3),
    }.items():
        array = getattr(instance, name).copy()
        if array.size and draw(st.booleans()):
            array[draw(st.integers(0, len(array) - 1))] = draw(values)
        changes[name] = array
    sets = [draw(st.sampled_from([s, (), (*s, *s), (*s, 9), (-1,)])) for s in instance.place_sets]
    return replace(instance, **changes, place_sets=tuple(sets))


def wrong(instance: Instance, index: int) -> bool:
    """Whether a block breaks a rule of docs/instance-format.md."""
    block, machines = instance.block(index), len(instance.machines)
    whole = block.where == Where.ONE_MACHINE
    limit = machines if whole or block.where == Where.ANY_RANK_OF_ONE_MACHINE else (
        instance.num_ranks)  # fmt: skip
    if not len(block.entries) or (block.where == Where.LIST and block.places is None):
        return True
    if block.where in (Where.EVERY_RANK, Where.LIST) and block.count != 1:
        return True
    if block.places is not None:
        named = sorted(set(block.places))
        meaningless = block.where in (Where.EVERY_RANK, Where.CLUSTER)
        if meaningless or sorted(block.places) != named or not named:
            return True
        if named[0] < 0 or named[-1] >= limit:
            return True
    low, high = instance.block_shards[index : index + 2]
    given, taken = int(instance.shard_repeat[low:high].sum()), block.places or range(machines)
    sizes = {len(instance.machines[m]) for m in taken} if whole else {instance.positions(block)}
    if given != 1 and sizes != {given}:
        return True
    placed = [r.scope != Scope.CLUSTER for r in instance.resources]
    return block.where == Where.CLUSTER and bool(instance.shard_use[low:high, placed].any())


@DRAWS
@given(damaged())
def test_same_as_one_by_one(instance: Instance) -> None:
    """Both accept or refuse the same instances, and the error names a block that is wrong."""
    bad = [b for b in range(instance.num_blocks) if wrong(instance, b)]
    try:
        check_blocks(instance)
    except InstanceError as error:
        assert any(str(error).startswith(f"{at_block(instance, b)}: ") for b in bad)
    else:
        assert not bad


def test_something_is_refused() -> None:
    """A block without shards is refused, so the comparison above is not of two silent functions."""
    empty = replace(built([at(ANY, 1)]), block_shards=np.asarray([1, 1]))
    with pytest.raises(InstanceError, match="at least one shard"):
        check_blocks(empty)


def every_rank(*costs_and_runs: tuple[int, int]) -> Instance:
    """One table with a shard on each of 1,024 ranks, in runs of equal cost."""
    shards = [Shard(cost=[cost], repeat=run) for cost, run in costs_and_runs]
    return built([Block(EVERY, shards)], "total", [range(1024)])


def test_runs_count_their_own_length() -> None:
    """512 + 512 shards of 2^51 are 2^61, which is allowed, however many runs list them."""
    assert every_rank((2**51, 512), (2**51 - 1, 512)).num_ranks == 1024
    with pytest.raises(InstanceError, match=r"beyond 2\^62"):
        every_rank((2**52, 1023), (2**53 - 1, 1))


def test_a_shared_shard_counts_for_every_rank() -> None:
    """1,024 shards of 2^52 reach 2^62."""
    with pytest.raises(InstanceError, match=r"beyond 2\^62"):
        every_rank((2**52, 1))
    assert every_rank((2**52 - 1, 1)).num_tables == 1


HOME = Path(formulations.__file__).parent
#: Who names kinds of place outside ``instance/``: the independent copies, and those that make
#: instances or compare two.
OTHERS = {
    "checker.py", "classes.py", "mip_model.py", "priced.py", "fusion.py", "staying.py",
    "diagnose/questions.py",
}  # fmt: skip
#: ``Where.LIST``, ``block_where``, or a kind as an instance's file has it.
NAMED = re.compile(r"\bWhere\.[A-Z]|\bblock_where\b|['\"](any_rank|one_machine)['\"]")


def test_others_ask_the_instance() -> None:
    """Nobody else tells kinds of place apart; each of those allowed still does."""
    named = {
        str(file.relative_to(HOME))
        for file in HOME.rglob("*.py")
        if NAMED.search(file.read_text(encoding="utf-8"))
    }
    assert {name for name in named if not name.startswith("instance/")} == OTHERS
