"""The DLRMv4 study: its calibration, its arithmetic, and the page that reports it."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.studies.dlrmv4_hot_ids import CAPACITY, GIB, Study, study, table

PAGE = Path(__file__).resolve().parents[3] / "docs" / "dlrmv4.md"


@pytest.fixture(scope="module")
def one() -> Study:
    """One machine of eight ranks."""
    return study(1)


def test_only_the_column_wise_figure_is_calibrated(one: Study) -> None:
    """Column-wise is 58% of 288 GiB by construction; the outside part is the same everywhere."""
    column, row, low = one.needs
    assert column.total == pytest.approx(0.58 * CAPACITY, abs=1)
    assert column.outside == row.outside == low.outside


def test_buffers_by_hand(one: Study) -> None:
    """2.69M ids a table and rank, times 1, 1.3 and 2.8, 2,048 bytes, 2.5 at the codec's peak."""
    ids = 1024 * 2627
    small = 8 * 1024
    rows = ids * (1 + 1.3 + 2.8) + small
    assert one.hot_rows == pytest.approx(rows, rel=1e-6)
    assert one.needs[1].buffers == pytest.approx(rows * 2048 * 2.5, rel=1e-6)
    assert one.needs[2].buffers == pytest.approx(rows * 2048 * 1.5, rel=1e-6)
    assert one.needs[0].buffers == pytest.approx((3 * ids + small) * 2048 * 2.5, rel=1e-6)


def test_tables_take_their_share(one: Study) -> None:
    """560.04 GiB of weights and state over eight ranks, and the ids."""
    ids = 8 * (3 * 1024 * 2627 + 8 * 1024)
    assert (one.needs[0].tables - ids) / GIB == pytest.approx(560.04 / 8, rel=0.005)


def test_explaining_load_just_fills_the_rank(one: Study) -> None:
    """At that load tables, buffers and the rest make 288 GiB."""
    row = one.needs[1]
    mean = 1024 * 2627 * 3 + 8 * 1024
    at_limit = row.buffers * one.explaining_load * mean / one.hot_rows
    assert row.tables + row.outside + at_limit == pytest.approx(CAPACITY)


def test_the_answer_is_reported_as_it_is(one: Study) -> None:
    """The published averages do not explain the failure; the published burst does."""
    assert not one.explains
    assert [need.fits for need in one.needs] == [True, True, True]
    assert [need.fits for need in one.burst] == [False, True]


def test_the_page_shows_the_current_table(one: Study) -> None:
    """docs/dlrmv4.md holds exactly what the study prints today."""
    assert table([one, study(2)]) in PAGE.read_text(encoding="utf-8")
