"""Loads of every rank: ids and hot ranks."""

from typing import Any

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
