"""Which plan to run when: against every way through the windows."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from milp_planner.features.windows.call import cheapest, minutes_of

SMALL = st.integers(1, 5)


@given(data=st.data(), plans=st.integers(1, 3), windows=st.integers(1, 5))
def test_no_way_is_cheaper(data: st.DataObject, plans: int, windows: int) -> None:
    """By trying all ways; where some window fits under no plan, there is none."""
    fits = [[data.draw(st.booleans()) for _ in range(windows)] for _ in range(plans)]
    cost = [60_000.0 * data.draw(SMALL) for _ in range(plans)]
    steps = [data.draw(SMALL) for _ in range(windows)]
    change = float(data.draw(st.integers(0, 9)))
    ways = [
        list(way) for way in itertools.product(range(plans), repeat=windows)
        if all(fits[plan][window] for window, plan in enumerate(way))
    ]  # fmt: skip
    found = cheapest(fits, cost, steps, change)
    if not ways:
        assert found is None
        return
    assert found in ways
    least = min(minutes_of(way, cost, steps, change) for way in ways)
    assert minutes_of(found, cost, steps, change) == pytest.approx(least)


def test_by_hand() -> None:
    """A fast plan that dies in the last of four windows of a minute against a slow one of two:
    changing saves three minutes and costs 2, or 4."""
    fits, cost, steps = [[True, True, True, False], [True] * 4], [60_000.0, 120_000.0], [1] * 4
    assert cheapest(fits, cost, steps, 2) == [0, 0, 0, 1]
    assert minutes_of([0, 0, 0, 1], cost, steps, 2) == 7
    assert cheapest(fits, cost, steps, 4) == [1, 1, 1, 1]
