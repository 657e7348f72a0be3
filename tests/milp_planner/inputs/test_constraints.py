"""Ratio grids, limits and pins."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from milp_planner.errors import BadInput
from milp_planner.inputs.constraints import TENTHS, Constraints, PinSpec


def test_tenths() -> None:
    """The default grid is the nine proper tenths."""
    assert tuple(Fraction(i, 10) for i in (1, 2, 3, 4, 5, 6, 7, 8, 9)) == TENTHS


@pytest.mark.parametrize(
    ("written", "count"), [("tenths", 9), ("twentieths", 19), ("fiftieths", 49), ("hundredths", 99)]
)
def test_named_grids(written: str, count: int) -> None:
    """A named grid has every proper fraction of its kind."""
    grid = Constraints.from_dict({"cache_ratios": written}).cache_ratios
    assert grid is not None
    assert len(grid) == len(set(grid)) == count
    assert min(grid) == 1 - max(grid) == Fraction(1, count + 1)


def test_grid_is_sorted() -> None:
    """A grid in any order and notation is read as ascending exact ratios."""
    read = Constraints.from_dict({"cache_ratios": [0.5, "1/3", "10%"]})
    assert read.cache_ratios == (Fraction(1, 10), Fraction(1, 3), Fraction(1, 2))


def test_single_names_stand_for_lists() -> None:
    """One mode or sharding type needs no brackets."""
    read = Constraints.from_dict({"modes": "CACHING", "sharding_types": "row_wise"})
    assert read.modes == ("CACHING",)
    assert read.sharding_types == ("row_wise",)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"cache_ratios": [0, 0.5]}, r"cache_ratios\[0\]: found 0; allowed: above 0"),
        ({"cache_ratios": [1]}, r"cache_ratios\[0\]: found 1; allowed: below 1"),
        ({"cache_ratios": [0.5, "1/2"]}, r"cache_ratios: a ratio is listed twice"),
        ({"cache_ratios": []}, r"cache_ratios: found 0 entries; allowed: at least 1"),
        ({"cache_ratios": "eighths"}, r"cache_ratios: found 'eighths'; allowed: tenths"),
        ({"modes": ["hybrid"]}, r"modes\[0\]: found 'hybrid'; .*did you mean HYBRID\?"),
        ({"modes": []}, r"modes: found 0 entries"),
        ({"column_widths": [0]}, r"column_widths\[0\]: found 0; allowed: at least 1"),
        ({"ranks": [-1]}, r"ranks\[0\]: found -1; allowed: at least 0"),
        (
            {"modes": "HBM_ONLY", "pin": {"mode": "CACHING"}},
            r"pin\.mode: found CACHING, which the other constraints exclude; allowed: HBM_ONLY",
        ),
        (
            {"cache_ratios": [0.5], "pin": {"cache_ratio": 0.2}},
            r"pin\.cache_ratio: found 1/5, which the other constraints",
        ),
        (
            {"ranks": [0], "pin": {"ranks": [1]}},
            r"pin\.ranks: found rank 1, which the list of ranks excludes",
        ),
        (
            {"pin": {"mode": "HBM_ONLY", "cache_ratio": 0.5}},
            r"pin\.cache_ratio: needs CACHING, HYBRID or SSD, found HBM_ONLY",
        ),
        ({"pin": {"dist_type": "round"}}, r"pin\.dist_type: .*did you mean roundrobin\?"),
    ],
)
def test_mistakes(data: dict[str, Any], sentence: str) -> None:
    """Each contradiction gets one sentence that names the field."""
    with pytest.raises(BadInput, match=f"^{sentence}"):
        Constraints.from_dict(data)


def test_consistent_pin_is_kept() -> None:
    """A pin the limits allow is read as written; a rank may hold several shards."""
    read = Constraints.from_dict(
        {"modes": ["CACHING"], "ranks": [0, 1], "pin": {"mode": "CACHING", "ranks": [1, 1]}}
    )
    assert read.pin == PinSpec(mode="CACHING", ranks=(1, 1))
