"""Balance: loads computed by hand, and adversarial cases with their thresholds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuda_routing.balance import Balance, balance, balance_of_counts, balances, rank_loads
from cuda_routing.distributions import histogram, sample, strided, uniform, zipf
from cuda_routing.errors import RoutingError
from cuda_routing.rules import Rule, owners
from tests.cuda_routing.test_rules import plain_fmix64


def test_rank_loads_by_hand() -> None:
    """Keys 0, 1, 8 on four ranks under roundrobin: rank 0 has 0 and 8, rank 1 has 1."""
    loads = rank_loads([0, 1, 8], [0.5, 0.2, 0.3], 4, "roundrobin")
    np.testing.assert_allclose(loads, [0.8, 0.2, 0.0, 0.0])


def test_rank_loads_with_tail_and_blocks() -> None:
    """Ten rows on four ranks are blocks of 3, 3, 3, 1: the tail follows the rows."""
    loads = rank_loads([9], [0.5], 4, "continuous", rows=10, tail=0.5)
    np.testing.assert_allclose(loads, [0.15, 0.15, 0.15, 0.55])
    even = rank_loads([9], [0.5], 4, "roundrobin", rows=10, tail=0.5)
    np.testing.assert_allclose(even, [0.125, 0.625, 0.125, 0.125])


def test_continuous_tail_of_a_zipf_equals_key_by_key() -> None:
    """The key ranges of a large Zipf table load the blocks as its single keys would."""
    rows, ranks = 300_000, 7
    weights = np.arange(1, rows + 1) ** -1.1
    exact = np.bincount(
        owners(np.arange(rows), ranks, 0, block_size=-(-rows // ranks)), weights / weights.sum()
    )
    found = balance(zipf(rows, 1.1), ranks, "continuous").loads
    np.testing.assert_allclose(found, exact, rtol=1e-3)


@given(st.lists(st.integers(0, 100), min_size=1, max_size=12).filter(sum))
def test_gini_equals_its_definition(counts: list[int]) -> None:
    """Gini is the mean absolute difference of all pairs over twice the mean."""
    result = balance_of_counts(counts, 1, 0.0)
    loads = np.array(counts, dtype=float)
    pairs = np.abs(loads[:, None] - loads[None, :]).mean()
    assert result.gini == pytest.approx(pairs / (2 * loads.mean()), abs=1e-9)


def test_measures_of_one_rank_taking_all() -> None:
    """One of four ranks takes everything: max/mean 4, Gini 3/4, max/min infinite."""
    result = Balance(Rule.ROUNDROBIN, np.array([0.0, 1.0, 0.0, 0.0]), 1.0)
    assert result.max_over_mean == 4
    assert result.gini == pytest.approx(0.75)
    assert result.max_over_min == float("inf")
    assert result.hottest_rank == 1
    assert result.hot_rank_bytes(100, row_bytes=512) == 100 * 520


@pytest.mark.parametrize("ranks", [4, 8])
@pytest.mark.parametrize("rule", [Rule.HASH_ROUNDROBIN, Rule.HASH_INDEPENDENT])
def test_strided_keys_are_spread_by_both_hashes(ranks: int, rule: Rule) -> None:
    """50,000 keys congruent mod P: (max − min)/mean < 0.30 and max/min < 1.5."""
    result = balance(strided(50_000 * ranks, ranks, 1), ranks, rule)
    assert result.spread < 0.30
    assert result.max_over_min < 1.5


@pytest.mark.parametrize("ranks", [4, 8])
def test_strided_keys_all_hit_one_rank_under_roundrobin(ranks: int) -> None:
    """Under roundrobin the same keys all go to one rank."""
    result = balance(strided(50_000 * ranks, ranks, 1), ranks, Rule.ROUNDROBIN)
    assert result.max_over_mean == pytest.approx(ranks)


def test_remapped_keys_of_another_world_size() -> None:
    """Keys that one of 16 ranks owned all go to one rank of 8 again, unless hashed."""
    keys = np.arange(5, 50_000 * 16, 16)
    found = balances(sample(keys), 8, [1, 2, 3])
    assert found[Rule.ROUNDROBIN].max_over_mean == pytest.approx(8)
    for rule in (Rule.HASH_ROUNDROBIN, Rule.HASH_INDEPENDENT):
        assert found[rule].spread < 0.30
        assert found[rule].max_over_min < 1.5


def test_no_rule_spreads_one_hot_key() -> None:
    """Zipf 1.8 over 49,332 ids on 8 ranks: the top key draws 53%, so max/mean stays above 4."""
    for shuffle in (None, 0):
        found = balances(zipf(49_332, 1.8, shuffle_seed=shuffle), 8)
        for result in found.values():
            assert result.hottest_key_share == pytest.approx(0.53, abs=0.005)
            assert result.max_over_mean > 8 * result.hottest_key_share > 4.2


def test_uniform_is_even_under_every_rule() -> None:
    """A billion evenly wanted rows load every rank alike."""
    for result in balances(uniform(10**9), 64).values():
        assert result.max_over_mean == pytest.approx(1.0, abs=1e-6)


def test_unknown_rows_leave_continuous_out() -> None:
    """Without the number of rows, continuous is left out, and refused if asked for."""
    load = histogram([1, 2, 3], [1, 1, 2])
    assert Rule.CONTINUOUS not in balances(load, 2)
    with pytest.raises(RoutingError, match="rows"):
        balance(load, 2, "continuous")


@pytest.mark.parametrize("ranks", [3, 6, 7, 8])
def test_rank_loads_of_int32_keys_follow_the_runtime(ranks: int) -> None:
    """A hot int32 key loads the rank that dynamicemb's truncated hash names."""
    for key in range(40):
        loads = rank_loads([key], [1.0], ranks, "hash_roundrobin", index_type="int32")
        assert loads.argmax() == (plain_fmix64(key) & 0xFFFFFFFF) % ranks
        wide = rank_loads([key], [1.0], ranks, "hash_roundrobin", index_type="int64")
        assert wide.argmax() == plain_fmix64(key) % ranks
