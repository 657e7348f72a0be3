"""What a bucket gives up first."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")


@given(
    st.integers(1, 200),
    st.integers(0, 2**32),
    st.integers(1, 200),
    st.integers(-1, 3),
    st.sampled_from([6, 100, 2**31 - 2]),
)
@settings(max_examples=100)
def test_the_lowest_scores_go_first(
    size: int, seed: int, wanted: int, pinned: int, scores: int
) -> None:
    """Lowest score, then lowest slot, never a protected one; scores near each other or far."""
    from milp_planner.simulate.loops import _lowest

    generator = np.random.default_rng(seed)
    slots = generator.integers(0, [scores, 6], (size, 2), dtype=np.int32)
    found, scratch = np.empty((2, size + 1), np.int32)
    count = _lowest(slots, pinned, wanted, scratch, found)
    free = [i for i in range(size) if slots[i, 1] != pinned]
    assert found[:count].tolist() == sorted(free, key=lambda i: (slots[i, 0], i))[:wanted]
