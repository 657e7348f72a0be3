"""Measured frequencies: what a curve of ranks and shares means for a table; shipped curves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from milp_planner.errors import BadInput
from milp_planner.inputs.access import Histogram, WorstBatch, bins_of_curve, curve_names, read_curve
from milp_planner.inputs.files import load_model
from milp_planner.inputs.table import Table
from milp_planner.pricing.hit_ratios import CachePolicy, hit_ratios
from milp_planner.pricing.popularity import distinct_rows, hot_share, popularity

HERE = Path()
ALL_KEYS, SMALL_KEYS = 882_774_559, 121_198
"""Keys of the logs, and of the 18 features with at most 39,060 values."""


def read(folder: Path, text: str, rows: int = 100) -> Table:
    """The table of a model file whose curve lies beside it."""
    (folder / "curve.csv").write_text(text)
    (folder / "model.yaml").write_text(
        "name: m\nworkload: {batch_per_rank: 8}\ntables:\n"
        f"  - {{name: t, rows: {rows}, dim: 8, kind: torchrec,\n"
        "     access: {kind: frequency, curve: curve.csv, unique_fraction: 0.5,\n"
        "       peak_skew: {max_over_mean: 3, ranks: 8, deduplication: after}}}\n"
    )
    return load_model(folder / "model.yaml").tables[0]


def test_classes_by_hand(tmp_path: Path) -> None:
    """Half of the lookups for one row, 0.3 for the next four, the rest for the other 95."""
    access = read(tmp_path, "rank,share\n1,0.5\n5,0.8\n").access
    assert isinstance(access, Histogram) and access.unique_fraction == 0.5
    assert access.peak_skew == WorstBatch(max_over_mean=3, ranks=8, deduplication="after")
    assert np.allclose(access.bins, [(0.01, 0.5), (0.04, 0.3), (0.95, 0.2)])


def test_a_smaller_table_keeps_the_most_popular() -> None:
    """Three rows with 0.5 and twice 0.075 of the lookups share all lookups."""
    found = bins_of_curve(((1, 0.5), (5, 0.8)), 3)
    assert np.allclose(found, [(1 / 3, 0.5 / 0.65), (2 / 3, 0.15 / 0.65)])


def test_the_rest_is_no_hotter_than_what_was_counted() -> None:
    """The one row left over for half of the lookups gets as many as the last counted row."""
    found = bins_of_curve(((2, 0.4), (4, 0.5)), 5)
    assert np.allclose(found, [(0.4, 0.4 / 0.55), (0.4, 0.1 / 0.55), (0.2, 0.05 / 0.55)])


@given(rows=st.integers(1, 2**40), name=st.sampled_from(curve_names()))
def test_any_table_size_has_falling_popularity(rows: int, name: str) -> None:
    """Shares sum to one, counts to the rows, and no class is hotter than the one before it."""
    bins = np.array(bins_of_curve(read_curve(name, HERE), rows))
    assert bins.sum(axis=0) == pytest.approx([1, 1])
    each = bins[:, 1] / bins[:, 0]
    assert (np.diff(each) <= each[:-1] * 2e-3).all()


def test_the_shipped_curve_is_the_measured_one() -> None:
    """The hottest 0.01, 0.1 and 1% of keys have 0.933, 0.968 and 0.983 of the lookups
    (spread66M)."""
    ranks, shares = np.array(read_curve("criteo", HERE)).T
    at = np.array([ALL_KEYS // 10_000, ALL_KEYS // 1000])
    assert np.interp(at, ranks, shares) == pytest.approx([0.933, 0.968], abs=0.002)
    assert shares[0] == pytest.approx(0.0332, abs=1e-4)
    assert shares[-1] == pytest.approx(1 - 28_614_745 / 1_708_195_441, abs=1e-5)


def test_the_large_features_have_at_least_so_much() -> None:
    """Their share never exceeds what all features have, less the lookups of the other 18 of 26 (six
    digits)."""
    ranks, shares = np.array(read_curve("criteo", HERE)).T
    large, least = np.array(read_curve("criteo-large", HERE)).T
    bound = (np.interp(8 * large, ranks, shares) - 18 / 26) / (8 / 26)
    assert (least <= bound + 2e-5).all()
    keys = (ALL_KEYS - SMALL_KEYS) / 8
    assert np.interp([keys / 1000, keys / 100], large, least) == pytest.approx(
        [0.90, 0.95], abs=0.01
    )


def test_everything_follows_the_curve() -> None:
    """Hit ratio, distinct rows and the hot rank are those of its classes, summed by hand."""
    table = Table.from_dict(
        {
            "name": "t",
            "rows": 40_000_000,
            "dim": 8,
            "access": {"kind": "frequency", "curve": "criteo"},
        }
    )
    known = popularity(table.access, table.rows)
    p, n = known.shares, known.counts
    assert p[0] == pytest.approx(0.03317, abs=1e-4) and n[0] == pytest.approx(1)
    assert hot_share(known, 64) >= p[0] + (1 - p[0]) / 64
    drawn = float((n * (1 - (1 - p) ** 65_536)).sum())
    assert distinct_rows(table.access, table.rows, 8192, 8) == pytest.approx(drawn, rel=1e-6)
    [hit] = hit_ratios(
        table.access, table.rows, np.array([0.1]), CachePolicy("CACHING", True, 65_536)
    ).values
    best = float(np.interp(4_000_000, np.cumsum(n), np.cumsum(n * p)))
    assert best - 0.005 < hit <= best + 1e-9


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("rank,part\n1,0.5\n", "allowed: the header rank,share"),
        ("rank,share\n", "has no ranks"),
        ("rank,share\n1,0.5\n1,0.6\n", r"curve\.csv:3: allowed: rising ranks"),
        ("rank,share\n1,0.5\n2,1.6\n", "shares rising up to 1"),
        ("rank,share\n1,0.1\n2,0.4\n", "shares of a row that fall with the rank"),
        ("rank,share\n1.5,0.1\n", "found 1.5,0.1; allowed: a whole rank and a share"),
    ],
)
def test_a_wrong_curve_is_one_sentence(tmp_path: Path, text: str, wrong: str) -> None:
    """It has file, line, and what is allowed."""
    with pytest.raises(BadInput, match=wrong):
        read(tmp_path, text)


def test_an_unknown_curve_gets_the_nearest_name() -> None:
    """The error gives the nearest shipped name; .csv files are allowed, too."""
    data = {
        "name": "t",
        "rows": 9,
        "dim": 8,
        "access": {"kind": "frequency", "curve": "criteo-larg"},
    }
    with pytest.raises(BadInput, match=r"did you mean 'criteo-large'\?; allowed: a \.csv file"):
        Table.from_dict(data)
