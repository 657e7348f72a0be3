"""Hit-ratio formulas against the simulator: a short version of ``benchmarks/hit-ratio``."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add

import numpy as np
import pytest

from milp_planner.features.simulate.streams import drawn
from milp_planner.features.simulate.tiers import Shape, Step, Tiers
from milp_planner.pricing.hit_ratios import (
    CacheCurve,
    frequency_curve,
    overflow_curve,
    recency_curve,
)
from milp_planner.pricing.hybrid import hybrid_hits
from milp_planner.pricing.popularity import zipf

ROWS, BATCH, PASSES = 10_240, 256, 12


def simulated(alpha: float, ratio: float, mode: str, frequency: bool, batch: int = BATCH) -> Step:
    """The last pass over as many lookups as rows, or four batches; the third of larger batches."""
    generator = np.random.default_rng(1)
    stream, ids = drawn(zipf(ROWS, alpha)), generator.permutation(ROWS)
    slots = round(ROWS * ratio)
    tiers = Tiers(Shape(mode, slots, ROWS - slots, frequency), np.arange(ROWS))
    before, counted = (PASSES - 1) * ROWS // batch, max(ROWS // batch, 4)
    if batch > ROWS:
        before, counted = 2, 1
    for _ in range(before):
        tiers.step(ids[stream.draw(batch, generator)])
    steps = [tiers.step(ids[stream.draw(batch, generator)]) for _ in range(counted)]
    return reduce(add, steps)


@pytest.mark.parametrize("alpha", [0.4, 0.8, 1.2])
@pytest.mark.parametrize("ratio", [0.1, 0.5])
@pytest.mark.parametrize("frequency", [False, True])
def test_against_the_simulator(alpha: float, ratio: float, frequency: bool) -> None:
    """Both modes are within 0.05 of the simulated hit ratio, and so is a cache for distinct
    rows."""
    known, size = zipf(ROWS, alpha), np.array([ratio * ROWS])
    curve = (frequency_curve if frequency else recency_curve)(known, BATCH)
    cache = simulated(alpha, ratio, "CACHING", frequency)
    assert curve.hits_at(size) == pytest.approx(cache.hit_ratio, abs=0.05)
    assert curve.unique_at(size) == pytest.approx(cache.unique_hit_ratio, abs=0.05)
    said = hybrid_hits(known, ratio * ROWS, ROWS * (PASSES - 0.5), BATCH, frequency)
    found = simulated(alpha, ratio, "HYBRID", frequency).hit_ratio
    assert said == pytest.approx(found, abs=0.05)


@pytest.mark.parametrize("alpha", [0.4, 0.8, 1.2])
@pytest.mark.parametrize("frequency", [False, True])
def test_batches_that_overfill_a_cache(alpha: float, frequency: bool) -> None:
    """A tenth of the rows, batches of 1 and 15 lookups per row: within 0.01 for either score."""
    for batch, batches in ((ROWS, PASSES), (15 * ROWS, 2)):
        curve = overflow_curve(zipf(ROWS, alpha), np.array([0.1 * ROWS]), batch, batches)
        cache = simulated(alpha, 0.1, "CACHING", frequency, batch)
        assert curve.hits[0] == pytest.approx(cache.hit_ratio, abs=0.01)
        assert curve.unique[0] == pytest.approx(cache.unique_hit_ratio, abs=0.01)


@pytest.mark.parametrize("follow", [frequency_curve, recency_curve])
def test_overfull_and_larger_caches_meet(follow: Callable[..., CacheCurve]) -> None:
    """At the size of the batch's distinct rows, all formulas agree that a cache holds the last
    batch."""
    known = zipf(10**5, 0.8)
    size = np.array([known.distinct(1e4)])
    full, other = overflow_curve(known, size, 1e4, 300), follow(known, 1e4)
    assert full.hits == pytest.approx(other.hits_at(size), abs=2e-3)
    assert full.unique == pytest.approx(other.unique_at(size), abs=2e-3)


def test_hybrid_by_recency_is_worse_than_a_cache() -> None:
    """Late rows are the rare ones; they push out hot rows, which never return."""
    hybrid = hybrid_hits(zipf(10**6, 0.4), 10**5, 3e7, 1000.0, False)
    cached = float(recency_curve(zipf(10**6, 0.4), 1000.0).hits_at(np.array(1e5)))
    assert hybrid < 0.1 < cached


def test_lfu_caches_the_most_popular_rows() -> None:
    """With tiny batches, an LFU cache serves exactly the lookups of the most popular rows."""
    weights = np.arange(1, 10_001) ** -1.05
    found = frequency_curve(zipf(10_000, 1.05), 1e-9).hits_at(np.array([1000, 5000]))
    exact = np.cumsum(weights / weights.sum())[[999, 4999]]
    assert found == pytest.approx(exact, abs=2e-3)


def test_an_unfilled_tier_holds_every_row_seen() -> None:
    """Until HBM is full, it holds every row seen: Σ p (1 − e^(−p t))."""
    known = zipf(1000, 1.2)
    seen = float((known.counts * known.shares * -np.expm1(-known.shares * 500)).sum())
    for frequency in (False, True):
        assert hybrid_hits(known, 999, 500.0, 10.0, frequency) == pytest.approx(seen)
