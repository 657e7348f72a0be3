"""Checking all blocks at once, rule by rule, refuses the same as checking each block.

The guard against sums beyond 62 bits counts every shard once.

Where a shard may lie is written in one package, and twice more to check it.
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
from formulations.instance import Instance, Objective, Scope, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.instance.validate import at_block, check_blocks
from tests.formulations.strategies import instances

LOOSE = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


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


@LOOSE
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
    from formulations import Block, InstanceBuilder, Shard

    builder = InstanceBuilder([[0, 1]], ["p"], [], "total")
    builder.add_table("t")
    builder.add_option("o", [Block(Where.ANY_RANK, [Shard(cost=[1])])])
    instance = builder.build()
    empty = replace(instance, block_shards=np.asarray([1, 1]))
    with pytest.raises(InstanceError, match="at least one shard"):
        check_blocks(empty)


def every_rank(*costs_and_runs: tuple[int, int]) -> Instance:
    """One table with a shard on each of 1,024 ranks, in runs of equal cost."""
    builder = InstanceBuilder([range(1024)], ["step"], [], Objective.TOTAL)
    builder.add_table("t")
    shards = [Shard(cost=[cost], repeat=run) for cost, run in costs_and_runs]
    builder.add_option("o", [Block(Where.EVERY_RANK, shards)])
    return builder.build()


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
    "checker.py", "mip_model.py", "priced.py", "fusion.py", "staying.py", "diagnose/questions.py",
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
