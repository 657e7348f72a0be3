"""Popularity classes against plain sums and random draws.

Distinct ids and hot ranks against simulation.
"""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_routing.hot_keys import hottest_rank
from milp_planner.inputs.access import (
    Access,
    Histogram,
    HotId,
    MeasuredSkew,
    MissRate,
    TopIds,
    Unknown,
    Zipf,
)
from milp_planner.pricing import popularity as acc
from milp_planner.pricing.popularity import (
    Popularity,
    hot_share,
    popularity,
    uniform,
    zipf,
)
from tests.cuda_routing.test_rules import plain_fmix64


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


@pytest.mark.parametrize(
    ("access", "rows", "counts", "masses"),
    [
        # the 1% of rows with 90% of the lookups comes first, whatever the given order
        (Histogram(kind="histogram", bins=((0.99, 0.1), (0.01, 0.9))), 1000, [10, 990], [0.9, 0.1]),
        # beside two hot ids, the other rows share the rest evenly
        (TopIds(kind="top_ids", ids=(HotId(share=0.2), HotId(share=0.3, id=7))), 1000,
         [1, 1, 998], [0.3, 0.2, 0.5]),
        # between two points lies the share by which the miss rate falls
        (MissRate(kind="miss_rate", points=((0.1, 0.4), (0.5, 0.1), (1.0, 0.0))), 100,
         [10, 40, 50], [0.6, 0.3, 0.1]),
        (Unknown(), 77, [77], [1.0]),
    ],
)  # fmt: skip
def test_classes_by_hand(
    access: Access, rows: int, counts: list[float], masses: list[float]
) -> None:
    """Rows of each class, and the lookups that fall on them."""
    known = popularity(access, rows)
    assert known.counts == pytest.approx(counts)
    assert known.counts * known.shares == pytest.approx(masses)


def draws(rows: int, alpha: float, count: int, seed: int = 0) -> np.ndarray:
    """Independent lookups of a Zipf table; row 0 is the most popular."""
    weights = np.arange(1, rows + 1, dtype=np.float64) ** -alpha
    cdf = np.cumsum(weights / weights.sum())
    return np.searchsorted(cdf, np.random.default_rng(seed).random(count))


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.3])
def test_unique_fraction_against_draws(alpha: float) -> None:
    """The expected number of distinct ids of a batch agrees with drawn batches; a measured figure
    is not derived again."""
    batches = [len(np.unique(draws(50_000, alpha, 20_000, seed))) for seed in range(5)]
    found = acc.unique_fraction(Zipf(kind="zipf", alpha=alpha), 50_000, 20_000.0)
    assert found == pytest.approx(np.mean(batches) / 20_000, rel=0.01)
    assert acc.unique_fraction(Unknown(unique_fraction=0.024), 100, 1e6) == 0.024


def test_distinct_rows_of_all_ranks() -> None:
    """Evenly popular rows by the formula; a measured unique fraction is an upper limit, and so are
    the rows."""
    even = 1000 * (1 - (1 - 1 / 1000) ** 800)
    assert acc.distinct_rows(Unknown(), 1000, 100.0, 8) == pytest.approx(even)
    assert acc.distinct_rows(Unknown(unique_fraction=0.05), 1000, 100.0, 8) == pytest.approx(40)
    assert acc.distinct_rows(Unknown(unique_fraction=1.0), 1000, 1e5, 8) <= 1000
    assert acc.distinct_rows(Unknown(), 1000, 0.05, 8) == pytest.approx(0.4)


@pytest.mark.parametrize("alpha", [0.4, 0.8, 1.0, 1.2, 1.8])
@pytest.mark.parametrize("ranks", [4, 16, 128])
def test_hot_share_against_random_placements(alpha: float, ranks: int) -> None:
    """The closed form is within 15% of the mean over 512 random placements of the hot rows."""
    weights = np.arange(1, 100_001, dtype=np.float64) ** -alpha
    simulated = hottest_rank((weights / weights.sum())[:4096], ranks).expected
    assert acc.hot_share(zipf(100_000, alpha), ranks) == pytest.approx(simulated, rel=0.15)


def test_hot_share_of_an_even_spread() -> None:
    """1/P for many rows, 1/rows for fewer rows than ranks, 1 on one rank."""
    assert acc.hot_share(uniform(10**6), 8) == 1 / 8
    assert acc.hot_share(uniform(5), 8) == 1 / 5
    assert acc.hot_share(zipf(100, 1.0), 1) == 1.0


def test_anonymous_hot_rows_are_charged_to_every_rank() -> None:
    """All ranks have one factor above 1: the documented worst case."""
    factors = acc.rank_factors(Zipf(kind="zipf", alpha=1.8), 49_332, 8, "roundrobin", 0.0)
    assert len(factors) == 1
    assert factors[0] == pytest.approx(4.7, abs=0.3)


def test_known_hot_ids_load_their_owners_only() -> None:
    """Id 11 with 40% of the lookups is on rank 3 of 8 under roundrobin; the rest is even."""
    access = TopIds(kind="top_ids", ids=({"share": 0.4, "id": 11},))
    factors = np.array(acc.rank_factors(access, 10_000, 8, "roundrobin", 0.0))
    assert factors.sum() == pytest.approx(8)
    assert factors[3] == pytest.approx(8 * 0.4 + 0.6)
    assert np.delete(factors, 3) == pytest.approx(np.full(7, 0.6))


@pytest.mark.parametrize(("index_type", "bits"), [("int32", 32), ("int64", 64)])
def test_known_hot_ids_of_int32_keys_load_the_rank_the_runtime_hashes_to(
    index_type: str, bits: int
) -> None:
    """On 6 ranks the hash of an int32 key is cut to 32 bits, so another rank has the hot id."""
    for key in range(20):
        access = TopIds(kind="top_ids", ids=({"share": 0.4, "id": key},))
        factors = acc.rank_factors(access, 10_000, 6, "hash_roundrobin", 0.0, index_type)
        assert np.argmax(factors) == (plain_fmix64(key) & ((1 << bits) - 1)) % 6


def test_known_hot_ids_under_continuous_sit_in_their_block() -> None:
    """With row-wise blocks of 1,250 rows, ids 0 and 9,999 load the first and the last rank."""
    access = TopIds(kind="top_ids", ids=({"share": 0.2, "id": 0}, {"share": 0.1, "id": 9999}))
    factors = acc.rank_factors(access, 10_000, 8, "continuous", 0.0)
    assert factors[0] == pytest.approx(8 * 0.2 + 0.7)
    assert factors[7] == pytest.approx(8 * 0.1 + 0.7)


def test_deduplication_takes_the_hot_load_away() -> None:
    """A hot id that is sent once per batch hardly loads its rank."""
    access = TopIds(kind="top_ids", ids=({"share": 0.4, "id": 11},))
    plain = max(acc.rank_factors(access, 10**6, 8, "roundrobin", 0.0))
    assert plain > 3.5
    assert max(acc.rank_factors(access, 10**6, 8, "roundrobin", 10_000.0)) < 1.01


def test_a_measured_skew_replaces_the_statistics() -> None:
    """A skew of 2.8 measured at 8 ranks is 2.8 at 8 ranks, and more at 16."""
    access = Unknown(measured_skew=MeasuredSkew(max_over_mean=2.8, ranks=8))
    (eight,) = acc.rank_factors(access, 10**6, 8, "continuous", 0.0)
    (sixteen,) = acc.rank_factors(access, 10**6, 16, "continuous", 0.0)
    assert eight == pytest.approx(2.8)
    assert sixteen == pytest.approx(1 + 15 * 1.8 / 7)


def test_only_the_leading_known_ids_count_as_known() -> None:
    """If a more popular id is unknown, all less popular ones count as unknown, too."""
    access = TopIds(kind="top_ids", ids=({"share": 0.1, "id": 5}, {"share": 0.3}))
    assert acc.hot_ids(access) == ()
    access = TopIds(kind="top_ids", ids=({"share": 0.3, "id": 5}, {"share": 0.1}))
    assert acc.hot_ids(access) == (5,)
