"""From seconds to the integers of an Instance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Numbers = FloatArray | IntArray
Places = IntArray | slice
"""Where in an array: indices, or all of it."""
Integers = IntArray | int

PICOSECONDS = 10**12
"""Picoseconds in a second."""


def picoseconds(seconds: FloatArray) -> IntArray:
    """Seconds as whole picoseconds, rounded to the nearest (ties to even).

    Rounding moves a price by at most half a picosecond; the prices themselves are estimates.
    """
    return np.rint(np.asarray(seconds, dtype=np.float64) * PICOSECONDS).astype(np.int64)


def ceil_div(numerator: Integers, denominator: Integers) -> IntArray:
    """Integer division rounded up, exact (denominator above 0)."""
    return -(-np.asarray(numerator, dtype=np.int64) // np.asarray(denominator, dtype=np.int64))


def round_up(value: Integers, multiple: Integers) -> IntArray:
    """The least multiple of ``multiple`` that is at least ``value``."""
    return ceil_div(value, multiple) * multiple
