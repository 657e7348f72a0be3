"""The NumPy definition against lists filled key by key in plain Python.

Constants of the compiled paths: saturation, multipliers and boundary rows.

De-duplication: three ways give one answer, that of a Python dict.

Undoing a bucketize gives the input again.
"""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_routing.bucketize import bucketize
from cuda_routing.errors import RoutingError
from cuda_routing.features import make_features
from cuda_routing.inverse import restore, unbucketize
from cuda_routing.oracle import bucketize_numpy, feature_starts
from cuda_routing.rules import Rule
from cuda_routing.tables import M64, magic, rule_table
from cuda_routing.unique import unique_numba, unique_numpy, unique_torch
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


@settings(max_examples=30, deadline=None)
@given(batches())
def test_feature_starts_count_keys(case: Case) -> None:
    """A feature's keys begin where those of the earlier features end."""
    starts = feature_starts(case.lengths, case.features)
    rows = case.features.row_starts
    sums = [int(case.lengths[: rows[t]].sum()) for t in range(case.features.count + 1)]
    assert starts.tolist() == sums


@given(
    st.integers(0, 2**64 - 1),
    st.one_of(st.integers(1, 2**63 - 1), st.sampled_from([1, 2, 3, 7, 2**32, 2**63 - 1])),
)
def test_barrett_quotient_is_at_most_one_short(u: int, divisor: int) -> None:
    """The multiplier's quotient is exact or one too small, for every u below 2**64."""
    assert u // divisor - (u * magic(divisor) >> 64) in (0, 1)


def test_table_by_hand() -> None:
    """Block 10 on 3 ranks ends at key 29; a huge block saturates; roundrobin has no block."""
    features = make_features(3, 3, 3, [0, 0, 1], block_sizes=[10, 2**63 - 1, 5])
    table, edges = rule_table(features)
    assert table[0].tolist() == [0, 10, 29, M64 // 10, 0]
    assert int(table[1, 2]) == M64
    assert table[2].tolist() == [1, 0, 0, 0, 0]
    assert edges.shape == (0, 4)


def test_boundaries_get_rows() -> None:
    """Features with custom boundaries point one past their row of the boundary table."""
    features = make_features(3, 3, 2, [0, 1, 0], boundaries=[[0, 4, 9], None, [0, 1, 2]])
    table, edges = rule_table(features)
    assert table[:, 4].tolist() == [1, 0, 2]
    np.testing.assert_array_equal(edges, [[0, 4, 9], [0, 1, 2]])


PARTS = st.lists(st.lists(st.integers(-3, 6), max_size=15), min_size=1, max_size=4)


@settings(deadline=None)
@given(PARTS, st.sampled_from([np.int32, np.int64]), st.sampled_from(["numpy", "numba", "torch"]))
def test_equals_a_dict(parts: list[list[int]], width: type, way: str) -> None:
    """Each feature's keys appear once, in order of appearance, and each input points to its own."""
    keys = np.array([k for part in parts for k in part], dtype=width)
    starts = np.cumsum([0, *map(len, parts)])
    if way == "torch":
        torch = pytest.importorskip("torch")
        found = unique_torch(torch.from_numpy(keys), torch.from_numpy(starts))
        kept, counts, inverse = (tensor.numpy() for tensor in found)
    else:
        if way == "numba":
            pytest.importorskip("numba")
        kept, counts, inverse = {"numpy": unique_numpy, "numba": unique_numba}[way](keys, starts)
    expected = [list(dict.fromkeys(part)) for part in parts]
    assert kept.dtype == width
    assert kept.tolist() == [k for part in expected for k in part]
    assert counts.tolist() == [len(part) for part in expected]
    assert kept[inverse].tolist() == keys.tolist()
    base = np.cumsum([0, *counts])
    for t, (a, b) in enumerate(pairwise(starts)):
        assert np.all((inverse[a:b] >= base[t]) & (inverse[a:b] < base[t + 1]))


def in_range(case: Case) -> np.ndarray:
    """The batch with every key inside its feature's table; continuous keeps its identity."""
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
    """Without a permutation, or after de-duplication, it cannot be undone, as the error says."""
    plain = bucketize([2], [1, 2], num_features=1, ranks=2, permute=False)
    with pytest.raises(RoutingError, match="permute=True"):
        unbucketize(plain.keys, plain.permute)
    once = bucketize([2], [1, 1], num_features=1, ranks=2, dedup=True)
    with pytest.raises(RoutingError, match="row lengths"):
        restore(once, Rule.ROUNDROBIN, num_features=1)
