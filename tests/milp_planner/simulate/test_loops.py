"""What a bucket gives up first."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")


@given(st.integers(1, 200), st.integers(0, 2**32), st.integers(1, 200), st.integers(-1, 3))
@settings(max_examples=100)
def test_the_lowest_scores_go_first(size: int, seed: int, wanted: int, pinned: int) -> None:
    """Lowest score, then lowest slot, never a protected one; few or many of them."""
    from milp_planner.simulate.loops import _lowest

    wanted = min(wanted, size)
    slots = np.random.default_rng(seed).integers(0, 6, (size + 5, 2), dtype=np.int32)
    found = np.empty(size, np.int64)
    count = _lowest(slots, 5, size, pinned, wanted, found)
    free = [i for i in range(size) if slots[5 + i, 1] != pinned]
    expected = sorted(free, key=lambda i: (slots[5 + i, 0], i))[:wanted]
    assert (found[:count] & 0xFFFFFFFF).tolist() == expected
