"""How rows are distributed over ranks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from milp_planner.inputs import Table
from milp_planner.pricing.splits import (
    Batch,
    dynamicemb_split,
    torchrec_split,
    whole,
    worst_batch,
)

BATCH = Batch(dedup_lookups=0.0, ids=1e12, ids_a_sample=1.0)
"""So many ids that the worst batch equals the mean one to within a millionth."""


def table(rows: int, **fields: object) -> Table:
    """A narrow table of that many rows."""
    return Table.from_dict({"name": "t", "rows": rows, "dim": 4, **fields})


@given(st.integers(1, 5000), st.integers(1, 300))
def test_torchrec_blocks_cover_the_table(rows: int, ranks: int) -> None:
    """One shard per rank, equal blocks first, all rows together."""
    split = torchrec_split(table(rows), ranks, BATCH)
    shards = np.repeat(split.rows, split.repeat)
    block = -(-rows // ranks)
    expected = [max(0, min(block, rows - r * block)) for r in range(ranks)]
    assert shards.tolist() == expected
    assert all(np.diff(np.append(split.rows, -1)) != 0)


def test_known_ids_make_every_rank_its_own_run() -> None:
    """Only the hot id's owner differs, so there are runs before it, for it, and after it."""
    hot = {"kind": "top_ids", "ids": [{"share": 0.5, "id": 45}]}
    split = torchrec_split(table(80, access=hot), 8, BATCH)
    assert split.repeat.tolist() == [4, 1, 3]
    assert split.rows.tolist() == [10, 10, 10]
    assert split.load == pytest.approx([0.5, 4.5, 0.5])


def test_dynamicemb_shards_have_equal_room() -> None:
    """ceil(rows / ranks) rows on every rank; known ids only change the load."""
    split = dynamicemb_split(table(1001, kind="dynamicemb"), 8, "roundrobin", BATCH)
    assert (split.repeat.tolist(), split.rows.tolist()) == ([1], [126])
    hot = {"kind": "top_ids", "ids": [{"share": 0.5, "id": 9}]}
    split = dynamicemb_split(table(1001, kind="dynamicemb", access=hot), 8, "roundrobin", BATCH)
    assert split.repeat.tolist() == [1, 1, 6]
    assert split.load == pytest.approx([0.5, 4.5, 0.5])


def test_whole_tables_are_one_shard() -> None:
    """All rows at the mean load, in every batch."""
    split = whole(table(77))
    assert split.peak.tolist() == [1.0]
    assert (split.repeat.tolist(), split.rows.tolist(), split.load.tolist()) == ([1], [77], [1.0])


def test_worst_batch_by_hand() -> None:
    """10,000 ids per rank in samples of 100: six deviations of 1,000 more, but no more than all
    ids."""
    batch = Batch(0.0, ids=80_000.0, ids_a_sample=100.0)
    assert worst_batch(np.ones(1), 8, batch) == pytest.approx([1.6])
    assert worst_batch(np.ones(1), 8, Batch(0.0, 80.0, 80.0)) == pytest.approx([8.0])
    assert worst_batch(np.ones(1), 8, Batch(0.0, 8e12, 1.0)) == pytest.approx([1.0], abs=1e-5)


def test_peak_skew_is_the_worst_batch() -> None:
    """If measured, it replaces the deviations; memory uses it, time the mean."""
    access = {
        "kind": "unknown",
        "measured_skew": {"max_over_mean": 1.5, "ranks": 8},
        "peak_skew": {"max_over_mean": 5.0, "ranks": 8},
    }
    split = torchrec_split(table(80, access=access), 8, Batch(0.0, 80.0, 1.0))
    assert split.load == pytest.approx([1.5])
    assert split.peak == pytest.approx([5.0])
