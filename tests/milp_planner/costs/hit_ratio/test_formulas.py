"""Hit-ratio formulas against the simulator, a small cut of ``benchmarks/hit-ratio``."""

from __future__ import annotations

import numpy as np
import pytest

from milp_planner.costs.hit_ratio.caching import frequency_curve, recency_curve
from milp_planner.costs.hit_ratio.hybrid import hybrid_hits
from milp_planner.costs.popularity import zipf
from milp_planner.simulate.streams import drawn
from milp_planner.simulate.tiers import Shape, Tiers

ROWS, BATCH, PASSES = 10_240, 256, 12


def simulated(alpha: float, ratio: float, mode: str, frequency: bool) -> float:
    """Hit ratio of the last pass over as many lookups as rows."""
    pytest.importorskip("numba")
    generator = np.random.default_rng(1)
    stream, ids = drawn(zipf(ROWS, alpha)), generator.permutation(ROWS)
    slots = round(ROWS * ratio)
    tiers = Tiers(Shape(mode, slots, ROWS - slots, frequency), np.arange(ROWS))
    hits = asked = 0
    for batch in range(PASSES * ROWS // BATCH):
        step = tiers.step(ids[stream.draw(BATCH, generator)])
        if batch >= (PASSES - 1) * ROWS // BATCH:
            hits, asked = hits + int(step.hits[0]), asked + BATCH
    return hits / asked


@pytest.mark.parametrize("alpha", [0.4, 0.8, 1.2])
@pytest.mark.parametrize("ratio", [0.1, 0.5])
@pytest.mark.parametrize("frequency", [False, True])
def test_against_the_simulator(alpha: float, ratio: float, frequency: bool) -> None:
    """Both modes within 0.05 of the simulated hit ratio."""
    known = zipf(ROWS, alpha)
    curve = frequency_curve(known, BATCH) if frequency else recency_curve(known)
    said = {
        "CACHING": float(np.interp(ratio * ROWS, *curve)),
        "HYBRID": hybrid_hits(known, ratio * ROWS, ROWS * (PASSES - 0.5), BATCH, frequency),
    }
    for mode, value in said.items():
        assert value == pytest.approx(simulated(alpha, ratio, mode, frequency), abs=0.05)


def test_hybrid_by_recency_is_worse_than_a_cache() -> None:
    """Rows that come late are the rare ones; they push hot rows out, which never return."""
    hybrid = hybrid_hits(zipf(10**6, 0.4), 10**5, 3e7, 1000.0, False)
    cached = float(np.interp(10**5, *recency_curve(zipf(10**6, 0.4))))
    assert hybrid < 0.1 < cached


def test_lfu_caches_the_most_popular_rows() -> None:
    """With tiny batches a cache by frequency serves exactly the lookups of the rows it holds."""
    weights = np.arange(1, 10_001) ** -1.05
    found = np.interp([1000, 5000], *frequency_curve(zipf(10_000, 1.05), 1e-9))
    exact = np.cumsum(weights / weights.sum())[[999, 4999]]
    assert found == pytest.approx(exact, abs=2e-3)


def test_an_unfilled_tier_holds_every_row_seen() -> None:
    """Before HBM is full, what was seen is there: Σ p (1 − e^(−p t))."""
    known = zipf(1000, 1.2)
    seen = float((known.counts * known.shares * -np.expm1(-known.shares * 500)).sum())
    for frequency in (False, True):
        assert hybrid_hits(known, 999, 500.0, 10.0, frequency) == pytest.approx(seen)
