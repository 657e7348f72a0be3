"""What a bucket gives up first, while scores rise and rows come and go."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("numba")

PLACE, STAMP, COUNT = 0, 1, 2
BASE, AWAY = 7, -1


@given(
    st.integers(1, 90),
    st.integers(1, 90),
    st.integers(0, 2**32),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from([3, 100, 2**31 - 20]),
)
@settings(max_examples=150)
def test_the_lowest_scores_go_first(
    size: int, queue: int, seed: int, cached: bool, frequency: bool, knows: bool, top: int
) -> None:
    """Batch after batch the lowest score, then the lowest slot, never a protected row.

    Rows are looked up between, and new ones take the victims' slots; scores are near each other or
    far; queues run out, overflow and are short; many go at once or one, with known scores or none.
    """
    from milp_planner.simulate.buckets import choose, push

    generator = np.random.default_rng(seed)
    score = COUNT if frequency else STAMP
    rows = np.zeros((size, 4), np.int32)
    rows[:, PLACE], rows[:, COUNT] = np.arange(size) + BASE, generator.integers(0, top, size)
    rows[:, STAMP] = generator.integers(1, 30, size)
    held, entries = np.arange(size, dtype=np.int32), np.empty(size, np.int64)
    known = rows[:, score] - generator.integers(0, 2, size, np.int32) if knows else held[:0].copy()
    order, head, top = np.zeros(queue, np.int64), queue, np.int64(-1)
    scratch = np.empty((4, size + 1), np.int32)
    for now in range(30, 42):
        touched = generator.random(size) < generator.choice([0.0, 0.1, 0.6, 1.0])
        rows[touched, STAMP] = now
        rows[touched, COUNT] += generator.integers(1, 3)
        need = int(generator.integers(1, size + 1) if generator.random() < 0.4 else 1)
        pinned_at = now if cached else -1
        wanted = sorted(range(size), key=lambda slot: (rows[slot, score], slot))
        wanted = [slot for slot in wanted if rows[slot, STAMP] != pinned_at][:need]
        found = np.empty(need, np.int32)
        count, head, top = choose(
            rows, held, known, BASE, order, head, top, pinned_at, score, AWAY, need,
            found, scratch, entries,
        )  # fmt: skip
        assert found[:count].tolist() == wanted
        assert np.flatnonzero(rows[:, PLACE] == AWAY).tolist() == sorted(wanted)
        rows[wanted, PLACE] = np.array(wanted, np.int32) + BASE  # the slot's next row
        rows[wanted, STAMP] = now
        rows[wanted, COUNT] = generator.integers(1, 5, count)
        known[wanted if knows else []] = rows[wanted if knows else [], score]
        assert np.all(known <= rows[: len(known), score])
        fresh = rows[wanted, score].astype(np.int64) << 32 | np.array(wanted, np.int64)
        head, top = push(order, head, top, fresh[fresh <= top])
        entries_now = rows[:, score].astype(np.int64) << 32 | np.arange(size)
        queued = order[head:] & (2**32 - 1)
        assert np.all(np.delete(entries_now, queued) > top)
        assert np.all(np.diff(order[head:]) > 0)


@given(st.lists(st.integers(0, 2**63 - 2) | st.integers(0, 5000), min_size=1, max_size=90))
@settings(max_examples=100)
def test_entries_are_queued_in_order(entries: list[int]) -> None:
    """An empty queue takes entries, few or many, near or far, and has them ascending."""
    from milp_planner.simulate.buckets import push

    queue = np.zeros(len(entries), np.int64)
    head, top = push(queue, len(queue), np.int64(2**63 - 1), np.array(entries, np.int64))
    assert (head, top) == (0, max(entries))
    assert queue.tolist() == sorted(entries)
