"""Which row a full bucket evicts first, while scores rise and rows come and go."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st


@given(
    st.integers(1, 90),
    st.integers(1, 90),
    st.integers(0, 2**32),
    st.booleans(),
    st.booleans(),
    st.sampled_from([3, 100, 2**31 - 20]),
)
@settings(max_examples=150)
def test_the_lowest_scores_go_first(
    size: int, need: int, seed: int, cached: bool, frequency: bool, top: int
) -> None:
    """The lowest score, then the lowest slot, and never a protected row, which keeps its score."""
    from milp_planner.features.simulate.loops import COUNT, NEVER, STAMP, choose

    generator = np.random.default_rng(seed)
    score = COUNT if frequency else STAMP
    rows = np.zeros((size, 4), np.int32)
    rows[:, COUNT] = generator.integers(0, top, size)
    rows[:, STAMP] = generator.integers(28, 31, size)
    held = generator.permutation(size).astype(np.int32)
    before = rows[held, score].copy()
    protected = (rows[held, STAMP] == 30) & cached
    wanted = [slot for slot in np.lexsort((np.arange(size), before)) if not protected[slot]][:need]
    found, scores = np.empty(need, np.int64), before.copy()
    count = choose(rows, held, scores, 30 if cached else -1, score, need, found)
    assert found[:count].tolist() == wanted
    before[wanted] = NEVER
    assert scores.tolist() == before.tolist()
