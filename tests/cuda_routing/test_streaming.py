"""Streams counted piece by piece equal the same keys counted at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_routing import streaming
from cuda_routing.balance import balance
from cuda_routing.distributions import sample
from cuda_routing.errors import RoutingError
from cuda_routing.rules import Rule, owners
from cuda_routing.streaming import stream_balance


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
