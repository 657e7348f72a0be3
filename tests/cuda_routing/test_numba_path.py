"""The compiled CPU path equals the NumPy definition, on one chunk and on several."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

from cuda_routing import numba_path
from cuda_routing.errors import RoutingError
from cuda_routing.features import make_features
from cuda_routing.numba_path import bucketize_numba
from cuda_routing.oracle import bucketize_numpy
from tests.cuda_routing.cases import Case, assert_equal, batches


@settings(max_examples=100, deadline=None)
@given(batches(longest=200), st.integers(2, 5))
def test_chunks_on_threads_equal_numpy(case: Case, threads: int) -> None:
    """Chunks may cut rows and features anywhere without changing the result."""
    small = numba_path.SMALLEST_CHUNK
    numba_path.SMALLEST_CHUNK = 7
    try:
        found = bucketize_numba(
            case.lengths, case.keys, case.features,
            weights=case.weights, positions=True, threads=threads,
        )  # fmt: skip
    finally:
        numba_path.SMALLEST_CHUNK = small
    expected = bucketize_numpy(
        case.lengths, case.keys, case.features, weights=case.weights, positions=True
    )
    assert_equal(found, expected)


def test_a_quarter_million_keys_on_two_threads() -> None:
    """A batch large enough for real threads equals the definition."""
    generator = np.random.default_rng(5)
    lengths = generator.integers(0, 40, size=26 * 500)
    keys = generator.integers(-(2**63), 2**63 - 1, size=int(lengths.sum()))
    features = make_features(26, lengths.size, 48, [0, 1, 2, 3] * 6 + [1, 2], block_sizes=2**58)
    found = bucketize_numba(lengths, keys, features, threads=2)
    assert_equal(found, bucketize_numpy(lengths, keys, features))


@pytest.mark.parametrize(("lengths", "words"), [([2, -1, 2], "negative"), ([1, 1], "add up to 2")])
def test_wrong_lengths_are_refused(lengths: list[int], words: str) -> None:
    """Negative lengths, and lengths that do not add up to the keys, are refused before anything is
    written."""
    features = make_features(1, len(lengths), 2, 1)
    with pytest.raises(RoutingError, match=words):
        bucketize_numba(np.array(lengths), np.arange(3), features)


@pytest.mark.parametrize("chunked", [False, True])
def test_read_only_and_strided_keys(chunked: bool) -> None:
    """Read-only and non-contiguous inputs are read and never written."""
    keys = np.arange(20, dtype=np.int64)[::2]
    keys.setflags(write=False)
    lengths = np.array([4, 6])
    features = make_features(2, 2, 3, 1)
    found = bucketize_numba(lengths, keys, features, threads=2 if chunked else 1)
    assert_equal(found, bucketize_numpy(lengths, keys, features))
