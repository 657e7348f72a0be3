"""The torch operations equal the NumPy definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_routing.oracle import bucketize_numpy
from cuda_routing.torch_path import _quotient, bucketize_torch, signed, unsigned_modulo
from tests.cuda_routing.cases import Case, assert_equal, batches

torch = pytest.importorskip("torch")


@settings(max_examples=150, deadline=None)
@given(batches(), st.booleans())
def test_equals_numpy(case: Case, extras: bool) -> None:
    """Every field equals the definition's, in value and dtype."""
    tensors = torch.from_numpy(case.lengths), torch.from_numpy(case.keys)
    weights = torch.from_numpy(case.weights) if extras else None
    found = bucketize_torch(
        *tensors, case.features, weights=weights, positions=extras, permute=extras
    )
    expected = bucketize_numpy(
        case.lengths, case.keys, case.features,
        weights=case.weights if extras else None, positions=extras, permute=extras,
    )  # fmt: skip
    assert_equal(found, expected)


@given(st.integers(0, 2**64 - 1), st.integers(1, 2**63 - 1))
def test_unsigned_division(u: int, divisor: int) -> None:
    """Unsigned quotient and remainder come out of signed torch arithmetic."""
    pattern = torch.tensor([signed(u)])
    quotient = _quotient(pattern, divisor).numpy().view(np.uint64)
    remainder = unsigned_modulo(pattern, divisor).numpy().view(np.uint64)
    assert (int(quotient[0]), int(remainder[0])) == divmod(u, divisor)
