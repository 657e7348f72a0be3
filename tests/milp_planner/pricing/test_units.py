"""Rounding between seconds, picoseconds and multiples."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from milp_planner.pricing.units import ceil_div, picoseconds, round_up


def test_picoseconds_round_to_the_nearest_with_ties_to_even() -> None:
    """Half a picosecond goes to the even neighbour; nothing is truncated."""
    assert picoseconds(np.array([1e-3, 0.5e-12, 1.5e-12, 2.6e-12])).tolist() == [10**9, 0, 2, 3]


@given(st.integers(0, 2**60), st.integers(1, 2**30))
def test_ceil_div_is_exact(numerator: int, denominator: int) -> None:
    """The quotient is the least integer that is large enough."""
    quotient = int(ceil_div(numerator, denominator))
    assert (quotient - 1) * denominator < numerator <= quotient * denominator


@given(st.integers(0, 2**40), st.integers(1, 4096))
def test_round_up_is_the_least_multiple(value: int, multiple: int) -> None:
    """The result is a multiple, not below the value, and less than one multiple above it."""
    result = int(round_up(value, multiple))
    assert result % multiple == 0
    assert value <= result < value + multiple
