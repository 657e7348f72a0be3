"""Random numbers, and whether a change is accepted."""

from __future__ import annotations

import numpy as np

from formulations.search.anneal_data import (
    RANDOM,
)
from formulations.search.kernels.compiled import kernel


@kernel
def draw(a, below):
    """A random number in [0, below), by xorshift."""
    x = np.uint64(a[RANDOM])
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    a[RANDOM] = np.int64(x)
    return np.int64(((x >> np.uint64(33)) * np.uint64(below)) >> np.uint64(31))


@kernel
def accepted(a, change, heat):
    if change <= 0.0:
        return True
    if change > 30.0 * heat:
        return False
    return draw(a, 1 << 30) < np.exp(-change / heat) * (1 << 30)
