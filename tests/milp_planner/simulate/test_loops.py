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
    st.integers(-1, 6),
    st.booleans(),
    st.sampled_from([6, 100, 2**31 - 2]),
)
@settings(max_examples=100)
def test_the_lowest_scores_go_first(
    size: int, seed: int, wanted: int, pinned: int, frequency: bool, top: int
) -> None:
    """Lowest score, then lowest slot, never a protected one; scores near each other or far."""
    from milp_planner.simulate.loops import _lowest

    generator = np.random.default_rng(seed)
    scores = generator.integers(0, top, size, dtype=np.int32)
    used = generator.integers(0, 6, size, dtype=np.int32)
    if not frequency:  # the score is the batch of the last lookup, and none is later than now
        used, pinned = scores, -1 if pinned < 0 else int(scores.max()) + pinned % 2
    found, scratch = np.empty((2, size + 1), np.int32)
    count = _lowest(scores, used, pinned, frequency, wanted, scratch, found)
    free = [i for i in range(size) if used[i] != pinned]
    assert found[:count].tolist() == sorted(free, key=lambda i: (scores[i], i))[:wanted]
