"""Access distributions: shares against plain sums, and the de-duplication estimate."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_routing.distributions import HEAD, after_dedup, histogram, sample, strided, uniform, zipf
from cuda_routing.errors import RoutingError


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0, 1.05, 1.8])
def test_zipf_tail_masses_equal_the_plain_sum(alpha: float) -> None:
    """Every evenly spread range of ids has the share that its keys add up to."""
    rows = 500_000
    load = zipf(rows, alpha)
    weights = np.arange(1, rows + 1, dtype=np.float64) ** -alpha
    share = weights / weights.sum()
    np.testing.assert_allclose(load.shares, share[:HEAD], rtol=1e-9)
    cumulative = np.concatenate([[0.0], np.cumsum(share)])
    exact = cumulative[load.stops] - cumulative[load.starts]
    np.testing.assert_allclose(load.segment_shares, exact, rtol=1e-7, atol=1e-12)


def test_zipf_small_table_is_exact() -> None:
    """Three keys at alpha 1 get 6/11, 3/11 and 2/11."""
    load = zipf(3, 1.0)
    np.testing.assert_allclose(load.shares, [6 / 11, 3 / 11, 2 / 11])
    assert load.segment_shares.size == 0
    assert load.hottest_key_share == pytest.approx(6 / 11)


def test_zipf_shuffled_keeps_shares_and_moves_ids() -> None:
    """Shuffling gives rows other ids of the table, all distinct, and keeps their shares."""
    plain, mixed = zipf(1000, 1.2), zipf(1000, 1.2, shuffle_seed=1)
    np.testing.assert_allclose(plain.shares, mixed.shares)
    assert sorted(mixed.keys.tolist()) == list(range(1000))
    assert mixed.keys.tolist() != plain.keys.tolist()


def test_uniform_of_a_billion_rows_lists_no_key() -> None:
    """A large uniform table is one range of ids."""
    load = uniform(10**9)
    assert load.keys.size == 0
    assert load.hottest_key_share == pytest.approx(1e-9)


def test_strided_lists_every_eighth_key() -> None:
    """Stride 8 from 3 over 20 rows is 3, 11, 19."""
    assert strided(20, 8, 3).keys.tolist() == [3, 11, 19]


def test_histogram_adds_repeated_keys() -> None:
    """Counts of a key given twice add up."""
    load = histogram([5, 7, 5], [1, 2, 1])
    assert load.keys.tolist() == [5, 7]
    assert load.shares.tolist() == [0.5, 0.5]


def test_sample_counts_lookups() -> None:
    """A sample's shares are its frequencies."""
    load = sample(np.array([4, 4, 9, 4]))
    assert dict(zip(load.keys.tolist(), load.shares.tolist(), strict=True)) == {4: 0.75, 9: 0.25}


def test_after_dedup_matches_a_simulation() -> None:
    """The expected number of distinct keys of a batch agrees with drawn batches."""
    load, lookups = zipf(2000, 1.1), 5000
    kept, share = after_dedup(load, lookups)
    generator = np.random.default_rng(0)
    distinct = [
        np.unique(generator.choice(2000, size=lookups, p=load.shares)).size for _ in range(30)
    ]
    assert share * lookups == pytest.approx(np.mean(distinct), rel=0.01)
    assert kept.hottest_key_share == pytest.approx(1 / (share * lookups), rel=1e-3)


def test_after_dedup_of_one_lookup_changes_nothing() -> None:
    """A batch of one lookup has nothing to de-duplicate, in the tail either."""
    load = zipf(10**7, 1.05)
    kept, share = after_dedup(load, 1)
    assert share == pytest.approx(1.0)
    np.testing.assert_allclose(kept.segment_shares, load.segment_shares, rtol=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda: uniform(0),
        lambda: zipf(10, -1.0),
        lambda: strided(10, 0),
        lambda: strided(10**9, 2),
        lambda: histogram([1], [0]),
        lambda: histogram([1, 2], [1]),
        lambda: sample([]),
        lambda: after_dedup(uniform(5), 0),
    ],
)
def test_nonsense_is_refused(call: object) -> None:
    """Empty tables, negative exponents and empty histograms are refused."""
    with pytest.raises(RoutingError):
        call()  # type: ignore[operator]
