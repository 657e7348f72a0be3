"""Looking at all blocks at once refuses what looking at each refuses, in the same words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formulations.errors import InstanceError
from formulations.instance import Instance, Where, validate_blocks
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


def refusal(instance: Instance, blocks: list[int] | None) -> str:
    """The sentence, or nothing: of these blocks looked at in turn, or of the function."""
    try:
        if blocks is None:
            validate_blocks.check_blocks(instance)
        for index in blocks or []:
            validate_blocks._block(instance, instance.block(index))
    except InstanceError as error:
        return str(error)
    return ""


@LOOSE
@given(damaged())
def test_same_as_one_by_one(instance: Instance) -> None:
    """Accepted or refused alike, and the first wrong block is the one that is named."""
    each = list(range(instance.num_blocks))
    assert refusal(instance, None) == refusal(instance, each)


def test_something_is_refused() -> None:
    """A block without shards is, so the comparison above is not of two silent functions."""
    from formulations import Block, InstanceBuilder, Shard

    builder = InstanceBuilder([[0, 1]], ["p"], [], "total")
    builder.add_table("t")
    builder.add_option("o", [Block(Where.ANY_RANK, [Shard(cost=[1])])])
    instance = builder.build()
    empty = replace(instance, block_shards=np.asarray([1, 1]))
    with pytest.raises(InstanceError, match="at least one shard"):
        validate_blocks.check_blocks(empty)
