"""Lookup time by hand."""

from __future__ import annotations

import numpy as np
import pytest

from milp_planner.pricing import lookup
from milp_planner.pricing.profile import Kernel, load_profile


def test_forward_is_bytes_over_bandwidth() -> None:
    """100 ids of 512 bytes, 25,600 bytes out: (800 + 51,200 + 25,600) bytes at 1 GB/s."""
    ids, out, row = np.array([100.0]), np.array([25_600.0]), np.array([512])
    plain = lookup.forward_seconds(ids, out, row, np.array([False]), np.array([1e9]))
    assert plain.tolist() == [pytest.approx(77_600e-9)]
    weighted = lookup.forward_seconds(ids, out, row, np.array([True]), np.array([1e9]))
    assert weighted.tolist() == [pytest.approx(78_400e-9)]


def test_backward_is_twice_forward_and_more_with_weights() -> None:
    """Factor 2, 3.1 if weighted; 2 · 1.2 with two copies of a row as state at 0.1 each."""
    kernel = Kernel(dynamicemb_state_multiple=0.1)
    weighted, state = np.array([False, True, False]), np.array([0.0, 0.0, 2.0])
    found = lookup.backward_seconds(np.ones(3), weighted, state, kernel)
    assert found == pytest.approx([2.0, 3.1, 2.4])


def test_narrow_rows_are_penalised() -> None:
    """1.75 below 64 columns, 1.15 below 128, none from there on; none at all if switched off."""
    columns = np.array([16, 63, 64, 127, 128, 512])
    found = lookup.narrow_penalty(columns, Kernel())
    assert found.tolist() == [1.75, 1.75, 1.15, 1.15, 1.0, 1.0]
    assert lookup.narrow_penalty(columns, Kernel(narrow_penalties=())).tolist() == [1.0] * 6


def test_tiered_bandwidth_mixes_hbm_and_the_link() -> None:
    """A quarter of HBM plus three quarters of the host link."""
    profile = load_profile("h100")
    found = lookup.tiered_bandwidth(profile, np.array([0.25]))
    assert found.tolist() == [pytest.approx(0.25 * 3350e9 + 0.75 * 64e9)]


def test_prefetch_is_missing_rows_over_the_link() -> None:
    """A thousand rows of 512 bytes at 64 GB/s."""
    found = lookup.prefetch_seconds(np.array([1000.0]), np.array([512]), load_profile("h100"))
    assert found.tolist() == [pytest.approx(512_000 / 64e9)]
