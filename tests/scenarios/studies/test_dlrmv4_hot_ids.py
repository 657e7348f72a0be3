"""The DLRMv4 study: its calibration, and the ledger's entries of the hot rank by hand."""

from __future__ import annotations

import pytest

from milp_planner import plan
from milp_planner.inputs import Model
from scenarios.batch.vary import vary_model
from scenarios.studies.dlrmv4_hot_ids import (
    BURST_ROWS,
    CAPACITY,
    CODECS,
    GIB,
    LENGTHS,
    MOVED,
    PUBLISHED,
    burst,
    calibrated,
    hot,
    kept,
    largest_batch,
    outside,
    peak_for,
    run,
)

IDS = 1024 * 2627
SMALL = 8 * 1024
ROW = 512 * 4


def tail(ids: float, samples: float = 1024) -> float:
    """The worst batch for this mean number of ids: six standard deviations more."""
    return ids * (1 + 6 / (samples * ids / IDS) ** 0.5)


def test_one_figure_is_calibrated() -> None:
    """Column-wise with the low-memory codec takes 58% of 288 GiB; the model states what that leaves
    outside the embeddings, rounded up to whole GiB."""
    assert calibrated() == int(0.58 * CAPACITY) - hot(MOVED).need
    assert outside() == -(-calibrated() // GIB) * GIB


def test_rows_by_hand() -> None:
    """Row-wise: the measured ratios 1, 1.3 and 2.8 with their tails; column-wise: all ids, a 32nd
    of each row."""
    row = sum(tail(skew * IDS) for skew in (1.0, 1.3, 2.8)) + 8 * tail(1024, 1024 * IDS / 1024)
    assert hot().rows == pytest.approx(row, rel=1e-3)
    assert hot(MOVED).rows == pytest.approx(tail(IDS) + 2 * IDS + 8 * tail(1024, IDS), rel=1e-3)


def test_entries_of_the_burst_by_hand() -> None:
    """42.7 million rows of 512 floats: returned, permuted, clamped, and cast to two bytes."""
    stock, low = (hot(codec=codec, peak=burst()) for codec in CODECS)
    output = BURST_ROWS * ROW
    for found, factor in ((stock, 1.5), (low, 0.5)):
        assert found.rows == pytest.approx(BURST_ROWS, rel=1e-4)
        assert found.moments["forward_send"] == found.need
        assert found.entries["output"] == pytest.approx(output, rel=1e-4)
        assert found.entries["send_buffer"] == found.entries["output"]
        assert found.entries["encoding"] == pytest.approx(factor * output, rel=1e-4)
        assert found.entries["weights"] / GIB == pytest.approx(558.95 / 32, rel=0.001)
        assert found.entries["inputs"] == pytest.approx(2 * 2 * 8 * BURST_ROWS, rel=1e-3)
    assert "receive_buffer" not in stock.entries
    assert low.entries["receive_buffer"] == (3 * IDS + SMALL) * 512 * 2


def test_what_the_page_says_of_the_failures() -> None:
    """The mean skew explains neither failure; the burst does not fit with either codec, and a
    smaller one already fills the rank; the clamp's request fails with two copies of the rows and
    not with one."""
    for codec in CODECS:
        assert hot(codec=codec).need + outside() < kept()
        assert hot(codec=codec, peak=burst()).need + outside() > CAPACITY
    assert hot().need + outside() < PUBLISHED["steady, from"]
    assert peak_for(CAPACITY) < burst()
    stock = hot(codec="stock", peak=burst())
    before = stock.need - stock.entries["encoding"] + outside()
    copy = stock.entries["output"]
    assert CAPACITY - before < copy < CAPACITY - before + copy


def test_a_load_is_found_for_a_total() -> None:
    """The load found for a published total gives that total again."""
    for held in PUBLISHED.values():
        assert hot(peak=peak_for(held)).need + outside() == pytest.approx(held, rel=1e-4)


def test_deduplication_excludes_the_burst() -> None:
    """32 ranks as busy as the hot one return fewer distinct rows than the burst has."""
    assert 32 * hot(dedup=True).rows < BURST_ROWS


def test_conclusions_do_not_hang_on_the_length() -> None:
    """With every published length column-wise fits, and the burst with the stock codec does not."""
    assert hot(length=next(iter(LENGTHS))) == hot(), "the first is the model's own"
    for length in LENGTHS:
        assert hot(MOVED, length=length).need + outside() < kept()
        stock = hot(codec="stock", peak=burst(length), length=length)
        assert stock.rows == pytest.approx(BURST_ROWS, rel=1e-3)
        assert stock.need + outside() > CAPACITY


def _fits(
    peak: float, batch: int = 1024, column_wise: tuple[str, ...] = (), **axes: object
) -> bool:
    """Whether the planner finds a plan or proves that there is none, under these limits."""
    model, cluster = run()
    axes = {"codec": "low_memory", "batch": batch, "peak_skew": peak, **axes}
    varied = vary_model(model, axes, MOVED, ranks=32).to_dict()
    for table in varied["tables"]:
        cut = table["name"] in column_wise
        table["constraints"]["sharding_types"] = ["column_wise" if cut else "row_wise"]
    status = plan(Model.from_dict(varied), cluster, time_limit=20).outcome.status.value
    assert status in ("optimal", "feasible", "infeasible")
    return status != "infeasible"


@pytest.mark.slow
def test_the_planner_draws_the_lines_where_the_study_does() -> None:
    """All row-wise, the burst does not fit with the low-memory codec. A smaller burst, fewer
    samples, one table column-wise, or deduplication fits, and a little beyond each limit nothing
    does."""
    peak, most = burst(), peak_for(kept())
    assert not _fits(peak)
    assert _fits(most - 0.01)
    assert not _fits(most + 0.01)
    assert _fits(peak, largest_batch(peak))
    assert not _fits(peak, largest_batch(peak) + 1)
    assert _fits(peak, column_wise=("album_id",))
    assert not _fits(peak, column_wise=("album_id",), codec="stock")
    assert _fits(peak, codec="stock", dedup=True)
