"""Integers as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from milp_planner.drawing import units


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (80 * 2**30, "80 GiB"), (-(2**31), "-2 GiB"),
     (2 * 2**40 + 2**39, "2.5 TiB"), (None, "–"), (750 * 2**30, "750.0 GiB")],
)  # fmt: skip
def test_bytes(amount: int | None, text: str) -> None:
    """The largest binary unit in which the value is at least 1."""
    assert units.show_bytes(amount) == text


@pytest.mark.parametrize(
    ("time", "text"),
    [(0, "0 ps"), (999, "999 ps"), (1500, "1.5 ns"), (12_345_678_901, "12.35 ms"), (None, "–"),
     (3 * 10**12, "3 s"), (-1500, "-1.5 ns")],
)  # fmt: skip
def test_times(time: int | None, text: str) -> None:
    """Picoseconds in a suitable unit."""
    assert units.show_time(time) == text


def test_a_column_shares_one_unit() -> None:
    """The largest value chooses the unit for all."""
    unit = units.time_unit([5, None, 2_000_000_000])
    assert unit == ("ms", 10**9)
    assert units.show_time(5_000_000, unit) == "0.005 ms"


def test_costs_without_a_time_unit_stay_integers() -> None:
    """Instances from the literature have no picoseconds."""
    assert units.show_cost(12345, "1") == "12,345"
    assert units.show_cost(12345, "ps") == "12.35 ns"
    assert units.show_cost(None, "ps") == "–"


@pytest.mark.parametrize(
    ("gap", "text"),
    [(None, "–"), (0.0, "0"), (1e-9, "1e-07%"), (0.0123, "1.2%"), (0.5, "50%"), (-0.01, "-1%"),
     (0.0996, "10%"), (0.998, "99.8%"), (0.9997, "99.97%"), (1.0, "100%"), (1.0004, "100.04%"),
     (1.25, "125%"), (-1.0, "-100%")],
)  # fmt: skip
def test_gaps(gap: float | None, text: str) -> None:
    """Whole percent from ten on, two digits below; only an exact 0 prints as 0."""
    assert units.show_gap(gap) == text


@given(st.floats(-2, 2) | st.floats(0.99, 1.01))
def test_gaps_never_round_to_nothing_or_all(gap: float) -> None:
    """Only an exact 0 or 1 prints as 0 or 100%; all else is right to half a percent."""
    text = units.show_gap(gap)
    assert (text == "0") == (gap == 0)
    assert (abs(float(text.rstrip("%"))) == 100) == (abs(gap) == 1)
    assert float(text.rstrip("%")) == pytest.approx(100 * gap, rel=0.051, abs=0.0)


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_parts_of_a_whole_never_round_to_all(part: int, whole: int) -> None:
    """999 of 1000 problems do not print as 100%, nor 1 as 0%."""
    share = min(part, whole) / whole
    assert (units.show_percent(share) == "100%") == (share == 1)
    assert (units.show_percent(share) == "0%") == (share == 0)


@given(st.integers(0, 10**15), st.integers(0, 10**15))
def test_shares_never_round_to_full(used: int, capacity: int) -> None:
    """Only a share met to the byte prints as 100%; a byte less or more does not."""
    text = units.show_share(used, capacity)
    assert (text == "100%") == (used == capacity and capacity > 0)
    if capacity == 0:
        assert text == ("over" if used else "–")


@pytest.mark.parametrize(
    ("ranks", "count", "text"),
    [([0, 1, 2, 3], 4, "all 4"), ([0], 1, "0"), ([3], 8, "3"), ([0, 1, 2, 5], 8, "0-2,5"),
     ([2, 2], 8, "2×2"), ([0, 0, 1, 1], 2, "0-1×2"), ([], 8, "–"), ([1, 0], 3, "0-1")],
)  # fmt: skip
def test_ranks(ranks: list[int], count: int, text: str) -> None:
    """Runs of ranks, with how often each is used."""
    assert units.show_ranks(ranks, count) == text


@given(st.text(max_size=60), st.integers(4, 40))
def test_shortened_text_fits(text: str, width: int) -> None:
    """It is never wider than asked, is unchanged if it fits, and keeps both ends."""
    short = units.shorten(text, width)
    assert len(short) <= width
    if len(text) <= width:
        assert short == text
    else:
        assert text.startswith(short.split("…")[0]) and "…" in short


@pytest.mark.parametrize(
    ("names", "width"),
    [
        ([f"model.sparse.ebc.table_{i}" for i in (17, 18, 1750)], 12),
        ([f"emb_{i}_of_a_long_and_common_name_weight" for i in range(12)], 14),
        (["a" * 30 + "x", "a" * 30 + "y", "b"], 8),
    ],
)
def test_names_stay_different(names: list[str], width: int) -> None:
    """Different names stay different when shortened, and fit."""
    cut = units.shorten_all(names, width)
    assert len(set(cut)) == len(names) and all(len(text) <= width for text in cut)
