"""Hot keys whose ids are unknown: exact expectations for small cases."""

from __future__ import annotations

import pytest

from cuda_routing.errors import RoutingError
from cuda_routing.hot_keys import hottest_rank


def test_one_hot_key_is_certain() -> None:
    """One key of 40% on four ranks: its rank has 40% plus a quarter of the rest, whichever it
    is."""
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
