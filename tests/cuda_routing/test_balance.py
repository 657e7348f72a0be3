"""Balance: loads computed by hand, and adversarial cases with their thresholds.

Hot keys whose ids are unknown: exact expectations for small cases.

Streams counted piece by piece equal the same keys counted at once.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_routing import streaming
from cuda_routing.balance import Balance, balance, balance_of_counts, balances, rank_loads
from cuda_routing.distributions import KeyLoad, histogram, sample, strided, uniform, zipf
from cuda_routing.errors import RoutingError
from cuda_routing.hot_keys import hottest_rank
from cuda_routing.rules import Rule, owners
from cuda_routing.streaming import stream_balance
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


@pytest.mark.parametrize(
    ("load", "ranks"),
    [
        (strided(50_000 * 4, 4, 1), 4),
        (strided(50_000 * 8, 8, 1), 8),
        (sample(np.arange(5, 50_000 * 16, 16)), 8),  # those that one of 16 ranks owned
    ],
)
def test_only_hashes_spread_strided_keys(load: KeyLoad, ranks: int) -> None:
    """50,000 keys congruent mod P all go to one rank under roundrobin; under both hashes
    (max − min)/mean < 0.30 and max/min < 1.5."""
    found = balances(load, ranks, [1, 2, 3])
    assert found[Rule.ROUNDROBIN].max_over_mean == pytest.approx(ranks)
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


def test_one_hot_key_is_certain() -> None:
    """One key of 40% on four ranks: its rank has 40% plus a quarter of the rest, whichever."""
    found = hottest_rank([0.4], 4)
    assert found.expected == pytest.approx(0.55)
    assert found.percentile95 == pytest.approx(0.55)
    assert found.worst == pytest.approx(0.55)
    assert found.best == pytest.approx(0.4)


def test_two_equal_keys_on_two_ranks() -> None:
    """Two keys of one half meet on two ranks half the time: expected 3/4, worst 1, best 1/2."""
    found = hottest_rank([0.5, 0.5], 2)
    assert found.expected == pytest.approx(0.75, abs=0.05)
    assert found.worst == 1.0
    assert found.best == 0.5


def test_no_hot_key_is_even() -> None:
    """Without hot keys every rank has its equal share."""
    assert hottest_rank([], 8).expected == pytest.approx(1 / 8)


def test_order_of_the_figures() -> None:
    """best ≤ expected ≤ 95th percentile ≤ worst."""
    found = hottest_rank([0.1, 0.1, 0.05, 0.05, 0.01], 8)
    assert found.best <= found.expected <= found.percentile95 <= found.worst


@pytest.mark.parametrize("shares", [[-0.1], [0.7, 0.7]])
def test_impossible_shares_are_refused(shares: list[float]) -> None:
    """Negative shares and shares above 1 are refused."""
    with pytest.raises(RoutingError):
        hottest_rank(shares, 4)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=200), st.integers(1, 9), st.integers(1, 50),
    st.integers(1, 40),
)  # fmt: skip
def test_equals_the_whole_sample(keys: list[int], ranks: int, cut: int, batch: int) -> None:
    """Loads equal those of the whole sample, however it is cut; dedup counts each batch's keys."""
    array = np.array(keys)
    pieces = [array[i : i + cut] for i in range(0, array.size, cut)]
    found = stream_balance(pieces, ranks, batch=batch)
    assert (found.lookups, found.rows) == (array.size, max(keys) + 1)
    for rule in Rule:
        whole = balance(sample(array, rows=max(keys) + 1), ranks, rule)
        np.testing.assert_allclose(found.balances[rule].loads, whole.loads)
    batches = [np.unique(p[i : i + batch]) for p in pieces for i in range(0, p.size, batch)]
    sent = np.concatenate(batches)
    assert found.sent_share == pytest.approx(sent.size / array.size)
    loads = np.bincount(owners(sent, ranks, 2), minlength=ranks) / sent.size
    np.testing.assert_allclose(found.after_dedup[Rule.HASH_ROUNDROBIN].loads, loads)
    counts = np.bincount(array)
    assert found.hottest[0] == (int(counts.argmax()), int(counts.max()))


def test_hot_keys_survive_a_small_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for 20 candidates among 5,000 keys, keys above 1/21 are found and exact."""
    monkeypatch.setattr(streaming, "CANDIDATES", 20)
    generator = np.random.default_rng(2)
    noise = generator.integers(0, 5000, size=30_000)
    keys = np.concatenate([noise, np.full(4000, 111), np.full(3000, 222)])
    generator.shuffle(keys)
    found = stream_balance(np.array_split(keys, 17), 8, ["roundrobin"], batch=500)
    expected = [(key, int((keys == key).sum())) for key in (111, 222)]
    assert found.hottest[:2] == expected


def test_negative_keys_leave_continuous_out() -> None:
    """Without the number of rows, negative keys rule out continuous; asked for, it is refused."""
    pieces = [np.array([-4, 2])]
    assert Rule.CONTINUOUS not in stream_balance(pieces, 2).balances
    with pytest.raises(RoutingError, match="-4 is negative"):
        stream_balance(pieces, 2, ["continuous"])
    assert Rule.CONTINUOUS in stream_balance(pieces, 2, ["continuous"], rows=10).balances


def test_nothing_to_count() -> None:
    """An empty stream and a batch size of 0 are refused."""
    with pytest.raises(RoutingError, match="no keys"):
        stream_balance([np.zeros(0, np.int64)], 2)
    with pytest.raises(RoutingError, match="batch"):
        stream_balance([np.array([1])], 2, batch=0)


def test_an_iterator_is_refused() -> None:
    """A stream that can be read only once is refused instead of counted as empty."""
    with pytest.raises(RoutingError, match="iterator, which can be read only once"):
        stream_balance(iter([np.array([1, 2])]), 2)
