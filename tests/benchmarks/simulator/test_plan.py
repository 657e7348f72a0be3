"""A whole plan: predicted and simulated figures.

Loads of every rank: ids and hot ranks.
"""

from typing import Any

import numpy as np
import pytest

from benchmarks.simulator import one_table as table
from benchmarks.simulator.whole import SimulationInfo, simulate_plan
from milp_planner import plan
from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.plans.placement import Plan
from tests.cuda_routing.test_rules import plain_fmix64

DYN = {"dim": 16, "kind": "dynamicemb", "pooling_factor": 8}
TABLES = [
    {"name": "hybrid", "rows": 10_240, **DYN, "access": {"kind": "zipf", "alpha": 0.9},
     "constraints": {"modes": "HYBRID", "cache_ratios": [0.4]}},
    {"name": "cache", "rows": 10_240, **DYN, "access": {"kind": "zipf", "alpha": 1.0},
     "score_strategy": "lfu", "constraints": {"modes": "CACHING", "cache_ratios": [0.2]}},
    {"name": "hot", "rows": 5_000, **DYN,
     "access": {"kind": "top_ids", "ids": [{"share": 0.4, "id": 4}]},
     "constraints": {"modes": "HOST_ONLY"}},
    {"name": "items", "rows": 5_000, "dim": 16, "output": "sequence", "sequence_length": 20,
     "access": {"kind": "zipf", "alpha": 1.2}, "constraints": {"sharding_types": "row_wise"}},
    {"name": "large", "rows": 10**8, **DYN, "access": {"kind": "zipf", "alpha": 1.0},
     "constraints": {"modes": "CACHING", "cache_ratios": [0.1]}},
]  # fmt: skip

CLUSTER = {
    "name": "c", "profile": "h100", "machines": 1, "ranks_per_machine": 2, "hbm": "80GiB",
    "ddr": "2TB", "interconnect": {"intra_machine": "450GB/s"},
}  # fmt: skip


@pytest.fixture(scope="module")
def placed() -> Plan:
    """Five tables on two ranks that cover every mode; ids are exchanged once per batch."""
    model = Model.from_dict(
        {
            "name": "m",
            "workload": {"batch_per_rank": 256, "dedup": True, "fusion": "free"},
            "tables": TABLES,
        }
    )
    return plan(model, Cluster.from_dict(CLUSTER), formulation="greedy")


@pytest.fixture(scope="module")
def info(placed: Plan) -> SimulationInfo:
    """Ten steps; the largest table is simulated on a sample of 10,240 rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "MAX_ROWS", 10_240)
        return simulate_plan(placed, 10, 3)


def test_hit_ratios_are_those_predicted(info: SimulationInfo) -> None:
    """Both tiered modes, and a table of 10⁸ rows on a sample, agree within 0.05."""
    for name in ("hybrid", "cache", "large"):
        row = next(t for t in info.tables if t.name == name)
        assert row.hit == pytest.approx(row.predicted_hit, abs=0.05)
        assert row.hit_source == "formula"
        assert (row.sampled < 1) == (name == "large")


def test_hot_ids_load_the_rank_that_owns_them(info: SimulationInfo) -> None:
    """Id 4 puts 40% of the lookups on rank 0: 1.4 times the mean."""
    row = next(t for t in info.tables if t.name == "hot")
    assert row.predicted_hot == pytest.approx(1.4)
    assert row.hot == pytest.approx(1.4, abs=0.05)
    assert row.hot_peak >= row.hot


def test_deduplicated_exchange_is_the_one_predicted(info: SimulationInfo) -> None:
    """Ids of the busiest rank after de-duplication agree within 5%."""
    row = next(t for t in info.tables if t.name == "items")
    assert row.ids == pytest.approx(row.predicted_ids, rel=0.05)
    assert row.ids < 256 * 20


def test_unique_fraction_is_the_one_predicted(info: SimulationInfo) -> None:
    """Distinct rows of a global batch agree within 3% where all rows were simulated."""
    whole = [row for row in info.tables if row.sampled == 1]
    assert whole
    for row in whole:
        assert row.unique_fraction == pytest.approx(row.predicted_unique_fraction, rel=0.03)


def test_rows_held_stay_within_the_plan(info: SimulationInfo) -> None:
    """No rank holds more rows than its slots; growth is listed for each batch."""
    for row in info.tables:
        assert row.held <= row.predicted_slots * 1.01 or row.mode == "HOST_ONLY"
        assert len(row.growth) == len(row.hot_over_time) == 10


def test_arrays_lose_no_row(info: SimulationInfo) -> None:
    """A TorchRec table in HBM has a slot for each of its rows; hash tables do not."""
    row = next(t for t in info.tables if t.name == "items")
    assert (row.mode, row.lost, row.evicted) == ("HBM_ONLY", 0, 0)
    assert 2000 < row.held <= row.predicted_slots == 2500


def test_the_same_seed_gives_the_same(placed: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs with one seed are equal, and another seed gives others."""
    monkeypatch.setattr(table, "MAX_ROWS", 1024)
    one, again, other = (simulate_plan(placed, 2, seed) for seed in (4, 4, 5))
    assert one.to_dict() == again.to_dict()
    assert one.rank_ids != other.rank_ids


def test_a_trace_is_replayed(placed: Plan) -> None:
    """One key repeated: a hit whenever it was seen before, all on the rank that owns it."""
    keys = np.full(20 * 2 * 256 * 8, 7)
    row = next(t for t in simulate_plan(placed, 4, 0, {"cache": keys}).tables if t.name == "cache")
    assert (row.hit, row.hot, len(row.growth)) == (1.0, 2.0, 4)


def test_bad_traces_are_refused(placed: Plan) -> None:
    """An unknown table, or fewer keys than two batches."""
    with pytest.raises(BadInput, match="no table 'nowhere' in the plan"):
        simulate_plan(placed, 4, 0, {"nowhere": np.zeros(9, np.int64)})
    with pytest.raises(BadInput, match="at least two batches of 4,096"):
        simulate_plan(placed, 4, 0, {"hybrid": np.zeros(4096, np.int64)})


def test_series_add_up_to_the_means(info: SimulationInfo) -> None:
    """One value per step of hits, evicted rows and the hot rank."""
    for row in info.tables:
        assert len(row.hit_over_time) == (10 if row.hit is not None else 0)
        assert np.mean(row.evicted_over_time) == pytest.approx(row.evicted)
        if row.hit is not None:
            assert np.mean(row.hit_over_time) == pytest.approx(row.hit, abs=1e-3)
    assert len(info.hot_over_time) == 10
    assert max(info.hot_over_time) == info.hot_peak >= info.hot


def test_a_change_in_a_trace_shows_over_time(placed: Plan) -> None:
    """New keys push the known ones out in one step; these miss once, then hit again."""
    batch = 2 * 256 * 8
    known = np.arange(batch) % 64
    keys = np.concatenate([np.tile(known, 5), np.arange(batch) + 10**6, np.tile(known, 2)])
    info = simulate_plan(placed, 4, 0, {"cache": keys})
    row = next(t for t in info.tables if t.name == "cache")
    assert row.hit_over_time == (1, 0, 0, 1)
    assert [evicted > 0 for evicted in row.evicted_over_time] == [False, True, True, False]


def test_a_time_limit_keeps_what_is_done(placed: Plan) -> None:
    """After the limit no further table begins; those with tiers come first, the rest is counted."""
    told: list[str] = []
    part = simulate_plan(placed, 1, 3, on_table=told.append, time_limit=1e-9)
    assert part.left == 4 and len(part.tables) == 1
    assert told == [part.tables[0].name]
    assert part.tables[0].mode in ("HYBRID", "CACHING")
    assert simulate_plan(placed, 1, 3).left == 0


def test_a_sample_holds_no_more_than_the_slots_it_stands_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sample's whole sets of 32 slots, scaled up, do not overflow an array's cache."""
    monkeypatch.setattr(table, "MAX_ROWS", 10_000)
    cache = {"modes": "CACHING", "cache_ratios": [0.1], "sharding_types": "table_wise"}
    cached = {"name": "t", "rows": 1_000_000, "dim": 128, "pooling_factor": 8, "constraints": cache}
    model = Model.from_dict({"name": "m", "workload": {"batch_per_rank": 64}, "tables": [cached]})
    found = plan(model, Cluster.from_dict(CLUSTER), formulation="greedy")
    row = simulate_plan(found, 2).tables[0]
    assert row.sampled < 0.02
    assert row.held == row.growth[-1] == row.predicted_slots == 100_000


ITEMS = {"rows": 5_000, "dim": 16, "kind": "dynamicemb", "output": "sequence",
         "sequence_length": 20, "constraints": {"modes": "HBM_ONLY"}}  # fmt: skip


def planned(*tables: dict[str, Any], hbm: str = "80GiB", ranks: int = 2, **workload: Any) -> Plan:
    """A plan for two or more ranks of 256 samples each."""
    work = {"batch_per_rank": 256, "fusion": "free", **workload}
    links = {"intra_machine": "450GB/s"}
    cluster = {"name": "c", "profile": "h100", "machines": 1, "ranks_per_machine": ranks,
               "hbm": hbm, "ddr": "2TB", "interconnect": links}  # fmt: skip
    model = Model.from_dict({"name": "m", "workload": work, "tables": list(tables)})
    return plan(model, Cluster.from_dict(cluster), formulation="greedy")


def top(name: str, owner: int) -> dict[str, Any]:
    """Items with one id that has 80% of the lookups and whose rank is known."""
    return {
        "name": name,
        **ITEMS,
        "access": {"kind": "top_ids", "ids": [{"share": 0.8, "id": owner}]},
    }


@pytest.mark.parametrize(("second", "hot"), [(1, 1.0), (2, 1.8)])
def test_known_hot_ids_load_their_own_rank(second: int, hot: float) -> None:
    """Two hot ids balance on different ranks and add up on the same one, within 1% of the
    prediction."""
    info = simulate_plan(planned(top("a", 0), top("b", second)), 10)
    assert max(info.rank_ids) == pytest.approx(2 * 256 * 20 * hot, rel=0.01)
    assert info.predicted_hot == pytest.approx(hot)
    assert info.hot == pytest.approx(hot, rel=0.01)


@pytest.mark.parametrize(("index_type", "bits"), [("int32", 32), ("int64", 64)])
def test_hot_int32_ids_sit_where_the_runtime_hashes_them(index_type: str, bits: int) -> None:
    """On three ranks, two ids that share a rank under one hash width do not under the other; the
    replay agrees with the price."""

    def rank(key: int, width: int) -> int:
        return (plain_fmix64(key) & ((1 << width) - 1)) % 3

    same = [key for key in range(1, 5_000) if rank(key, bits) == rank(0, bits)]
    second = next(key for key in same if rank(key, 96 - bits) != rank(0, 96 - bits))
    more = {"index_type": index_type, "dist_types": "hash_roundrobin"}
    info = simulate_plan(
        planned({**top("a", 0), **more}, {**top("b", second), **more}, ranks=3), 10
    )
    assert info.predicted_hot == pytest.approx(3 * 0.8 + 0.2)
    assert info.hot == pytest.approx(info.predicted_hot, rel=0.01)


def test_unknown_hot_ids_are_predicted_at_their_worst() -> None:
    """Any rank may own the row with 80% of the lookups, so every rank is predicted and priced as if
    it did."""
    access = {"kind": "top_ids", "ids": [{"share": 0.8}]}
    tables = [{"name": name, **ITEMS, "access": access} for name in "ab"]
    info = simulate_plan(planned(*tables), 4)
    assert 1.8 <= info.predicted_hot <= 2
    assert info.hot <= info.predicted_hot


def test_every_column_shard_receives_every_id() -> None:
    """Two shards of 64 columns each receive what one of 128 would."""
    table = {"name": "a", "rows": 5_000, "dim": 128, "pooling_factor": 3}
    cut = {**table, "constraints": {"sharding_types": "column_wise", "column_widths": [64]}}
    received = 2 * 256 * 3
    assert simulate_plan(planned(cut), 2).rank_ids == (received, received)
