"""Keys find their new rank for every pair of rules and world sizes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cuda_routing.checkpoints.layout import Meta
from cuda_routing.checkpoints.ownership import global_keys, new_places
from cuda_routing.errors import CheckpointError
from cuda_routing.rules import Rule, block_size_of, local_keys, owners
from tests.cuda_routing.checkpoints.tables import ROWS, some_keys

WORLDS = range(1, 17)


@pytest.mark.parametrize(("before", "after"), list(itertools.product(Rule, Rule)))
def test_every_pair_of_rules_and_world_sizes(before: Rule, after: Rule) -> None:
    """Every key keeps its identity and moves to the rank that routing gives, for worlds 1 to 16."""
    keys = some_keys(120)
    for old in WORLDS:
        block = block_size_of(ROWS, old)
        owner = owners(keys, old, before, block_size=block)
        stored = local_keys(keys, old, before, block_size=block)
        for rank in range(old):
            mine = owner == rank
            found = global_keys(stored[mine], rank, old, Meta(before, ROWS), "f")
            np.testing.assert_array_equal(found, keys[mine])
        for new in WORLDS:
            size = block_size_of(ROWS, new)
            place, local = new_places(keys, new, Meta(after, ROWS), "f")
            np.testing.assert_array_equal(place, owners(keys, new, after, block_size=size))
            np.testing.assert_array_equal(local, local_keys(keys, new, after, block_size=size))


def test_negative_and_huge_keys_survive_hashed_rules() -> None:
    """Keys of any 64 bits keep their identity under the rules that do not renumber."""
    keys = np.array([-(2**63), -5, -1, 0, 2**63 - 1])
    for rule in (Rule.ROUNDROBIN, Rule.HASH_ROUNDROBIN, Rule.HASH_INDEPENDENT):
        owner, local = new_places(keys, 5, Meta(rule), "f")
        assert local.tolist() == keys.tolist()
        for rank in range(5):
            mine = owner == rank
            found = global_keys(keys[mine], rank, 5, Meta(rule), "f")
            assert found.tolist() == keys[mine].tolist()


def test_a_key_on_the_wrong_rank_is_refused() -> None:
    """A wrong dist_type is noticed because keys are on ranks that do not own them."""
    with pytest.raises(CheckpointError, match=r"key 5 belongs to rank 1 of 4.*source_rule"):
        global_keys(np.array([4, 5]), 0, 4, Meta(Rule.ROUNDROBIN), "file")


def test_keys_that_continuous_would_merge_are_refused() -> None:
    """A key beyond the table, or a local key beyond its block, is refused and named."""
    with pytest.raises(CheckpointError, match="key 900 lies outside the table's 400 rows"):
        new_places(np.array([1, 900]), 4, Meta(Rule.CONTINUOUS, ROWS), "file")
    with pytest.raises(CheckpointError, match="key -1 lies outside"):
        new_places(np.array([-1]), 4, Meta(Rule.CONTINUOUS, ROWS), "file")
    with pytest.raises(CheckpointError, match="local key 100 lies beyond the block of 100"):
        global_keys(np.array([3, 100]), 1, 4, Meta(Rule.CONTINUOUS, ROWS), "file")


def test_continuous_needs_rows() -> None:
    """Without the table's size, continuous cannot be undone, and the error asks for rows=."""
    with pytest.raises(CheckpointError, match="pass rows="):
        new_places(np.array([1]), 4, Meta(Rule.CONTINUOUS), "file")
