"""Drawn lookups follow their law; scattered ids are a permutation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from milp_planner.errors import BadInput
from milp_planner.features.simulate.streams import drawn, read_keys, scattered
from milp_planner.pricing.popularity import zipf


@pytest.mark.parametrize("alpha", [0.0, 0.7, 1.3])
def test_drawn_lookups_follow_the_law(alpha: float) -> None:
    """Shares of the hottest rows and of the rest agree with Zipf's law."""
    weights = np.arange(1, 2001, dtype=np.float64) ** -alpha
    found = drawn(zipf(2000, alpha)).draw(400_000, np.random.default_rng(0))
    shares = np.bincount(found, minlength=2000) / 400_000
    for rows in (1, 10, 64, 500, 2000):
        expected = weights[:rows].sum() / weights.sum()
        assert shares[:rows].sum() == pytest.approx(expected, abs=0.004)


def test_a_thinned_stream_keeps_its_shape() -> None:
    """With a tenth of the rows, the same share of rows gets the same share of lookups."""
    whole = drawn(zipf(100_000, 0.9))
    thin = whole.thinned(0.1)
    assert thin.rows == 10_000
    generator = np.random.default_rng(1)
    for share in (0.01, 0.2, 0.7):
        a = (whole.draw(200_000, generator) < share * 100_000).mean()
        assert (thin.draw(200_000, generator) < share * 10_000).mean() == pytest.approx(a, abs=0.01)


@given(st.integers(1, 600), st.integers(0, 50), st.data())
@settings(max_examples=60)
def test_scattered_ids_are_a_permutation(rows: int, seed: int, data: st.DataObject) -> None:
    """Every id occurs once, and known ids keep their places."""
    first = data.draw(st.lists(st.integers(0, rows - 1), max_size=min(rows, 6), unique=True))
    ids = scattered(np.arange(rows), rows, seed, first)
    assert sorted(ids.tolist()) == list(range(rows))
    assert ids[: len(first)].tolist() == first


def test_keys_come_from_files(tmp_path: Path) -> None:
    """Several files are read one after another; a file without a key is refused."""
    np.save(tmp_path / "a.npy", np.array([3, 1]))
    (tmp_path / "b.txt").write_text("7\n-2\n")
    assert read_keys([tmp_path / "a.npy", tmp_path / "b.txt"]).tolist() == [3, 1, 7, -2]
    (tmp_path / "c.txt").write_text("")
    with pytest.raises(BadInput, match="holds no key"):
        read_keys([tmp_path / "c.txt"])
