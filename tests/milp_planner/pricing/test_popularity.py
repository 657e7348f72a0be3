"""Popularity classes against plain sums and random draws."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from milp_planner.inputs.access import Histogram, MeasuredSkew, MissRate, TopIds, Unknown, Zipf
from milp_planner.pricing.popularity import (
    Popularity,
    hot_share,
    popularity,
    skewed,
    uniform,
    zipf,
)


def plain_zipf(rows: int, alpha: float) -> np.ndarray:
    """All shares of a Zipf table, one by one."""
    weights = np.arange(1, rows + 1, dtype=np.float64) ** -alpha
    return weights / weights.sum()


def total(known: Popularity) -> float:
    """Sum of all shares."""
    return float((known.counts * known.shares).sum())


@given(st.integers(1, 200_000), st.floats(0, 2))
@settings(max_examples=30, deadline=None)
def test_zipf_classes_equal_the_plain_law(rows: int, alpha: float) -> None:
    """Counts, total, the largest share and Σ p² agree with the law summed row by row."""
    known, exact = zipf(rows, alpha), plain_zipf(rows, alpha)
    assert known.rows == rows
    assert total(known) == pytest.approx(1)
    assert known.shares[0] == pytest.approx(exact[0], rel=1e-4)
    assert (known.counts * known.shares**2).sum() == pytest.approx((exact**2).sum(), rel=1e-3)


def test_a_class_of_a_tiny_part_of_a_row_overflows_nothing() -> None:
    """A row's share of the lookups is at most 1, whatever the classes say; no NumPy warning."""
    spread = popularity(Histogram(kind="histogram", bins=((1e-200, 0.5), (1.0, 0.5))), 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert hot_share(spread, 8) == 1.0


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.05, 1.5])
def test_distinct_rows_of_a_batch(alpha: float) -> None:
    """Expected distinct rows equal the sum over all rows of 1 − (1 − p)^n."""
    exact = -np.expm1(5000 * np.log1p(-plain_zipf(100_000, alpha))).sum()
    assert zipf(100_000, alpha).distinct(5000) == pytest.approx(exact, rel=2e-3)


def test_after_dedup_flattens() -> None:
    """Sent once per batch, a hot row weighs as much as any that is surely in the batch."""
    left = zipf(1000, 1.5).after_dedup(10**6)
    assert total(left) == pytest.approx(1)
    assert left.shares[0] == pytest.approx(1 / 1000, rel=1e-3)


def test_head_and_rest_split_the_law() -> None:
    """The head's shares are exact, and the rest is the remaining law, rescaled."""
    exact = plain_zipf(50_000, 1.2)
    known = zipf(50_000, 1.2)
    assert known.head(40) == pytest.approx(exact[:40], rel=1e-4)
    rest = known.without_head(40)
    assert rest.rows == 50_000 - 40
    assert rest.shares[0] == pytest.approx(exact[40] / exact[40:].sum(), rel=1e-3)


def test_histogram_orders_its_bins() -> None:
    """The 1% of rows with 90% of the lookups comes first, whatever the given order."""
    access = Histogram(kind="histogram", bins=((0.99, 0.1), (0.01, 0.9)))
    known = popularity(access, 1000)
    assert known.counts.tolist() == [10, 990]
    assert known.shares == pytest.approx([0.09, 0.1 / 990])


def test_top_ids_leave_the_rest_even() -> None:
    """With two hot ids of 30% and 20%, the other 998 rows share the remaining half."""
    access = TopIds(kind="top_ids", ids=({"share": 0.2}, {"share": 0.3, "id": 7}))
    known = popularity(access, 1000)
    assert known.counts.tolist() == [1, 1, 998]
    assert known.shares == pytest.approx([0.3, 0.2, 0.5 / 998])


def test_miss_rate_curve_becomes_classes() -> None:
    """Between two points lies the share by which the miss rate falls; the rest is even."""
    access = MissRate(kind="miss_rate", points=((0.1, 0.4), (0.5, 0.1), (1.0, 0.0)))
    known = popularity(access, 100)
    assert known.counts == pytest.approx([10, 40, 50])
    assert known.counts * known.shares == pytest.approx([0.6, 0.3, 0.1])


def test_unknown_is_even() -> None:
    """Without statistics every row is as popular as any other."""
    known = popularity(Unknown(), 77)
    assert (known.counts.tolist(), known.shares.tolist()) == ([77.0], [1 / 77])
    assert popularity(Zipf(kind="zipf", alpha=0.0), 77).distinct(50) == pytest.approx(
        uniform(77).distinct(50)
    )


def test_measured_skew_is_reproduced_at_its_own_number_of_ranks() -> None:
    """One hot row p with p + (1 − p)/P = m/P."""
    known = skewed(MeasuredSkew(max_over_mean=2.8, ranks=8), 10_000)
    hot = float(known.shares[0])
    assert 8 * (hot + (1 - hot) / 8) == pytest.approx(2.8)
    assert total(known) == pytest.approx(1)
