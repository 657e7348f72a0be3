"""Custom boundaries against FBGEMM's CPU operator; test_kjt.py compares the other rules."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from cuda_routing.bucketize import bucketize
from cuda_routing.rules import Rule
from tests.cuda_routing.cases import Case, batches

torch = pytest.importorskip("torch")
pytest.importorskip("fbgemm_gpu")


def fbgemm(case: Case, *, blocks: list[int], keep: bool, boundaries: Any = None) -> tuple[Any, ...]:
    """Call FBGEMM's operator on a batch; one list of boundaries per feature, or none."""
    sizes = case.features.batch_sizes
    edges = None
    if boundaries is not None:
        edges = [torch.tensor(edge, dtype=torch.from_numpy(case.keys).dtype) for edge in boundaries]
    lengths, keys = torch.from_numpy(case.lengths), torch.from_numpy(case.keys)
    return torch.ops.fbgemm.block_bucketize_sparse_features(
        lengths, keys, True, True, torch.tensor(blocks, dtype=keys.dtype), case.features.ranks,
        torch.from_numpy(case.weights), torch.tensor(sizes, dtype=lengths.dtype),
        int(sizes.max(initial=0)), edges, keep,
    )  # fmt: skip


def compare(case: Case, theirs: tuple[Any, ...], **options: Any) -> None:
    """Compare our result with FBGEMM's five outputs."""
    ours = bucketize(
        case.lengths, case.keys, num_features=case.features.count, ranks=case.features.ranks,
        weights=case.weights, batch_sizes=case.features.batch_sizes, positions=True, **options,
    )  # fmt: skip
    names = ("lengths", "keys", "weights", "positions", "permute")
    for name, tensor in zip(names, theirs, strict=True):
        np.testing.assert_array_equal(getattr(ours, name), tensor.numpy(), err_msg=name)


@settings(max_examples=60, deadline=None)
@given(batches())
def test_custom_boundaries(case: Case) -> None:
    """Custom boundaries agree for keys of either sign inside and beyond them."""
    p = case.features.ranks
    edges = [np.cumsum([0, *[(3 * r + t) % 5 for r in range(p)]]).tolist()
             for t in range(case.features.count)]  # fmt: skip
    inside = Case(case.lengths, np.abs(case.keys % (3 * p)), case.weights, case.features)
    theirs = fbgemm(inside, blocks=[1] * case.features.count, keep=False, boundaries=edges)
    compare(inside, theirs, rule=Rule.CONTINUOUS, boundaries=edges)
