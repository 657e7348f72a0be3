"""Published plans recomputed, and priced as they stand on the page."""

import pytest

from benchmarks.fbgemm.profiles import pass_seconds
from benchmarks.publications import page
from benchmarks.publications.ids import access
from benchmarks.publications.planner import Setting, Sharding, auto, round_robin
from benchmarks.publications.pricing import (
    MODEL,
    WAYS,
    cluster,
    one_pass,
    pinned,
    priced,
    profile_of,
    published,
    sharding_of,
)
from milp_planner.inputs.access import Histogram
from scenarios import catalog

TABLES = catalog.find_model(MODEL).tables
ROWS = [table.rows for table in TABLES]
HOTNESS = [table.lookups_per_sample for table in TABLES]


@pytest.mark.parametrize(
    ("setting", "replicated", "split", "shards", "hottest"),
    [
        (Setting(8, 9, 0.008), 13, {20: 8, 21: 2}, 21, 26),
        (Setting(8, 11, 0.008), 13, {20: 8, 21: 2}, 21, 26),
        (Setting(8, 7, 0.008), 13, {20: 4}, 16, 27),
        (Setting(16, 9, 0.008), 13, {20: 8, 21: 2}, 21, 13.5),
        (Setting(64, 9, 0), 0, {20: 32, 21: 8, 9: 2, 11: 2, 14: 2, 19: 2, 22: 2}, 69, 6),
        (Setting(2, 67, 0.0125, 8), 14, {}, 96, 14.25),
        (Setting(4, 67, 0.0125, 8), 14, {20: 2}, 104, 7),
        (Setting(8, 67, 0.0125, 8), 14, {20: 4}, 120, 3.5),
        (Setting(16, 67, 0.0125, 8), 14, {20: 4, 21: 2}, 128, 3.1),
    ],
)
def test_the_planner_gives_the_counts_of_the_original(
    setting: Setting, replicated: int, split: dict[int, int], shards: int, hottest: float
) -> None:
    """Replicated tables, parts, shards and the busiest GPU's ids a sample, as the original run on
    these settings gives them (its ties may differ)."""
    found = auto(ROWS, HOTNESS, setting)
    assert len(found.replicated) == replicated
    assert {t: len(each) for t, each in enumerate(found.places) if len(each) > 1} == split
    assert found.shards(setting.gpus_a_place) == shards
    busiest = found.hottest(HOTNESS, setting.places) / setting.gpus_a_place
    assert busiest == pytest.approx(hottest, abs=0.05)


def test_loads_of_the_two_plans() -> None:
    """Ids a sample of every GPU, as reconstructed from the published settings."""
    whole = round_robin(26, 8).loads(HOTNESS, 8)
    assert whole == [6, 11, 5, 22, 107, 34, 20, 9]
    parts = auto(ROWS, HOTNESS, Setting(8, 9, 0.008)).loads(HOTNESS, 8)
    assert sorted(parts) == [21.5, 22.5, 23.5, 23.5, 23.5, 24.5, 26, 26]


def test_parts_go_to_different_places_that_hold_them() -> None:
    """No two parts of a table share a place, no place is over its cap, and without room there is
    no plan."""
    found = auto(ROWS, HOTNESS, Setting(8, 9, 0.008))
    assert all(len({*each}) == len(each) for each in found.places)
    with pytest.raises(ValueError, match="fits the cap"):
        auto(ROWS, HOTNESS, Setting(8, 9, 0.008), cap_gb=10)


def test_a_plan_becomes_pinned_tables() -> None:
    """Parts share rows and ids of their table; replicated tables are on every rank."""
    site = cluster("8xb200")
    plan = Sharding((1,), ((0, 3), (), *((2,) for _ in range(24))))
    model = pinned(plan, site, 8000, 1)
    assert model.workload.batch_per_rank == 1000
    halves = model.tables[:2]
    assert [t.rows for t in halves] == [20_000_000] * 2
    assert [t.pooling_factor for t in halves] == [1.5] * 2
    assert [t.constraints.pin.ranks for t in halves if t.constraints.pin] == [(0,), (3,)]
    pin = model.tables[2].constraints.pin
    assert pin is not None and pin.sharding_type == "data_parallel"


def test_phases_by_hand() -> None:
    """round_robin at 55,296 on B200: GPU 4 reads 107 rows a sample with their ids and writes three
    outputs of two bytes at 8 TB/s, twice as much backward; four tables' outputs leave GPUs 0 and 1
    at 900 GB/s, seven eighths of them."""
    row = {"system": "8xb200", "plan": "round_robin", "batch": 55_296}
    found, samples = priced(row, WAYS["data sheet"]), 55_296
    moved = samples * (107 * (512 + 8) + 3 * 256)
    assert found.phases["lookup"] == pytest.approx(moved / 8e12 * 1e3, rel=1e-6)
    assert found.phases["update"] == pytest.approx(2 * found.phases["lookup"], rel=1e-6)
    sent = samples * 4 * 256 * 7 / 8
    assert found.phases["exchange"] == pytest.approx(sent / 900e9 * 1e3, rel=1e-6)


def test_popularity_by_hand() -> None:
    """Zipf 1 over 4 one-hot ids, 3 rows each, of 24 rows: shares of lookups 12, 6, 4 and 3 of 25,
    of rows an eighth each, and half of the rows never read."""
    found = access(1.0, 4, 24, 3)
    assert [row for row, _ in found["bins"]] == pytest.approx([1 / 8] * 4 + [1 / 2])
    assert [n for _, n in found["bins"]] == pytest.approx([12 / 25, 6 / 25, 4 / 25, 3 / 25, 0])
    full = access(1.0, 4, 8, 3)  # 12 rows would be more than there are
    assert [row for row, _ in full["bins"]] == pytest.approx([1 / 4] * 4)


def test_popularities_of_all_tables_are_histograms() -> None:
    """Every published law gives shares that a model file may hold."""
    for number, law in published()["ids"].items():
        table = TABLES[number]
        Histogram.from_dict(access(*law, table.rows, table.lookups_per_sample))


def test_b200_takes_as_long_as_the_kernel_that_was_timed_on_both() -> None:
    """Work of the B200's profile is the H100's times the published pass over the one measured."""
    h100, b200 = (profile_of(cluster(name), fused=True).step for name in ("8xh100", "8xb200"))
    times = published()["one_pass"]["ms"] / 1e3 / pass_seconds()
    assert 0.42 < times < 1
    for optimizer in ("adagrad", "sgd"):
        mine, theirs = b200.update[optimizer], h100.update[optimizer]  # type: ignore[index]
        assert mine.byte_seconds == pytest.approx(times * theirs.byte_seconds, rel=1e-3)
        assert mine.start_seconds == theirs.start_seconds


def test_one_pass_by_hand() -> None:
    """Ten tables a rank, 262,144 samples of 30 ids: 1,024 bytes a row, ids and weights, and an
    output of 1,024 bytes a sample and table, at 8 TB/s."""
    ids = 10 * 262_144 * 30
    assert one_pass() == pytest.approx((ids * (1024 + 8) + 10 * 262_144 * 1024) / 8e9, rel=0.01)


def test_the_signs_and_the_size_of_the_difference() -> None:
    """At both batches auto is faster, and FBGEMM's tables with ids as published give a difference
    within 15% of the published one."""
    rows = published()["ab"]
    for first in (0, 2):
        theirs = rows[first]["ms"] - rows[first + 1]["ms"]
        slow, fast = (priced(row, WAYS[page.OURS]) for row in rows[first : first + 2])
        assert theirs / 1.15 < slow.step - fast.step < theirs * 1.15


def test_verdicts() -> None:
    """Neighbours within 2% of the published step are equal; the rest is right or wrong."""
    assert page.verdict([3, 2, 1], [9, 5, 5]) == "right; equal in ours, not published"
    assert page.verdict([1, 2], [2, 1]) == "wrong order"
    assert page.verdict([2, 2.01], [1, 3]) == "equal as published, not ours"
    assert page.verdict([2, 2.01], [0.52, 0.5]) == "equal in both"


def test_every_row_has_a_plan_with_a_shard_on_every_place() -> None:
    """The planner refuses a GPU without tables, so every recomputed plan has some on each."""
    for row in published()["mlperf"]:
        sharding, gpus = sharding_of(row)
        there = {place for each in sharding.places for place in each}
        assert len(there) == cluster(row["system"]).num_ranks // gpus


def test_the_page_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command would change nothing."""
    monkeypatch.setattr("sys.argv", ["page.py", "--check"])
    assert page.main() == 0
