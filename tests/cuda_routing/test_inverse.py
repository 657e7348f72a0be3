"""Undoing a bucketize gives the input again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from cuda_routing.bucketize import bucketize
from cuda_routing.errors import RoutingError
from cuda_routing.inverse import restore, unbucketize
from cuda_routing.rules import Rule
from tests.cuda_routing.cases import Case, batches


def in_range(case: Case) -> np.ndarray:
    """The batch with every key inside its feature's table, so that continuous keeps its
    identity."""
    keys = np.abs(case.keys.astype(np.int64)) % 3
    return np.minimum(keys, case.features.ranks - 1).astype(case.keys.dtype)


@settings(max_examples=100, deadline=None)
@given(batches())
def test_restore_gives_the_input(case: Case) -> None:
    """Lengths and keys come back under every rule if keys lie inside their tables."""
    options = dict(case.call) | {"boundaries": None}
    keys = in_range(case)
    result = bucketize(case.lengths, keys, **options)
    lengths, found = restore(
        result, options["rule"], num_features=case.features.count,
        block_sizes=options["block_sizes"], batch_sizes=options["batch_sizes"],
    )  # fmt: skip
    np.testing.assert_array_equal(lengths, case.lengths)
    np.testing.assert_array_equal(found, keys)


def test_restore_under_custom_boundaries() -> None:
    """Keys under uneven boundaries come back."""
    keys = np.array([0, 5, 9, 4, 4])
    edges = [[0, 4, 10]]
    result = bucketize([5], keys, num_features=1, ranks=2, rule=0, boundaries=edges)
    _, found = restore(result, 0, num_features=1, boundaries=edges)
    assert found.tolist() == keys.tolist()


@settings(max_examples=50, deadline=None)
@given(batches())
def test_unbucketize_undoes_the_order(case: Case) -> None:
    """Moved weights return to their lookups."""
    result = bucketize(case.lengths, case.keys, weights=case.weights, **case.call)
    np.testing.assert_array_equal(unbucketize(result.weights, result.permute), case.weights)


def test_refusals() -> None:
    """Without a permutation, or after de-duplication, it cannot be undone, and the error says
    so."""
    plain = bucketize([2], [1, 2], num_features=1, ranks=2, permute=False)
    with pytest.raises(RoutingError, match="permute=True"):
        unbucketize(plain.keys, plain.permute)
    once = bucketize([2], [1, 1], num_features=1, ranks=2, dedup=True)
    with pytest.raises(RoutingError, match="row lengths"):
        restore(once, Rule.ROUNDROBIN, num_features=1)
