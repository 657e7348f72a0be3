"""The compiled loop behind de-duplication on the CPU."""

from __future__ import annotations

import numpy as np
from numba import njit

from cuda_routing.numba_kernels import _fmix


@njit(nogil=True, cache=True)
def unique_chunk(keys, starts, out, counts, inverse):  # type: ignore[no-untyped-def]
    """Distinct keys of each feature in order of first appearance; returns their total number."""
    size = 0
    for feature in range(starts.size - 1):
        a, b = starts[feature], starts[feature + 1]
        capacity = 4
        while capacity < 2 * (b - a):
            capacity *= 2
        slots = np.full(capacity, -1, np.int64)
        mask = np.uint64(capacity - 1)
        first = size
        for i in range(a, b):
            key = keys[i]
            slot = np.intp(_fmix(np.uint64(key)) & mask)
            while slots[slot] >= 0 and out[slots[slot]] != key:
                slot = (slot + 1) & (capacity - 1)
            if slots[slot] < 0:
                slots[slot] = size
                out[size] = key
                size += 1
            inverse[i] = slots[slot]
        counts[feature] = size - first
    return size
