"""Row groups and sharding groups: NVLink domains, TorchRec's num_nodes, 2D.

Links, prices, bytes and placements by hand, by brute force, of shipped clusters; what is refused.
"""

from math import inf
from typing import Any

import numpy as np
import pytest

from formulations import Settings
from milp_planner import plan, verify
from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.sharding_group import group_of
from milp_planner.plans.compile import compile_for
from milp_planner.plans.ledger import ledger_of
from milp_planner.plans.placement import nodes_of
from milp_planner.pricing import Options, price
from milp_planner.pricing.entries import MOMENTS, SHARD_ENTRIES, alive
from milp_planner.pricing.exchange import Links, links_of
from scenarios.catalog import find_cluster
from tests.corpus import mistakes
from tests.formulations.brute_force import brute_force
from tests.milp_planner.pricing.build import cluster, entry, model

INTRA, INTER = 600 * 2**30, 12.5 * 2**30
SLOW = {"intra_machine": "600GiB/s", "inter_machine": "12.5GiB/s"}
HBM = {"modes": ["HBM_ONLY"]}
BY_MACHINE = {**HBM, "sharding_types": ["table_row_wise"]}
T = {"rows": 1_000_000, "dim": 128, "pooling_factor": 10.0, "constraints": HBM}
WEIGHTS, STATE = 512_000_000, 4_000_000


def domains(machines: int, ranks: int, size: int, hbm: str = "80GiB", **more: Any) -> Cluster:
    """Equal machines in domains of ``size`` machines."""
    links = {"intra_machine": "400GB/s", "inter_machine": "50GB/s"}
    within = {**links, "domains": {"machines": size, **more}}
    return cluster(machines, ranks, hbm=hbm, interconnect=within)


def only(kind: str, **table: Any) -> Model:
    """One table in HBM with a single sharding type."""
    return model({"constraints": {**HBM, "sharding_types": [kind]}, **table})


def over(*nodes: int, **table: Any) -> Model:
    """One table whose rows may be split over so many machines."""
    return model({**table, "constraints": {**BY_MACHINE, "num_nodes": list(nodes or (1,))}})


def test_links_by_hand() -> None:
    """2 domains of 2 machines of 2 ranks: half of a buffer leaves a domain at 50 GB/s per rank."""
    links = links_of(domains(4, 2, 2))
    assert links.all_to_all == pytest.approx(100e9)
    assert links.local == pytest.approx(400e9 * 4 / 3)
    assert links.local_all_to_all == pytest.approx(400e9 * 4 / 3)
    assert (links.across, links.groups, links.ranks) == (50e9, 2, 8)


def test_groups_of_one_domain_exchange_over_nvlink() -> None:
    """If spans are half a domain, groups exchange over NVLink; one group exchanges nothing."""
    found = [links_of(domains(4, 2, 4, span=span)).across for span in (2, 4, 1)]
    assert found == [400e9, inf, 400e9]


#: A table on 4, 8 and 16 of 16 ranks, 4 per machine: bytes, and milliseconds of a lookup, that
#: TorchRec 1.9.2 gives.
VECTORS = {
    1: (132_358_144, 0.0154118872805184),
    2: (68_276_224, 0.0098833405187430),
    4: (36_235_264, 0.0071190671378554),
}


def is_priced(options: Options, machines: int, exchange: float, backward: float) -> None:
    """Compare the first option with the vectors."""
    at, (hbm, forward) = entry(options, options.names[0]), VECTORS[machines]
    cost = options.entries.cost[at] / 1e9
    assert options.entries.hbm[at] + options.entries.buffer[at] == hbm
    assert cost[[0, 1, 3]] == pytest.approx([forward, exchange, backward], rel=1e-6)


@pytest.mark.parametrize(
    ("span", "exchange", "backward"),
    [
        (1, 0.0846354166666667, 0.0953264353400223),
        (2, 0.0455729166666667, 0.0562639353400223),
        (4, 0.0065104166666667, 0.0172014353400223),
    ],
)
def test_vectors_of_domains(span: int, exchange: float, backward: float) -> None:
    """Those that TorchRec 1.9.2 gives with NVLink inside the domain."""
    given = model({**T, "optimizer": "none", "constraints": BY_MACHINE},
                  storage_model="torcheasyrec")  # fmt: skip
    place = cluster(4, 4, interconnect={**SLOW, "domains": {"machines": span, "span": span}})
    world, across = (INTRA, inf) if span == 4 else (INTER, INTER)
    links = Links(world, world, INTRA, INTRA, across, INTER, 4 // span, 16)
    is_priced(price(given, place, links=links), span, exchange, backward)


@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_vectors_of_nodes(nodes: int) -> None:
    """The exchange stays that of machines of 4: O = 16 · 512 · 128 · 4 = 4,194,304 bytes at 600
    GiB/s inside, 6.51 µs, then 4 · 512 · 128 · 4 = 1,048,576 bytes at 12.5 GiB/s between them,
    78.125 µs."""
    limits = {**BY_MACHINE, "num_nodes": nodes}
    given = model({**T, "optimizer": "none", "constraints": limits}, storage_model="torcheasyrec")
    links = Links(INTER, INTER, INTRA, INTRA, INTER, INTER, 4, 16)
    options = price(given, cluster(4, 4), links=links)
    is_priced(options, nodes, 0.00651041666 + 0.078125, 0.0953264353400223)


@pytest.mark.parametrize(
    ("given", "place", "ends"),
    [
        (only("table_row_wise"), domains(4, 2, 2), ["/group_0", "/group_1"]),
        (only("grid_shard"), domains(4, 2, 2), ["/group_0_1"]),
        # ranks 4 to 7 are the second domain
        (model({"constraints": {**BY_MACHINE, "ranks": [4, 5, 6, 7]}}), domains(4, 2, 2),
         ["/group_1"]),
        # three machines: an option on any of them, one for each of the three pairs, one on all
        (over(), cluster(3, 2), [""]),
        (over(1, 2), cluster(3, 2), ["", "/group_0_1", "/group_0_2", "/group_1_2"]),
        (over(3), cluster(3, 2), ["/group_0_1_2"]),
        # where a span is two machines, num_nodes counts spans
        (over(2), domains(4, 2, 2), ["/group_0_1"]),
    ],
)  # fmt: skip
def test_an_option_for_every_set_of_groups(given: Model, place: Cluster, ends: list[str]) -> None:
    """Restricted to those on allowed ranks."""
    names = price(given, place).names
    assert [name.partition("HBM_ONLY")[2] for name in names] == ends


def test_members_of_a_group() -> None:
    """Their ranks in order; one group alone has no option of its own; other types stay as they
    are."""
    choice = price(over(3), cluster(3, 2)).choices[0]
    assert choice.members == (0, 1, 2, 3, 4, 5) and choice.nodes == 3
    refused = price(model({}), domains(4, 2, 4, span=4)).refused["t0"]
    assert "table_row_wise: the same placement as row_wise on a single group of machines" in refused
    plain, more = (model({"constraints": HBM | own}) for own in ({}, {"num_nodes": [1, 2]}))
    names, added = (set(price(each, cluster(2, 2)).names) for each in (plain, more))
    assert added - names == {"table_row_wise/HBM_ONLY/group_0_1"} and names < added


@pytest.mark.parametrize(
    ("given", "place", "ranks", "nodes"),
    [
        (only("table_row_wise", rows=1001), domains(4, 2, 2), 4, 1),
        (only("grid_shard", rows=1001), domains(4, 2, 2), 8, 1),
        (over(2, rows=1001), cluster(3, 2), 4, 2),
        (over(2, rows=1001), domains(4, 2, 2), 8, 2),
    ],
)
def test_shards_cover_the_table(given: Model, place: Cluster, ranks: int, nodes: int) -> None:
    """Rows do not divide, and every cell of the table is in one shard, on a rank of its own: blocks
    of equal size, the last one shorter."""
    found = plan(given, place, formulation="cpsat", time_limit=10)
    shards = found.shards("t0")
    cells = {
        (row, column)
        for shard in shards
        for row in range(*(shard.rows or (0, 0)))
        for column in range(*shard.columns)
    }
    sizes = sum((s.rows[1] - s.rows[0]) * (s.columns[1] - s.columns[0]) for s in shards if s.rows)
    assert len(cells) == sizes == 1001 * 64
    assert len({shard.rank for shard in shards}) == len(shards) == ranks
    if nodes == 2:
        assert nodes_of(found.tables[0], place) == nodes
        block = -(-1001 // ranks)
        starts = range(0, 1001, block)
        assert [s.rows for s in shards] == [(start, min(start + block, 1001)) for start in starts]
    if place.num_ranks == 6:
        assert len({shard.rank // 2 for shard in shards}) == nodes
    assert verify(found).ok


def in_group(layout: str, strategy: str, hbm: str) -> Cluster:
    """A group of 4 of 8 ranks."""
    two_d = {"sharding_group_size": 4, "layout": layout, "strategy": strategy}
    return cluster(4, 2, hbm=hbm, two_d=two_d)


TYPES = ["table_wise", "table_row_wise", "row_wise"]


@pytest.mark.parametrize(
    ("rows", "place", "limits"),
    [
        *(((900, 700, 500), domains(4, 1, 2, hbm),
           {"sharding_types": [*TYPES, "grid_shard"], "column_widths": [32]})
          for hbm in ("80GiB", "300KiB", "160KiB")),
        *(((900, 700), cluster(3, 1, hbm=hbm),
           {"sharding_types": TYPES[:2], "num_nodes": [1, 2, 3]})
          for hbm in ("80GiB", "300KiB", "150KiB")),
        *(((900, 700, 500), in_group(layout, strategy, hbm),
           {"sharding_types": [*TYPES, "data_parallel"]})
          for layout, strategy, hbm in (
              ("strided", "default", "80GiB"), ("contiguous", "fully_sharded", "80GiB"),
              ("strided", "fully_sharded", "700KiB"), ("contiguous", "default", "700KiB"),
              ("strided", "default", "300KiB"), ("contiguous", "fully_sharded", "300KiB"),
          )),
    ],
)  # fmt: skip
def test_brute_force_agrees(rows: tuple[int, ...], place: Cluster, limits: dict[str, Any]) -> None:
    """Two or three tables in domains, on nodes and in a sharding group, with and without enough
    memory: the best of all placements, and a ledger that the instance charges."""
    optimizer = "rowwise_adagrad" if place.two_d else "sgd"
    tables = [{"rows": n, "optimizer": optimizer, "constraints": HBM | limits} for n in rows]
    given = model(*tables, batch_per_rank=1)
    truth = brute_force(compile_for(given, place, "step_time").instance)
    found = plan(given, place, formulation="cpsat", settings=Settings(time_limit=20, workers=1))
    assert found.outcome.objective == truth.objective
    assert (found.status == "infeasible") == (truth.objective is None)
    if truth.objective is not None:
        assert verify(found).ok
        assert ledger_of(found) is not None


def test_what_ships() -> None:
    """One rack is a domain of 72 ranks, two racks are two; there, table-row-wise spans a rack."""
    one, two = find_cluster("gb200-nvl72"), find_cluster("2xgb200-nvl72")
    assert (one.num_ranks, one.span, two.num_ranks, two.span) == (72, 1, 144, 18)
    assert links_of(one).all_to_all > 18 * links_of(two).all_to_all / 2
    assert links_of(two).local == pytest.approx(900e9 * 72 / 71)


def test_what_a_cluster_does_not_have() -> None:
    """More machines than there are, and 0, get one sentence."""
    with pytest.raises(BadInput, match=r"num_nodes \(table t0\): found 3; allowed: 1 to 2 on"):
        price(over(3), cluster(2, 2))
    with pytest.raises(BadInput, match="num_nodes"):
        over(0)


def divided(layout: str = "strided", strategy: str = "default", **more: Any) -> Cluster:
    """64 ranks, 8 per machine, in 4 groups of 16."""
    two_d = {"sharding_group_size": 16, "layout": layout, "strategy": strategy, **more}
    return cluster(8, 8, interconnect=SLOW, two_d=two_d)


def sync_ms(options: Options, name: str = "table_wise/HBM_ONLY") -> float:
    """Milliseconds of an option's first shard in the sync phase."""
    return float(options.entries.cost[entry(options, name), -1]) / 1e9


@pytest.mark.parametrize(
    ("layout", "wanted"), [("strided", 1.2014061213), ("contiguous", 57.6674938202)]
)
def test_sync_vectors(layout: str, wanted: float) -> None:
    """4 replicas of 10^6 × 128 floats and row-wise state, 516,000,000 bytes: inside a machine, and
    over the network while all of a machine's ranks do the same."""
    assert sync_ms(price(model(T), divided(layout))) == pytest.approx(wanted, rel=1e-8)


def test_sync_every_eighth_step() -> None:
    """An eighth of the time per step."""
    found = sync_ms(price(model(T), divided(sync_interval=8)))
    assert found == pytest.approx(1.2014061213 / 8, rel=1e-8)


@pytest.mark.parametrize(
    ("layout", "one_way"), [("strided", 0.5960464478), ("contiguous", 28.6102294922)]
)
def test_fully_sharded_vectors(layout: str, one_way: float) -> None:
    """Reduce-scatter and all-gather of the table, which is otherwise never averaged."""
    options = price(model(T), divided(layout, "fully_sharded", sync_interval="never"))
    assert sync_ms(options) == pytest.approx(2 * one_way, rel=1e-8)


def moments(options: Options, name: str) -> dict[str, int]:
    """Bytes of weights alone at each moment."""
    names = [e.name for e in SHARD_ENTRIES]
    rows = np.isin(names, ["weights", "gathered_weights", "padded_weights"])
    ledger = options.entries.ledger[entry(options, name)]
    return {m: int((ledger * rows) @ alive(m)) for m in MOMENTS}


def test_fully_sharded_bytes() -> None:
    """128,000,000 in the dense part and 640,000,000 at the lookup (docs/hardware.md)."""
    found = moments(price(model(T), divided(strategy="fully_sharded")), "table_wise/HBM_ONLY")
    held = {m for m in MOMENTS if found[m] == 128_000_000}
    assert held == {"dense_part", "backward_send"}
    assert {found[m] for m in MOMENTS} == {128_000_000, 640_000_000}


def test_fully_sharded_bytes_that_do_not_divide() -> None:
    """3 replicas of 128,000,128 elements: 170,666,840 kept, and a padded copy at the lookup."""
    two_d = {"sharding_group_size": 2, "layout": "strided", "strategy": "fully_sharded"}
    options = price(model({**T, "rows": 1_000_001}), cluster(1, 6, two_d=two_d))
    found = moments(options, "table_wise/HBM_ONLY")
    assert found["dense_part"] == 170_666_840
    x, kept = 512_000_512, 170_666_840
    assert found["forward_send"] == 2 * x + (3 * kept - x) + kept == 1_194_667_872
    assert found["backward_receive"] == x + kept


def test_a_group_is_priced_as_a_cluster_of_its_ranks() -> None:
    """Strided, with 2 ranks on each of 8 machines: all phases but sync cost what they cost on such
    a cluster, except that replicated tables still meet all 64 ranks."""
    group = price(model(T), divided())
    alone = price(model(T), cluster(8, 2, interconnect=SLOW))
    assert group.names == alone.names
    same = [not name.startswith("data_parallel") for name in group.names]
    rows = np.repeat(same, np.diff(group.entries.first))
    assert (group.entries.cost[rows, :-1] == alone.entries.cost[rows]).all()
    assert (group.entries.ledger == alone.entries.ledger).all()
    whole = price(model(T), cluster(8, 8, interconnect=SLOW))
    first = [o.entries.cost[entry(o, "data_parallel/HBM_ONLY"), 3] for o in (group, whole, alone)]
    assert first[0] == first[1] != first[2]


def test_state_is_averaged_in_fp32() -> None:
    """Row-wise Adagrad has 4 bytes per row whatever its type, Adagrad 4 per cell, SGD none."""
    found = {
        kind: sync_ms(price(model({**T, "dtype": "fp16", "optimizer": kind}), divided()))
        for kind in ("rowwise_adagrad", "adagrad", "sgd")
    }
    per_byte = 1.2014061213 / (WEIGHTS + STATE)
    cells = 128_000_000
    wanted = {"rowwise_adagrad": 4_000_000, "adagrad": 4 * cells, "sgd": 0}
    for kind, state in wanted.items():
        assert found[kind] == pytest.approx(per_byte * (2 * cells + state), rel=1e-8)


def test_rows_in_host_memory_pass_the_host_link() -> None:
    """It is slower than the replicas' links, so it decides: 2 · 516,000,000 bytes over 32 GiB/s."""
    table = {**T, "constraints": {"modes": ["HOST_ONLY"]}}
    found = sync_ms(price(model(table), divided()), "table_wise/HOST_ONLY")
    assert found == pytest.approx(2 * (WEIGHTS + STATE) / (32 * 2**30) * 1e3, rel=1e-8)


def test_inference_has_nothing_to_average() -> None:
    """There is no sync, and there are no gathered copies."""
    options = price(model(T, mode="inference"), divided(strategy="fully_sharded"))
    assert not options.entries.cost[:, -1].any()
    assert len(set(moments(options, "table_wise/HBM_ONLY").values())) == 1


@pytest.mark.parametrize(("table", "why"), mistakes(__file__, "what sync would not keep equal"))
def test_what_sync_would_not_keep_equal(table: dict[str, Any], why: str) -> None:
    """Each gets one sentence that names the table."""
    with pytest.raises(BadInput, match="t0") as error:
        price(model(table), divided())
    assert why in str(error.value)


def test_caches_are_not_offered() -> None:
    """A table that allows every mode is offered those that sync keeps equal."""
    modes = {name.split("/")[1] for name in price(model({}), divided()).names}
    assert modes == {"HBM_ONLY", "HOST_ONLY"}


def test_largest_collective_counts_gathered_weights_of_all() -> None:
    """One collective's gathered weights are in memory while another's outputs are sent."""
    sequence = {**T, "output": "sequence", "sequence_length": 200.0}
    del sequence["pooling_factor"]
    given, place = (
        model(T, sequence, buffers="largest_collective"),
        divided("strided", "fully_sharded"),
    )
    instance = compile_for(given, place, "step_time").instance
    names = [resource.name for resource in instance.resources]
    used = [index for index, name in enumerate(names) if "sequence" in name]
    pooled = entry(price(given, place), "table_wise/HBM_ONLY")
    assert used
    assert all(640_000_000 < instance.shard_use[pooled, i] < 650_000_000 for i in used)


def test_links_of_a_group() -> None:
    """Replicas strided in a machine of 8: 4 of a set send 3/4 of a buffer over their own links."""
    links = links_of(group_of(divided()))
    assert links.replica == pytest.approx(600 * 2**30 * 4 / 3)
    assert links.ranks == 16
