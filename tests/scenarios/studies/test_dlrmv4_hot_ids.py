"""The DLRMv4 study: its calibration and its arithmetic."""

from __future__ import annotations

import pytest

from scenarios.studies.dlrmv4_hot_ids import (
    BURST_ROWS,
    CAPACITY,
    CODECS,
    GIB,
    LENGTHS,
    PUBLISHED,
    Study,
    distinct_rows,
    study,
)

IDS = 1024 * 2627
SMALL = 8 * 1024


@pytest.fixture(scope="module")
def ran() -> Study:
    """The run: four machines of eight ranks."""
    return study()


def test_as_it_ran(ran: Study) -> None:
    """Four nodes are 32 ranks, and one calibration figure makes column-wise 58% of 288 GiB."""
    assert ran.ranks == 32
    for codec in CODECS.values():
        need = ran.column.need(codec, ran.outside(codec))
        assert need == pytest.approx(0.58 * CAPACITY, abs=1)


def test_rows_by_hand(ran: Study) -> None:
    """Row-wise the measured ratios as they are: 2.69M ids a table, times 1, 1.3 and 2.8."""
    assert ran.row.rows == pytest.approx(IDS * (1 + 1.3 + 2.8) + SMALL, rel=1e-6)
    assert ran.column.rows == pytest.approx(3 * IDS + SMALL, rel=1e-6)
    assert ran.row.row_bytes == 2048


def test_tables_take_their_share(ran: Study) -> None:
    """560.04 GiB of weights and state over 32 ranks, and the ids of the hot rank."""
    ids = 8 * (IDS * (1 + 1.3 + 2.8) + SMALL)
    assert (ran.row.tables - ids) / GIB == pytest.approx(560.04 / 32, rel=0.005)


def test_need_and_rows_are_inverse(ran: Study) -> None:
    """The rows that fill the rank to a published figure make that figure again."""
    for held in PUBLISHED.values():
        rows = ran.row.rows_for(held, 1.5, ran.outside(1.5))
        assert ran.row.need(1.5, ran.outside(1.5), rows) == pytest.approx(held, abs=2)


def test_the_answer_is_reported_as_it_is(ran: Study) -> None:
    """Averages explain neither failure; the burst explains the first under both calibrations."""
    for codec in CODECS.values():
        outside = ran.outside(codec)
        assert ran.row.need(CODECS["stock"], outside) < CAPACITY
        assert ran.row.need(CODECS["stock"], outside, BURST_ROWS) > CAPACITY
        assert ran.row.need(CODECS["low-memory"], outside, BURST_ROWS) < CAPACITY
    low = ran.outside(CODECS["low-memory"])
    assert ran.row.need(CODECS["low-memory"], low) < PUBLISHED["steady, from"]
    crash = ran.row.rows_for(CAPACITY, CODECS["low-memory"], low)
    assert 1.15 < crash / BURST_ROWS < 1.25


def test_deduplication_excludes_the_burst() -> None:
    """All distinct ids of all ranks are fewer than the rows of the burst."""
    assert distinct_rows() == pytest.approx(32 * IDS * (0.024 + 0.015 + 0.006))
    assert distinct_rows() < BURST_ROWS


@pytest.mark.parametrize("machines", [1, 2, 4])
def test_other_numbers_of_machines(machines: int) -> None:
    """One hot row a table: its load over the mean falls with fewer ranks."""
    found = study(machines)
    ranks = 8 * machines
    loads = [1 + (skew - 1) / 31 * (ranks - 1) for skew in (1.0, 1.3, 2.8)]
    assert found.row.rows == pytest.approx(IDS * sum(loads) + SMALL, rel=1e-4)


def test_conclusions_do_not_hang_on_the_length() -> None:
    """With every published length the mean skew fits and the stock codec's burst does not."""
    assert study(length=next(iter(LENGTHS))) == study(), "the first is the model's own"
    for length in LENGTHS:
        found = study(length=length)
        outside = found.outside(CODECS["low-memory"])
        assert found.row.need(CODECS["low-memory"], outside) < PUBLISHED["steady, from"]
        assert found.row.need(CODECS["stock"], outside, BURST_ROWS) > CAPACITY
