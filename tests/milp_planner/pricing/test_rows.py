"""How rows are distributed over ranks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from milp_planner.inputs import Table
from milp_planner.pricing.splits import (
    Batch,
    dynamicemb_split,
    torchrec_split,
    whole,
    worst_batch,
)
from tests.milp_planner.pricing.build import priced

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
    """If measured and more than the deviations, it counts; memory uses it, time the mean."""
    access = {
        "kind": "unknown",
        "measured_skew": {"max_over_mean": 1.5, "ranks": 8},
        "peak_skew": {"max_over_mean": 5.0, "ranks": 8},
    }
    split = torchrec_split(table(80, access=access), 8, Batch(0.0, 80e6, 1.0))
    assert split.load == pytest.approx([1.5])
    assert split.peak == pytest.approx([5.0])


def test_a_worst_batch_before_deduplication_by_hand() -> None:
    """Half of each rank's 1,000 ids go to one of 8 ranks: 500 different ones if 900 of all are, all
    different ones if 400 are, its 100 rows if it has no more; after deduplication, 4 times."""

    def peak(distinct: float, rows: int, deduplication: str = "before") -> float:
        skew = {"max_over_mean": 4.0, "ranks": 8, "deduplication": deduplication}
        access = {"kind": "unknown", "peak_skew": skew}
        batch = Batch(1000.0, 8 * distinct, 1e-9, distinct)
        return float(torchrec_split(table(rows, access=access), 8, batch).peak[0])

    assert peak(900.0, 80_000) == pytest.approx(8 * 500 / 900)
    assert peak(400.0, 80_000) == pytest.approx(8)
    assert peak(400.0, 800) == pytest.approx(8 * 100 / 400)
    assert peak(400.0, 800, "after") == pytest.approx(4)


ACCESSES: list[dict[str, object]] = [
    {"kind": "unknown"},
    {"kind": "unknown", "unique_fraction": 0.02},
    {"kind": "unknown", "unique_fraction": 0.9},
    {"kind": "unknown", "measured_skew": {"max_over_mean": 2.0, "ranks": 4}},
    {"kind": "zipf", "alpha": 1.1},
    {"kind": "zipf", "alpha": 0.9, "hot_ids": [5, 0]},
    {"kind": "histogram", "bins": [[0.1, 0.8], [0.9, 0.2]]},
    {"kind": "top_ids", "ids": [{"share": 0.3, "id": 1}, {"share": 0.1}]},
    {"kind": "miss_rate", "points": [[0.1, 0.5], [0.5, 0.1]]},
    {"kind": "frequency", "curve": "criteo"},
]


@settings(max_examples=150)
@given(st.data())
def test_no_worst_batch_reserves_less_than_a_milder_one(data: st.DataObject) -> None:
    """Nor than none, entry by entry of the ledger, however it is stated and measured."""
    draw = data.draw
    kind = draw(st.sampled_from(["torchrec", "dynamicemb"]))
    fields = {
        "kind": kind, "rows": draw(st.sampled_from([1, 3, 500, 40_000, 10**7])), "dim": 64,
        **draw(st.sampled_from([
            {"output": "sequence", "sequence_length": 40.0}, {"pooling_factor": 10.0},
        ])),
    }  # fmt: skip
    access = draw(st.sampled_from(ACCESSES))
    ranks = draw(st.sampled_from([2, 8]))
    workload = {
        "dedup": draw(st.booleans()), "batch_per_rank": draw(st.sampled_from([1, 64, 4096])),
        "exchange_dtype": draw(st.sampled_from(["fp16", "fp32"])),
    }  # fmt: skip
    run = {
        "ranks": draw(st.sampled_from([2, 8, 32])),
        "deduplication": draw(st.sampled_from(["before", "after"])),
    }
    skews = sorted(draw(st.lists(st.floats(1.0, 40.0), min_size=2, max_size=4)))
    stated = [access, *({**access, "peak_skew": {**run, "max_over_mean": m}} for m in skews)]
    held = [
        np.repeat(entries.ledger, entries.repeat, axis=0)
        for each in stated
        for entries in [priced({**fields, "access": each}, ranks=ranks, **workload).entries]
    ]
    assert all((worse >= milder).all() for milder, worse in pairwise(held))
