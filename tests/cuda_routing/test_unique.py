"""De-duplication: three ways give one answer, that of a Python dict."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_routing.unique import unique_numba, unique_numpy, unique_torch

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
