"""Prices and placements over NVLink domains: by hand, by brute force, and for shipped clusters."""

from math import inf
from typing import Any

import pytest

from formulations import Settings
from milp_planner import plan, verify
from milp_planner.inputs import Cluster, Model
from milp_planner.plans.compile import compile_for
from milp_planner.pricing import price
from milp_planner.pricing.exchange import Links, links_of
from scenarios.catalog import find_cluster
from tests.formulations.brute_force import brute_force
from tests.milp_planner.pricing.build import cluster, entry, model

INTRA, INTER = 600 * 2**30, 12.5 * 2**30


def domains(machines: int, ranks: int, size: int, **more: Any) -> Cluster:
    """Equal machines in domains of ``size`` machines."""
    links = {"intra_machine": "400GB/s", "inter_machine": "50GB/s"}
    return cluster(machines, ranks, interconnect={**links, "domains": {"machines": size, **more}})


def only(kind: str, **table: Any) -> Model:
    """One table in HBM with a single sharding type."""
    limits = {"sharding_types": [kind], "modes": ["HBM_ONLY"]}
    return model({"rows": 1000, "constraints": limits, **table})


def test_links_by_hand() -> None:
    """2 domains of 2 machines of 2 ranks: half of a buffer leaves a domain at 50 GB/s per rank."""
    links = links_of(domains(4, 2, 2))
    assert links.all_to_all == pytest.approx(100e9)
    assert links.local == pytest.approx(400e9 * 4 / 3)
    assert links.local_all_to_all == pytest.approx(400e9 * 4 / 3)
    assert (links.across, links.groups, links.ranks) == (50e9, 2, 8)


def test_groups_of_one_domain_exchange_over_nvlink() -> None:
    """If spans are half a domain, groups exchange over NVLink; one group exchanges nothing."""
    assert links_of(domains(4, 2, 4, span=2)).across == 400e9
    assert links_of(domains(4, 2, 4, span=4)).across == inf
    assert links_of(domains(4, 2, 4, span=1)).across == 400e9


@pytest.mark.parametrize(
    ("span", "hbm", "forward", "exchange", "backward"),
    [
        (1, 132_358_144, 0.0154118872805184, 0.0846354166666667, 0.0953264353400223),
        (2, 68_276_224, 0.0098833405187430, 0.0455729166666667, 0.0562639353400223),
        (4, 36_235_264, 0.0071190671378554, 0.0065104166666667, 0.0172014353400223),
    ],
)
def test_table_row_wise_vectors(
    span: int, hbm: int, forward: float, exchange: float, backward: float
) -> None:
    """16 ranks, 4 per machine, 10^6 × 128 floats: the bytes and milliseconds that TorchRec 1.9.2
    gives with NVLink inside the domain."""
    limits = {"sharding_types": ["table_row_wise"], "modes": ["HBM_ONLY"]}
    table = {"rows": 1_000_000, "dim": 128, "pooling_factor": 10.0, "constraints": limits}
    given = model({**table, "optimizer": "none"}, storage_model="torcheasyrec")
    place = cluster(
        4, 4, interconnect={"intra_machine": "600GiB/s", "inter_machine": "12.5GiB/s",
                            "domains": {"machines": span, "span": span}},
    )  # fmt: skip
    world, across = (INTRA, inf) if span == 4 else (INTER, INTER)
    links = Links(world, world, INTRA, INTRA, across, INTER, 4 // span, 16)
    options = price(given, place, links=links)
    at = entry(options, options.names[0])
    cost = options.entries.cost[at] / 1e9
    assert options.entries.hbm[at] + options.entries.buffer[at] == hbm
    assert cost[0] == pytest.approx(forward, rel=1e-6)
    assert cost[1] == pytest.approx(exchange, rel=1e-6)
    assert cost[3] == pytest.approx(backward, rel=1e-6)


def test_an_option_for_every_group() -> None:
    """Table-row-wise on each domain, a grid on each pair, with one, no option per group."""
    place = domains(4, 2, 2)
    assert price(only("table_row_wise"), place).names == [
        "table_row_wise/HBM_ONLY/group_0", "table_row_wise/HBM_ONLY/group_1",
    ]  # fmt: skip
    assert price(only("grid_shard"), place).names == ["grid_shard:2/HBM_ONLY/group_0_1"]
    refused = price(model({}), domains(4, 2, 4, span=4)).refused["t0"]
    assert "table_row_wise: the same placement as row_wise on a single group of machines" in refused


def test_constraints_keep_the_groups_that_lie_on_allowed_ranks() -> None:
    """Ranks 4 to 7 are the second domain."""
    limits = {"sharding_types": ["table_row_wise"], "modes": ["HBM_ONLY"], "ranks": [4, 5, 6, 7]}
    options = price(model({"constraints": limits}), domains(4, 2, 2))
    assert options.names == ["table_row_wise/HBM_ONLY/group_1"]


@pytest.mark.parametrize("kind", ["table_row_wise", "grid_shard"])
def test_shards_cover_the_table(kind: str) -> None:
    """Rows do not divide, and every cell of the table is in one shard, on a rank of its own."""
    found = plan(only(kind, rows=1001), domains(4, 2, 2), formulation="cpsat")
    shards = found.shards("t0")
    cells = {
        (row, column)
        for shard in shards
        for row in range(*(shard.rows or (0, 0)))
        for column in range(*shard.columns)
    }
    sizes = sum((s.rows[1] - s.rows[0]) * (s.columns[1] - s.columns[0]) for s in shards if s.rows)
    assert len(cells) == sizes == 1001 * 64
    ranks = [shard.rank for shard in shards]
    assert len(set(ranks)) == len(ranks) == (4 if kind == "table_row_wise" else 8)
    assert verify(found).ok


@pytest.mark.parametrize("hbm", ["80GiB", "300KiB", "160KiB"])
def test_brute_force_agrees(hbm: str) -> None:
    """Three tables on two domains, with and without enough memory: the best of all placements."""
    kinds = ["table_wise", "table_row_wise", "grid_shard", "row_wise"]
    limits = {"sharding_types": kinds, "modes": ["HBM_ONLY"], "column_widths": [32]}
    tables = [{"rows": rows, "optimizer": "sgd", "constraints": limits} for rows in (900, 700, 500)]
    links = {"intra_machine": "400GB/s", "inter_machine": "50GB/s", "domains": {"machines": 2}}
    place = cluster(4, 1, hbm=hbm, interconnect=links)
    given = model(*tables, batch_per_rank=1)
    instance = compile_for(given, place, "step_time").instance
    truth = brute_force(instance)
    found = plan(given, place, formulation="cpsat", settings=Settings(time_limit=20, workers=1))
    assert found.outcome.objective == truth.objective
    assert (found.status == "infeasible") == (truth.objective is None)


def test_what_ships() -> None:
    """One rack is a domain of 72 ranks, two racks are two; there, table-row-wise spans a rack."""
    one, two = find_cluster("gb200-nvl72"), find_cluster("2xgb200-nvl72")
    assert (one.num_ranks, one.span, two.num_ranks, two.span) == (72, 1, 144, 18)
    assert links_of(one).all_to_all > 18 * links_of(two).all_to_all / 2
    assert links_of(two).local == pytest.approx(900e9 * 72 / 71)
