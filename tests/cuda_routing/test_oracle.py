"""The NumPy definition against lists filled key by key in plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from cuda_routing.oracle import bucketize_numpy, feature_starts, route
from cuda_routing.rules import Rule
from tests.cuda_routing.cases import Case, batches, by_hand
from tests.cuda_routing.test_rules import plain_fmix64, plain_route


def plain_owner(case: Case, i: int, row: int) -> tuple[int, int]:
    """Owner and local key (signed, of the key's width) from Python's big integers."""
    features = case.features
    feature = int(np.searchsorted(features.row_starts, row, side="right")) - 1
    rule, p = Rule(int(features.rules[feature])), features.ranks
    bits = case.keys.dtype.itemsize * 8
    u = int(case.keys[i]) & ((1 << bits) - 1)
    edges = features.boundaries[feature]
    if edges is not None:
        inside = [r for r in range(p) if int(edges[r]) <= u < int(edges[r + 1])]
        owner, local = (inside[0], u - int(edges[inside[0]])) if inside else (u % p, u // p)
    elif rule is Rule.HASH_ROUNDROBIN and bits == 32 and features.dynamicemb_int32:
        owner, local = (plain_fmix64(u) & 0xFFFFFFFF) % p, u
    else:
        owner, local = plain_route(u, bits, p, rule, int(features.block_sizes[feature]))
    return owner, local - (1 << bits) if local >= 1 << (bits - 1) else local


@settings(max_examples=150, deadline=None)
@given(batches())
def test_equals_lists_filled_by_hand(case: Case) -> None:
    """Lengths, keys, weights, positions and permutation equal the plain Python result."""
    found = bucketize_numpy(
        case.lengths, case.keys, case.features, weights=case.weights, positions=True
    )
    expected = by_hand(case, lambda i, row: plain_owner(case, i, row))
    for name, array in expected.items():
        np.testing.assert_array_equal(getattr(found, name), array, err_msg=name)
    assert found.lengths.dtype == case.lengths.dtype
    assert found.keys.dtype == case.keys.dtype
    assert found.permute.dtype.itemsize == case.keys.dtype.itemsize


@settings(max_examples=50, deadline=None)
@given(batches())
def test_unwanted_fields_are_none(case: Case) -> None:
    """A field that was not asked for is None."""
    found = bucketize_numpy(case.lengths, case.keys, case.features, permute=False)
    assert (found.weights, found.positions, found.permute) == (None, None, None)


@settings(max_examples=50, deadline=None)
@given(batches())
def test_result_is_grouped_by_owner_and_stable(case: Case) -> None:
    """Each rank has the keys it owns, and the permutation rises within a rank."""
    found = bucketize_numpy(case.lengths, case.keys, case.features)
    owner, _ = route(case.keys, case.lengths, case.features)
    counts = np.bincount(owner, minlength=case.features.ranks)
    np.testing.assert_array_equal(found.keys_per_rank(), counts)
    for rank in np.unique(owner):
        places = found.permute[owner == rank]
        assert np.all(np.diff(places) == 1)


@settings(max_examples=30, deadline=None)
@given(batches())
def test_feature_starts_count_keys(case: Case) -> None:
    """A feature's keys begin where those of the earlier features end."""
    starts = feature_starts(case.lengths, case.features)
    rows = case.features.row_starts
    sums = [int(case.lengths[: rows[t]].sum()) for t in range(case.features.count + 1)]
    assert starts.tolist() == sums
