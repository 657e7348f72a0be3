"""The unmodified CUDA source on the CPU shim equals the NumPy definition, in either thread
order."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cuda_routing.features import make_features
from cuda_routing.oracle import bucketize_numpy
from tests.cuda_routing.cases import Case, assert_equal, batches
from tests.cuda_routing.shim.host import (
    REAL,
    SMALL,
    HostLauncher,
    bucketize_host,
    compile_kernels,
)


def launcher(case: Case, reverse: bool) -> HostLauncher:
    """The library compiled for this batch's types."""
    bits = case.keys.dtype.itemsize * 8, case.lengths.dtype.itemsize * 8
    return HostLauncher(compile_kernels(*bits), reverse=reverse)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    batches(longest=90).filter(lambda case: case.keys.size > 0),
    st.booleans(), st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip
def test_equals_numpy(case: Case, reverse: bool, once: bool, extras: bool, permute: bool) -> None:
    """Every field agrees, on both paths and in both thread orders."""
    options = {
        "weights": case.weights if extras else None,
        "positions": extras,
        "permute": permute,
    }
    found = bucketize_host(
        launcher(case, reverse), SMALL, case.lengths, case.keys, case.features, once=once, **options
    )
    assert_equal(found, bucketize_numpy(case.lengths, case.keys, case.features, **options))


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_real_tile_size(once: bool, reverse: bool) -> None:
    """The shipped geometry: several tiles of 2,048 keys, rows across tiles, uneven features."""
    generator = np.random.default_rng(3)
    lengths = np.concatenate([[9000, 0, 0, 1], generator.integers(0, 5, size=1500)])
    keys = generator.integers(-(2**63), 2**63 - 1, size=int(lengths.sum()))
    features = make_features(2, lengths.size, 64, [1, 2], batch_sizes=[4, 1500])
    library = compile_kernels(64, 64, REAL)
    found = bucketize_host(
        HostLauncher(library, reverse=reverse), REAL, lengths, keys, features,
        positions=True, once=once,
    )  # fmt: skip
    assert_equal(found, bucketize_numpy(lengths, keys, features, positions=True))


def test_many_empty_rows_between_keys() -> None:
    """A few keys among thousands of empty bags find their rows."""
    lengths = np.zeros(5000, np.int64)
    lengths[[0, 17, 4000, 4999]] = [3, 200, 1, 2]
    keys = np.arange(206)
    features = make_features(5, 5000, 8, 1)
    for once in (False, True):
        found = bucketize_host(
            HostLauncher(compile_kernels(64, 64)), SMALL, lengths, keys, features,
            positions=True, once=once,
        )  # fmt: skip
        assert_equal(found, bucketize_numpy(lengths, keys, features, positions=True))
