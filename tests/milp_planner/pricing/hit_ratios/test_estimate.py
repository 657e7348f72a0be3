"""Which source a hit ratio comes from, and that pricing's short cuts equal the formulas.

HYBRID if a batch has more rows than HBM holds, against the simulator and random draws.

UGache's solver logs: their own arithmetic, and the hit ratios of UGache's synthetic traces.

Hit-ratio formulas against the simulator: a short version of ``benchmarks/hit-ratio``.
"""

import csv
from collections.abc import Callable
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from benchmarks.simulator.streams import drawn
from benchmarks.simulator.tiers import Shape, Step, Tiers
from milp_planner.inputs.access import Histogram, MissRate, Unknown, Zipf
from milp_planner.pricing.hit_ratios import (
    CacheCurve,
    CachePolicy,
    frequency_curve,
    hit_ratios,
    overflow_curve,
    recency_curve,
    unique_hit_ratios,
)
from milp_planner.pricing.hybrid import HORIZON, grid, hybrid_hits, overfull_hits
from milp_planner.pricing.popularity import Popularity, zipf

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


@pytest.mark.parametrize(
    ("alpha", "rows", "ratios", "most"),
    [
        *((alpha, 300_000, [0.15, 0.5, 0.85], 0.015) for alpha in (0.33, 0.87, 1.24)),
        *((alpha, 10**6, [0.02, 0.03], 0.01) for alpha in (0.6, 1.2, 1.8)),
    ],
)
@pytest.mark.parametrize("frequency", [False, True])
def test_the_stored_fluid_equals_the_fluid(
    alpha: float, rows: int, ratios: list[float], most: float, frequency: bool
) -> None:
    """Stored values are near those of the fluid model, between grid points and for small tiers."""
    policy, known = CachePolicy("HYBRID", frequency, rows / 100), zipf(rows, alpha)
    stored = hit_ratios(Zipf(kind="zipf", alpha=alpha), rows, np.array(ratios), policy).values
    exact = [hybrid_hits(known, x * rows, HORIZON * rows, rows / 100, frequency) for x in ratios]
    assert stored == pytest.approx(exact, abs=most)


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
    """A formula follows it whatever the skew: HYBRID loses hot rows for good, a cache recovers."""
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


ROWS = 10_240


def followed(
    known: Popularity, size: float, lookups: float, batch: float, frequency: bool
) -> float:
    """The formula for one size."""
    return float(overfull_hits(known, np.array([size]), lookups, batch, frequency)[0])


def simulated(
    alpha: float, shape: Shape, batch: int, before: int, counted: int = 1, seed: int = 1
) -> Step:
    """What HBM serves of some batches, after those before."""
    generator = np.random.default_rng(seed)
    stream, ids = drawn(zipf(ROWS, alpha)), generator.permutation(ROWS)
    tiers = Tiers(shape, np.arange(ROWS))
    steps = [tiers.step(ids[stream.draw(batch, generator)]) for _ in range(before + counted)]
    return reduce(add, steps[before:])


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
        shape = Shape("HYBRID", slots, ROWS - slots, frequency)
        runs = [simulated(alpha, shape, batch, 10, seed=seed).hit_ratio for seed in (1, 2)]
        errors.append(abs(said - np.mean(runs)))
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


HOST = {"A": 350 / 11, "B": 350 / 3.4, "C": 730 / 8}
"""Time of a read from the host over that of one from local memory, by server."""
NEAR, FAR = 350 / 38, 730 / 30
TABLE = 8_000_000
"""Keys of each of the 100 tables of its synthetic traces."""


def solves(shared_data: Path) -> list[dict[str, Any]]:
    """The solves of the synthetic traces for which no solver was used."""
    text = (shared_data / "criteo-frequency" / "ugache-solver.csv").read_text()
    rows = csv.DictReader(text.splitlines())
    return [r for r in rows if r["dataset"].startswith("SYN") and r["policy"] != "CollAsymm"]


def test_the_cost_of_a_policy_is_its_reads_by_source(shared_data: Path) -> None:
    """Local, remote and host reads at the published ratios sum to the logged objective, to 0.1%, if
    links are equal (servers A and C)."""
    compared = 0
    for row in solves(shared_data):
        if row["server"] == "B" and row["policy"] != "Rep":
            continue
        remote = FAR if row["server"] == "C" else NEAR
        times = {"local_rate": 1.0, "remote_rate": remote, "cpu_rate": HOST[row["server"]]}
        reads = sum(float(row[rate]) * time for rate, time in times.items())
        priced = float(row["sum_weight"]) * reads
        assert priced == pytest.approx(float(row["objective"]), rel=1e-3), row
        compared += 1
    assert compared >= 8


@pytest.mark.parametrize(("dataset", "alpha"), [("SYN", 1.2), ("SYN_14", 1.4)])
def test_hit_ratios_of_its_traces(shared_data: Path, dataset: str, alpha: float) -> None:
    """A replicated cache of the hottest keys serves Zipf's share within half a point, since a trace
    is a sample of that law."""
    known = zipf(TABLE, alpha)
    ends, served = np.cumsum(known.counts), np.cumsum(known.counts * known.shares)
    rows = [r for r in solves(shared_data) if (r["dataset"], r["policy"]) == (dataset, "Rep")]
    assert len(rows) >= 2
    for row in rows:
        hits = float(np.interp(float(row["cache_rate"]) * TABLE, ends, served))
        assert hits == pytest.approx(float(row["local_rate"]), abs=5e-3)


BATCH, PASSES = 256, 12


def simulated_hits(
    alpha: float, ratio: float, mode: str, frequency: bool, batch: int = BATCH
) -> Step:
    """The last pass over as many lookups as rows, or four batches; the third of larger batches."""
    slots = round(ROWS * ratio)
    before, counted = (PASSES - 1) * ROWS // batch, max(ROWS // batch, 4)
    if batch > ROWS:
        before, counted = 2, 1
    return simulated(alpha, Shape(mode, slots, ROWS - slots, frequency), batch, before, counted)


@pytest.mark.parametrize("alpha", [0.4, 0.8, 1.2])
@pytest.mark.parametrize("ratio", [0.1, 0.5])
@pytest.mark.parametrize("frequency", [False, True])
def test_against_the_simulator(alpha: float, ratio: float, frequency: bool) -> None:
    """Both modes are within 0.05 of the simulated hit ratio, as is a cache for distinct rows."""
    known, size = zipf(ROWS, alpha), np.array([ratio * ROWS])
    curve = (frequency_curve if frequency else recency_curve)(known, BATCH)
    cache = simulated_hits(alpha, ratio, "CACHING", frequency)
    assert curve.hits_at(size) == pytest.approx(cache.hit_ratio, abs=0.05)
    assert curve.unique_at(size) == pytest.approx(cache.unique_hit_ratio, abs=0.05)
    said = hybrid_hits(known, ratio * ROWS, ROWS * (PASSES - 0.5), BATCH, frequency)
    found = simulated_hits(alpha, ratio, "HYBRID", frequency).hit_ratio
    assert said == pytest.approx(found, abs=0.05)


@pytest.mark.parametrize("alpha", [0.4, 0.8, 1.2])
@pytest.mark.parametrize("frequency", [False, True])
def test_batches_that_overfill_a_cache(alpha: float, frequency: bool) -> None:
    """A tenth of the rows, batches of 1 and 15 lookups per row: within 0.01 for either score."""
    for batch, batches in ((ROWS, PASSES), (15 * ROWS, 2)):
        curve = overflow_curve(zipf(ROWS, alpha), np.array([0.1 * ROWS]), batch, batches)
        cache = simulated_hits(alpha, 0.1, "CACHING", frequency, batch)
        assert curve.hits[0] == pytest.approx(cache.hit_ratio, abs=0.01)
        assert curve.unique[0] == pytest.approx(cache.unique_hit_ratio, abs=0.01)


@pytest.mark.parametrize("follow", [frequency_curve, recency_curve])
def test_overfull_and_larger_caches_meet(follow: Callable[..., CacheCurve]) -> None:
    """At the size of the batch's distinct rows, by all formulas a cache holds the last batch."""
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
