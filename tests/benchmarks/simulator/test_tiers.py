"""The compiled tiers against the plain ones, and facts about them.

Which row a full bucket evicts first, while scores rise and rows come and go.

Published skew against the summary figures of its source.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.simulator.streams import LOOKUPS, REUSE, published, with_skew
from benchmarks.simulator.tiers import Shape, Step, Tiers
from milp_planner.inputs import Model
from milp_planner.inputs.access import Histogram, Zipf
from tests.benchmarks.simulator.oracle import Oracle

SHAPES = st.builds(
    Shape,
    mode=st.sampled_from(["HBM_ONLY", "HYBRID", "CACHING", "HOST_ONLY"]),
    hbm_slots=st.integers(1, 24),
    host_slots=st.integers(1, 24),
    frequency=st.booleans(),
    hbm_bucket=st.sampled_from([2, 4, 8]),
    host_bucket=st.sampled_from([2, 4]),
).map(lambda s: Shape("HOST_ONLY", 0, frequency=s.frequency) if s.mode == "HOST_ONLY" else s)
BATCHES = st.lists(st.lists(st.integers(0, 39), max_size=20), min_size=1, max_size=12)
IDS = st.lists(st.integers(0, 2**40), min_size=40, max_size=40, unique=True)


def as_counts(step: Step) -> dict[str, int]:
    """The oracle's counts for a table on one rank."""
    names = ("lookups", "unique", "hits", "unique_hits", "host_hits", "new")
    names += ("evicted", "dropped", "bypassed")
    return {name: int(getattr(step, name).sum()) for name in names}


def check(shape: Shape, batches: list[list[int]], ids: list[int]) -> None:
    """Tiers and oracle agree after every batch."""
    tiers, oracle = Tiers(shape, np.array(ids)), Oracle(shape)
    for batch in batches:
        step = tiers.step(np.array(batch, dtype=np.int64))
        assert as_counts(step) == oracle.step([ids[i] for i in batch])
        held = {ids[i] for i in tiers.in_hbm()}
        assert held == (oracle.hbm.keys() if shape.hbm_slots else set())
        host = oracle.host.keys() if shape.mode == "HYBRID" else oracle.seen - held
        if shape.mode != "HBM_ONLY":
            assert {ids[i] for i in tiers.on_host()} == host
        assert int(step.in_hbm.sum()) == len(held)
        on_host = oracle.seen if shape.mode in ("CACHING", "HOST_ONLY") else host
        assert int(step.on_host.sum()) == (0 if shape.mode == "HBM_ONLY" else len(on_host))


@given(SHAPES, BATCHES, IDS)
@settings(max_examples=150)
def test_every_batch_equals_the_oracle(
    shape: Shape, batches: list[list[int]], ids: list[int]
) -> None:
    """Hits, evictions, write-backs, losses and contents agree after every batch."""
    check(shape, batches, ids)


@given(SHAPES, st.integers(0, 2**32), st.floats(0.3, 2))
@settings(max_examples=40)
def test_long_runs_equal_the_oracle(shape: Shape, seed: int, skew: float) -> None:
    """A hundred skewed batches, in which scores grow old."""
    generator = np.random.default_rng(seed)
    weights = np.arange(1, 41) ** -skew
    batches = [
        generator.choice(40, generator.integers(1, 12), p=weights / weights.sum()).tolist()
        for _ in range(100)
    ]
    check(shape, batches, list(range(40)))


@given(st.integers(40, 150), st.integers(0, 2**32), st.booleans())
@settings(max_examples=20)
def test_batches_that_replace_many_equal_the_oracle(slots: int, seed: int, frequency: bool) -> None:
    """Large buckets of a cache lose tens of rows at a time, then one by one."""
    generator = np.random.default_rng(seed)
    weights = np.arange(1, 401) ** -0.6
    batches = [
        generator.choice(400, generator.choice([3, 30, 120]), p=weights / weights.sum()).tolist()
        for _ in range(60)
    ]
    check(Shape("CACHING", slots, 0, frequency, 64), batches, list(range(400)))


@given(SHAPES, BATCHES, st.integers(2, 4))
@settings(max_examples=40)
def test_ranks_are_tables_of_their_own(shape: Shape, batches: list[list[int]], ranks: int) -> None:
    """A table split over ranks behaves like one table per rank."""
    keys = np.arange(40)
    together = Tiers(shape, keys, keys % ranks, ranks)
    alone = [Tiers(shape, keys) for _ in range(ranks)]
    for batch in batches:
        lookups = np.array(batch, dtype=np.int64)
        step = together.step(lookups)
        parts = [alone[r].step(lookups[lookups % ranks == r]) for r in range(ranks)]
        for name in ("hits", "host_hits", "new", "evicted", "dropped", "in_hbm", "on_host"):
            assert getattr(step, name).tolist() == [int(getattr(p, name)[0]) for p in parts]


def test_steps_add_up() -> None:
    """Counts are summed, rows held are the last step's, and ratios come from the sums."""
    tiers = Tiers(Shape("CACHING", 4, hbm_bucket=4), np.arange(10))
    both = tiers.step(np.array([1, 1, 2])) + tiers.step(np.array([1, 2, 3, 3]))
    assert (both.hit_ratio, both.unique_hit_ratio) == (2 / 7, 2 / 5)
    assert both.unique_fraction == 5 / 7
    assert (int(both.in_hbm[0]), int(both.on_host[0])) == (3, 3)


@given(
    st.integers(1, 90),
    st.integers(1, 90),
    st.integers(0, 2**32),
    st.booleans(),
    st.booleans(),
    st.sampled_from([3, 100, 2**31 - 20]),
)
@settings(max_examples=150)
def test_the_lowest_scores_go_first(
    size: int, need: int, seed: int, cached: bool, frequency: bool, top: int
) -> None:
    """The lowest score, then the lowest slot, and never a protected row, which keeps its score."""
    from benchmarks.simulator.loops import COUNT, NEVER, STAMP, choose

    generator = np.random.default_rng(seed)
    score = COUNT if frequency else STAMP
    rows = np.zeros((size, 4), np.int32)
    rows[:, COUNT] = generator.integers(0, top, size)
    rows[:, STAMP] = generator.integers(28, 31, size)
    held = generator.permutation(size).astype(np.int32)
    before = rows[held, score].copy()
    protected = (rows[held, STAMP] == 30) & cached
    wanted = [slot for slot in np.lexsort((np.arange(size), before)) if not protected[slot]][:need]
    found, scores = np.empty(need, np.int64), before.copy()
    count = choose(rows, held, scores, 30 if cached else -1, score, need, found)
    assert found[:count].tolist() == wanted
    before[wanted] = NEVER
    assert scores.tolist() == before.tolist()


@pytest.mark.parametrize(("name", "reuse"), [("dlrm-2021", 7.6), ("dlrm-2022", 12.7)])
def test_mean_reuse_is_the_published_one(name: str, reuse: float) -> None:
    """Mean lookups per row over the classes are within 2% of the source's average."""
    bins = published(name).bins
    assert sum(r * m for (r, _), m in zip(bins, REUSE, strict=True)) == pytest.approx(
        reuse, rel=0.02
    )


def test_share_of_rows_is_the_published_one() -> None:
    """Of a 2022 batch's rows, 34.2%, 14.4% and 14.9% are looked up once, twice, 3–4 times."""
    rows = [r for r, _ in published("dlrm-2022").bins]
    assert rows[:3] == pytest.approx([0.342, 0.144, 0.149], abs=0.01)


def test_only_tables_without_statistics_take_it() -> None:
    """A table's own statistics are kept."""
    tables = [
        {"name": "a", "rows": 100, "dim": 8, "access": {"kind": "unknown", "unique_fraction": 0.5}},
        {"name": "b", "rows": 100, "dim": 8, "access": {"kind": "zipf", "alpha": 1.0}},
    ]
    model = Model.from_dict({"name": "m", "workload": {"batch_per_rank": 1}, "tables": tables})
    first, second = with_skew(model, "dlrm-2021").tables
    assert isinstance(first.access, Histogram)
    assert (first.access.unique_fraction, len(LOOKUPS)) == (0.5, 2)
    assert isinstance(second.access, Zipf)
