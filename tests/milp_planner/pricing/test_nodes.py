"""Rows over several machines (TorchRec's num_nodes): options, vectors by hand, brute force."""

from typing import Any

import pytest

from formulations import Settings
from milp_planner import plan, verify
from milp_planner.errors import BadInput
from milp_planner.inputs import Model
from milp_planner.plans.compile import compile_for
from milp_planner.plans.placement import nodes_of
from milp_planner.pricing import price
from milp_planner.pricing.exchange import Links
from tests.formulations.brute_force import brute_force
from tests.milp_planner.pricing.build import cluster, entry, model

INTRA, INTER = 600 * 2**30, 12.5 * 2**30
LIMITS = {"sharding_types": ["table_row_wise"], "modes": ["HBM_ONLY"]}


def over(*nodes: int, **table: Any) -> Model:
    """One table whose rows may be split over so many machines."""
    limits = {**LIMITS, **({"num_nodes": list(nodes)} if nodes else {})}
    return model({"rows": 1000, **table, "constraints": limits})


def test_options_by_hand() -> None:
    """Three machines: one option on any of them, one for each of the three pairs, one on all."""
    place = cluster(3, 2)
    assert price(over(), place).names == ["table_row_wise/HBM_ONLY"]
    assert price(over(1, 2), place).names == [
        "table_row_wise/HBM_ONLY", "table_row_wise/HBM_ONLY/group_0_1",
        "table_row_wise/HBM_ONLY/group_0_2", "table_row_wise/HBM_ONLY/group_1_2",
    ]  # fmt: skip
    options = price(over(3), place)
    assert options.names == ["table_row_wise/HBM_ONLY/group_0_1_2"]
    assert options.choices[0].members == (0, 1, 2, 3, 4, 5) and options.choices[0].nodes == 3


@pytest.mark.parametrize(
    ("nodes", "hbm", "forward"),
    [(1, 132_358_144, 0.0154118872805184), (2, 68_276_224, 0.0098833405187430),
     (4, 36_235_264, 0.0071190671378554)],
)  # fmt: skip
def test_vectors(nodes: int, hbm: int, forward: float) -> None:
    """16 ranks, 4 per machine, 10^6 × 128 floats over 1, 2 and 4 machines.

    Bytes and lookups are those that TorchRec 1.9.2 gives for 4, 8 and 16 ranks. The exchange stays
    that of machines of 4: O = 16 · 512 · 128 · 4 = 4,194,304 bytes at 600 GiB/s inside, 6.51 µs,
    then 4 · 512 · 128 · 4 = 1,048,576 bytes at 12.5 GiB/s between them, 78.125 µs.
    """
    given = model(
        {"rows": 1_000_000, "dim": 128, "pooling_factor": 10.0, "optimizer": "none",
         "constraints": {**LIMITS, "num_nodes": nodes}},
        storage_model="torcheasyrec",
    )  # fmt: skip
    links = Links(INTER, INTER, INTRA, INTRA, INTER, INTER, 4, 16)
    options = price(given, cluster(4, 4), links=links)
    at = entry(options, options.names[0])
    cost = options.entries.cost[at] / 1e9
    assert options.entries.hbm[at] + options.entries.buffer[at] == hbm
    assert cost[0] == pytest.approx(forward, rel=1e-6)
    assert cost[1] == pytest.approx(0.00651041666 + 0.078125, rel=1e-6)
    assert cost[3] == pytest.approx(0.0953264353400223, rel=1e-6)


def test_a_domain_is_a_node() -> None:
    """Where a span is two machines, num_nodes counts spans: two of them are four machines."""
    links = {"intra_machine": "400GB/s", "inter_machine": "50GB/s", "domains": {"machines": 2}}
    place = cluster(4, 2, interconnect=links)
    assert price(over(2), place).names == ["table_row_wise/HBM_ONLY/group_0_1"]
    found = plan(over(2), place, formulation="cpsat", time_limit=10)
    assert nodes_of(found.tables[0], place) == 2
    assert found.tables[0].ranks == (tuple(range(8)),)


def test_shards_cover_the_table() -> None:
    """1,001 rows on two machines of two ranks: blocks of 251, the last shorter, each on its own
    rank; the plan verifies."""
    found = plan(over(2, rows=1001), cluster(3, 2), formulation="cpsat", time_limit=10)
    shards = found.shards("t0")
    assert [shard.rows for shard in shards] == [(0, 251), (251, 502), (502, 753), (753, 1001)]
    ranks = {shard.rank for shard in shards}
    assert len(ranks) == 4 and len({rank // 2 for rank in ranks}) == 2
    assert verify(found).ok


@pytest.mark.parametrize("hbm", ["80GiB", "300KiB", "150KiB"])
def test_the_best_of_all_placements(hbm: str) -> None:
    """Chosen like any other option: with little memory tables spread, as brute force says."""
    kinds = {"sharding_types": ["table_wise", "table_row_wise"], "modes": ["HBM_ONLY"]}
    tables = [
        {"rows": rows, "optimizer": "sgd", "constraints": {**kinds, "num_nodes": [1, 2, 3]}}
        for rows in (900, 700)
    ]
    given, place = model(*tables, batch_per_rank=1), cluster(3, 1, hbm=hbm)
    truth = brute_force(compile_for(given, place, "step_time").instance)
    found = plan(given, place, formulation="cpsat", settings=Settings(time_limit=20, workers=1))
    assert found.outcome.objective == truth.objective
    assert (found.status == "infeasible") == (truth.objective is None)


def test_what_a_cluster_does_not_have() -> None:
    """More machines than there are, and 0, get one sentence."""
    with pytest.raises(BadInput, match=r"num_nodes \(table t0\): found 3; allowed: 1 to 2 on"):
        price(over(3), cluster(2, 2))
    with pytest.raises(BadInput, match="num_nodes"):
        over(0)


def test_only_pooled_tables_row_wise_inside_machines() -> None:
    """Other types have no such number: it leaves their options as they are."""
    plain = model({"constraints": {"modes": ["HBM_ONLY"]}})
    more = model({"constraints": {"modes": ["HBM_ONLY"], "num_nodes": [1, 2]}})
    names, added = (set(price(each, cluster(2, 2)).names) for each in (plain, more))
    assert added - names == {"table_row_wise/HBM_ONLY/group_0_1"} and names < added
