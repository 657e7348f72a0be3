"""HYBRID if a batch has more rows than HBM holds, against the simulator and random draws."""

from __future__ import annotations

import numpy as np
import pytest

from milp_planner.features.simulate.streams import drawn
from milp_planner.features.simulate.tiers import Shape, Tiers
from milp_planner.pricing.hybrid import hybrid_hits, overfull_hits
from milp_planner.pricing.popularity import Popularity, zipf

ROWS = 10_240


def followed(
    known: Popularity, size: float, lookups: float, batch: float, frequency: bool
) -> float:
    """The formula for one size."""
    return float(overfull_hits(known, np.array([size]), lookups, batch, frequency)[0])


def simulated(alpha: float, slots: int, batch: int, batches: int, frequency: bool) -> float:
    """The share of the next batch's lookups that HBM serves; mean of two runs."""
    found = []
    for seed in (1, 2):
        generator = np.random.default_rng(seed)
        stream, ids = drawn(zipf(ROWS, alpha)), generator.permutation(ROWS)
        tiers = Tiers(Shape("HYBRID", slots, ROWS - slots, frequency), np.arange(ROWS))
        for _ in range(batches):
            tiers.step(ids[stream.draw(batch, generator)])
        found.append(tiers.step(ids[stream.draw(batch, generator)]).hit_ratio)
    return float(np.mean(found))


@pytest.mark.parametrize("frequency", [False, True])
def test_against_the_simulator_at_random(frequency: bool) -> None:
    """Drawn skews, sizes and batches with 1.2 to 4 times as many rows as HBM: errors ≤ 0.05."""
    generator = np.random.default_rng(5)
    errors: list[float] = []
    while len(errors) < 12:
        alpha, slots = generator.uniform(0, 1.8), 1024 * int(generator.integers(1, 9))
        batch = int(ROWS * 10 ** generator.uniform(-1, 0.5))
        known = zipf(ROWS, alpha)
        if not 1.2 * slots < known.distinct(batch) < 4 * slots:
            continue
        said = followed(known, slots, 10 * batch, batch, frequency)
        errors.append(abs(said - simulated(alpha, slots, batch, 10, frequency)))
    assert np.mean(errors) <= 0.01
    assert max(errors) <= 0.05


def test_one_batch_keeps_the_rows_that_come_first() -> None:
    """After a single huge batch HBM holds the winners of a race: exponential times over shares."""
    rows, size = 400, 80
    known, shares = zipf(rows, 1.1), np.arange(1, rows + 1) ** -1.1
    shares /= shares.sum()
    times = np.random.default_rng(0).exponential(size=(4000, rows)) / shares
    first = np.argsort(times, axis=1)[:, :size]
    said = [followed(known, size, 1e7, 1e7, frequency) for frequency in (False, True)]
    assert said == pytest.approx([shares[first].sum(axis=1).mean()] * 2, abs=0.01)


@pytest.mark.parametrize("frequency", [False, True])
def test_rows_all_alike(frequency: bool) -> None:
    """If rows are equally popular, HBM serves its share of them, whatever the batch."""
    for batch in (1e3, 3e4, 1e6):
        said = followed(zipf(10**5, 0.0), 2e4, 3e6, batch, frequency)
        assert said == pytest.approx(0.2, abs=2e-3)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.5])
@pytest.mark.parametrize("frequency", [False, True])
def test_it_meets_the_fluid(alpha: float, frequency: bool) -> None:
    """If half of HBM holds a batch, row by row and batch by batch agree within 0.02."""
    known, batch = zipf(10**5, alpha), 4000.0
    size = 2 * known.distinct(batch)
    fluid = hybrid_hits(known, size, 3e6, batch, frequency)
    assert followed(known, size, 3e6, batch, frequency) == pytest.approx(fluid, abs=0.02)


def test_sizes_together_are_those_one_by_one() -> None:
    """Steps follow the smallest size, which changes the others by less than 0.01."""
    known, sizes = zipf(10**5, 0.9), np.array([1e4, 3e4, 5e4])
    together = overfull_hits(known, sizes, 3e6, 1e5, False)
    alone = [followed(known, size, 3e6, 1e5, False) for size in sizes.tolist()]
    assert together == pytest.approx(alone, abs=0.01)


def test_lfu_keeps_popular_rows_that_lru_loses() -> None:
    """With batches just above HBM, LRU loses even the hottest rows, while LFU keeps them."""
    known = zipf(10**6, 1.2)
    lru, lfu = (followed(known, 1e5, 3e7, 1.7e6, frequency) for frequency in (False, True))
    assert lru < 0.1 < 0.8 < lfu
