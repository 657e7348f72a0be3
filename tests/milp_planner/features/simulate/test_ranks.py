"""Loads of every rank: exchange, host link, hot ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from milp_planner import plan
from milp_planner.features.simulate.plan import simulate_plan
from milp_planner.inputs import Cluster, Model
from milp_planner.plans.placement import Plan
from tests.cuda_routing.test_rules import plain_fmix64

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
    ids = 2 * 256 * 20 * hot
    assert info.predicted_exchange == pytest.approx(ids * (8 + 16 * 4))
    assert info.exchange == pytest.approx(info.predicted_exchange, rel=0.01)
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
    assert info.exchange <= info.predicted_exchange


def test_columns_are_exchanged_as_they_are_cut() -> None:
    """Two shards of 64 columns move what one of 128 would, and each receives every id."""
    table = {"name": "a", "rows": 5_000, "dim": 128, "pooling_factor": 3}
    cut = {**table, "constraints": {"sharding_types": "column_wise", "column_widths": [64]}}
    info = simulate_plan(planned(cut), 2)
    received = 2 * 256 * 3
    assert info.rank_ids == (received, received)
    assert info.exchange == info.predicted_exchange == 8 * received + 2 * 256 * 64 * 4


ARRAY = {"name": "t", "rows": 60_000, "dim": 64, "pooling_factor": 8, "optimizer": "sgd"}
LOOKUPS = 2 * 256 * 8


def constrained(mode: str, **constraints: Any) -> dict[str, Any]:
    """The array in a single mode."""
    return {**ARRAY, "constraints": {"modes": mode, **constraints}}


def test_arrays_are_fetched_from_the_first_lookup_on() -> None:
    """All 8,192 new rows are fetched, and rows that leave the cache are written back."""
    found = planned(constrained("CACHING", cache_ratios=[0.2], sharding_types="row_wise"))
    row = simulate_plan(found, 4, 0, {"t": np.arange(2 * LOOKUPS)}).tables[0]
    assert row.hit == 0
    assert row.pcie_bytes == (LOOKUPS + row.evicted) * 64 * 4


def test_hash_tables_make_new_rows_in_hbm() -> None:
    """A dynamicemb cache does not fetch a row that it sees for the first time."""
    table = {**constrained("CACHING", cache_ratios=[0.2]), "kind": "dynamicemb"}
    found = planned(table)
    row = simulate_plan(found, 4, 0, {"t": np.arange(2 * LOOKUPS)}).tables[0]
    assert (row.hit, row.pcie_bytes) == (0, row.evicted * 64 * 4)


@pytest.mark.parametrize(("mode", "ways"), [("training", 2), ("inference", 1)])
def test_arrays_on_the_host_are_read_for_every_id(mode: str, ways: int) -> None:
    """A repeated row is read each time, as it is priced, and in training also written."""
    found = planned(constrained("HOST_ONLY"), mode=mode)
    info = simulate_plan(found, 4, 0, {"t": np.full(8 * LOOKUPS, 7)})
    assert info.tables[0].pcie_bytes == ways * LOOKUPS * 64 * 4
    assert sum(info.rank_pcie_bytes) == info.tables[0].pcie_bytes


def test_every_column_shard_fetches_its_part() -> None:
    """Shards of 64 and 32 columns each fetch their columns of every row."""
    cut = constrained(
        "CACHING", cache_ratios=[0.2], sharding_types="column_wise", column_widths=[64]
    )
    info = simulate_plan(planned({**cut, "dim": 96}), 4, 0, {"t": np.arange(2 * LOOKUPS)})
    row = info.tables[0]
    assert row.pcie_bytes == (LOOKUPS + row.evicted) * 96 * 4
    assert sorted(info.rank_pcie_bytes) == [row.pcie_bytes / 3, row.pcie_bytes * 2 / 3]


def test_without_hbm_nothing_crosses_the_host_link() -> None:
    """Processors read their own memory."""
    info = simulate_plan(planned(ARRAY, hbm="0GiB"), 2)
    assert info.rank_pcie_bytes == (0, 0)


def test_a_single_rank_exchanges_nothing() -> None:
    """Ids and embeddings stay where they are: 0 bytes, predicted and simulated."""
    info = simulate_plan(planned(top("a", 0), ranks=1), 4)
    assert info.predicted_exchange == info.exchange == max(info.exchange_over_time) == 0
    assert info.rank_ids == (pytest.approx(256 * 20),)


def test_rows_of_a_store_cross_the_link_without_the_state_in_hbm() -> None:
    """FBGEMM's SSD kernel keeps Adam's state in HBM: 256 bytes a row each way, not 768."""
    table = {"name": "t", "rows": 100_000, "dim": 64, "pooling_factor": 4, "optimizer": "adam",
             "constraints": {"modes": "SSD", "cache_ratios": [0.2]}}  # fmt: skip
    model = Model.from_dict({"name": "m", "workload": {"batch_per_rank": 256}, "tables": [table]})
    cluster = {"name": "c", "profile": "h100", "machines": 1, "ranks_per_machine": 1,
               "hbm": "80GiB", "ddr": "64GiB",
               "ssd": {"size": "3TB", "bandwidth": "16GB/s"}}  # fmt: skip
    info = simulate_plan(plan(model, Cluster.from_dict(cluster), formulation="greedy"), 4)
    hit = info.tables[0].unique_hit
    assert hit is not None
    fetched = 256 * 4 * (1 - hit) * 256
    assert info.rank_pcie_bytes[0] == pytest.approx(2 * fetched, rel=0.05)
