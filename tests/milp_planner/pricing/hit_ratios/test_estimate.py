"""Which source a hit ratio comes from, and that pricing's short cuts equal the formulas."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from milp_planner.inputs.access import Histogram, MissRate, Unknown, Zipf
from milp_planner.pricing.hit_ratios import CachePolicy, hit_ratios, unique_hit_ratios
from milp_planner.pricing.hybrid import HORIZON, grid, hybrid_hits
from milp_planner.pricing.popularity import zipf

CACHE, HYBRID = CachePolicy("CACHING", False, 100.0), CachePolicy("HYBRID", False, 100.0)


def test_without_statistics_the_cache_ratio() -> None:
    """If rows are equally popular, a tier of x of the rows serves x of the lookups."""
    found = hit_ratios(Unknown(), 10**6, np.array([0.3]), CACHE)
    assert (found.values.tolist(), found.sources) == ([0.3], ("none",))
    for policy in (CACHE, HYBRID):
        even = hit_ratios(Zipf(kind="zipf", alpha=0.0), 10**4, np.array([0.3]), policy)
        assert float(even.values[0]) == pytest.approx(0.3, abs=0.01)


def test_a_measured_curve_is_used_as_it_is() -> None:
    """Straight lines between the points, in units of the rows for which it was measured."""
    curve = MissRate(kind="miss_rate", points=((0.2, 0.5), (1.0, 0.1)), working_rows=500)
    found = hit_ratios(curve, 1000, np.array([0.05, 0.1, 0.3, 1.0]), HYBRID)
    assert found.values == pytest.approx([0.25, 0.5, 0.7, 0.9])
    assert set(found.sources) == {"curve"}


@pytest.mark.parametrize("alpha", [0.33, 0.87, 1.24])
@pytest.mark.parametrize("frequency", [False, True])
def test_the_stored_fluid_equals_the_fluid(alpha: float, frequency: bool) -> None:
    """Between grid points, stored values are within 0.015 of the fluid model."""
    rows, ratios = 300_000, np.array([0.15, 0.5, 0.85])
    policy = CachePolicy("HYBRID", frequency, 3000.0)
    stored = hit_ratios(Zipf(kind="zipf", alpha=alpha), rows, ratios, policy).values
    exact = [
        hybrid_hits(zipf(rows, alpha), x * rows, HORIZON * rows, 3000.0, frequency) for x in ratios
    ]
    assert stored == pytest.approx(exact, abs=0.015)


@pytest.mark.parametrize("mode", ["CACHING", "HYBRID"])
def test_only_extreme_skew_uses_the_simulated_table(mode: Literal["CACHING", "HYBRID"]) -> None:
    """Alpha 2.5 is outside the formulas' region, tiny tiers and alpha 4 were never checked."""
    ratios = np.array([0.0, 0.001, 0.1, 0.9, 1.0])
    for alpha, source in ((0.8, "formula"), (2.5, "table"), (4.0, "unchecked")):
        access = Zipf(kind="zipf", alpha=alpha)
        found = hit_ratios(access, 10**5, ratios, CachePolicy(mode, False, 1e3))
        assert found.sources == (source, "unchecked", source, source, source)
        assert (np.diff(found.values) >= -1e-3).all()
        assert found.values[[0, -1]] == pytest.approx([0, 1])


@pytest.mark.parametrize(("alpha", "batch", "other"), [(0.9, 1e5, "formula"), (2.5, 1e9, "table")])
def test_a_batch_that_overfills_hybrid_is_followed(alpha: float, batch: float, other: str) -> None:
    """A formula follows it whatever the skew: HYBRID loses popular rows for good, a cache
    recovers."""
    access, ratios = Zipf(kind="zipf", alpha=alpha), np.array([0.02, 0.95])
    hybrid = hit_ratios(access, 10**5, ratios, CachePolicy("HYBRID", False, batch))
    cache = hit_ratios(access, 10**5, ratios, CachePolicy("CACHING", False, batch))
    assert (hybrid.sources, cache.sources) == (("formula", other), (other, other))
    assert hybrid.values[0] < 0.05 < 0.2 < cache.values[0]


def test_other_statistics_are_followed_batch_by_batch() -> None:
    """A histogram equal to Zipf's law gets the same hit ratio in overfull batches."""
    known, ratios = zipf(10**5, 0.9), np.array([0.1, 0.3])
    bins = tuple((c / 10**5, c * s) for c, s in zip(known.counts, known.shares, strict=True))
    access, policy = Histogram(kind="histogram", bins=bins), CachePolicy("HYBRID", False, 1e5)
    zipf_hits = hit_ratios(Zipf(kind="zipf", alpha=0.9), 10**5, ratios, policy).values
    assert hit_ratios(access, 10**5, ratios, policy).values == pytest.approx(zipf_hits, abs=1e-6)


@pytest.mark.parametrize("alpha", [0.6, 1.2, 1.8])
@pytest.mark.parametrize("frequency", [False, True])
def test_small_tiers_follow_the_fluid(alpha: float, frequency: bool) -> None:
    """HYBRID at 2% and 3% of the rows is within 0.01 of the fluid model."""
    ratios, policy = np.array([0.02, 0.03]), CachePolicy("HYBRID", frequency, 1e4)
    stored = hit_ratios(Zipf(kind="zipf", alpha=alpha), 10**6, ratios, policy).values
    known = zipf(10**6, alpha)
    exact = [hybrid_hits(known, x * 1e6, HORIZON * 1e6, 1e4, frequency) for x in ratios]
    assert stored == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("alpha", [0.0, 0.8, 1.6])
@pytest.mark.parametrize("frequency", [False, True])
def test_distinct_rows_hit_less_than_lookups(alpha: float, frequency: bool) -> None:
    """Less in batches of any size; the same in batches of one and for equally popular rows."""
    access, ratios = Zipf(kind="zipf", alpha=alpha), np.linspace(0, 1, 21)
    for batch in (1.0, 1e3, 1e5, 1e6):
        policy = CachePolicy("CACHING", frequency, batch)
        hits = hit_ratios(access, 10**5, ratios, policy).values
        unique = unique_hit_ratios(access, 10**5, ratios, policy)
        assert (unique <= hits + 1e-9).all()
        assert (np.diff(unique) > 0).all()
        if batch == 1 or alpha == 0:
            assert unique == pytest.approx(hits, abs=1e-3)
    measured = MissRate(kind="miss_rate", points=((0.2, 0.5), (1.0, 0.1)))
    assert unique_hit_ratios(Unknown(), 10**5, ratios, CACHE) == pytest.approx(ratios)
    assert unique_hit_ratios(measured, 10**5, ratios, CACHE) == pytest.approx(
        hit_ratios(measured, 10**5, ratios, CACHE).values
    )


def test_other_statistics_are_followed_one_by_one() -> None:
    """If 1% of the rows have 90% of the lookups, a cache keeps them all, HYBRID not quite."""
    access = Histogram(kind="histogram", bins=((0.01, 0.9), (0.99, 0.1)))
    cached = hit_ratios(access, 10**5, np.array([0.1, 1.0]), CACHE).values
    hybrid = hit_ratios(access, 10**5, np.array([0.1, 1.0]), HYBRID).values
    assert cached[1] == hybrid[1] == pytest.approx(1)
    assert 0.8 < hybrid[0] < cached[0]


def test_interpolation_meets_the_grid() -> None:
    """At a grid point the value is the stored one; outside the grid it stays constant."""
    stored = grid("hybrid.json", "lru")
    at = stored.at((stored.axes[0][7], stored.axes[1][2]), stored.axes[2])
    assert at == pytest.approx(stored.values[7, 2])
    assert stored.at((9.0, 99.0), np.array([0.4])) == pytest.approx(stored.values[-1, -1, 5])
