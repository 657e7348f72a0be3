"""Asking for memory ahead is of no consequence but time."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")


@pytest.mark.parametrize("index", [0, 5, -1, 10**12])
def test_any_index_is_harmless(index: int) -> None:
    """Inside or outside an array of one or two axes: nothing changes, nothing is refused."""
    from numba import njit

    from milp_planner.simulate.prefetch import prefetch

    @njit
    def ask(array, index):  # type: ignore[no-untyped-def]
        prefetch(array, index)
        return array.sum()

    for shape in ((6,), (6, 4)):
        assert ask(np.ones(shape, np.int32), index) == np.prod(shape)
