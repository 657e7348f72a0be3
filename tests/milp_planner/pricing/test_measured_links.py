"""Prices of exchanges against the published tables that profiles name, and their shape. Exchange
time by hand, and the bottlenecks of a cluster.

Ids, outputs and distinct rows of a step.
"""

from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from milp_planner.inputs import Cluster
from milp_planner.pricing import exchange, price
from milp_planner.pricing.collectives import CollectiveTable
from milp_planner.pricing.exchange import Links, all_reduce_seconds, links_of
from milp_planner.pricing.job import traffic_of
from milp_planner.pricing.profile import Profile, load_profile, profile_names
from tests.milp_planner.pricing.build import cluster, model

PS, US = 1e-12, 1e-6
KB, MB, GB = 2**10, 2**20, 2**30


def at_bus(size: float, rate: float, ranks: int = 8) -> float:
    """Seconds of a collective but all-reduce of this bus bandwidth in GB/s."""
    return size * (ranks - 1) / ranks / (rate * 1e9)


def all_reduces(*rates: float) -> list[tuple[str, int, float, float]]:
    """All-reduces of 8 GPUs at 1 KB, 1 MB, 32 MB and 1 GB with these bus bandwidths in GB/s."""
    pairs = zip((KB, MB, 32 * MB, GB), rates, strict=True)
    return [("all_reduce", 8, size, 2 * at_bus(size, rate)) for size, rate in pairs]


def swept(kind: str, *ms: float) -> list[tuple[str, int, float, float]]:
    """Four MI350X at 4 KB, 576 KB, 27 MB and 1 GB of a rank's input."""
    gathers = 4 if kind == "all_gather" else 1
    pairs = zip((4 * KB, 576 * KB, 27 * MB, GB), ms, strict=True)
    return [(kind, 4, size * gathers, each * 1e-3) for size, each in pairs]


PUBLISHED: dict[str, list[tuple[str, int, float, float]]] = {
    "a100": all_reduces(0.04, 36, 133, 228),
    "h100": [
        *all_reduces(0.07, 44, 296, 466),
        ("all_to_all", 8, 4 * KB, 11.1 * US), ("all_to_all", 8, KB, 10.8 * US),
        ("all_to_all", 8, MB, 58.1 * US), ("all_to_all", 4, 500 * MB, 1174 * US),
        ("reduce_scatter", 8, GB, at_bus(GB, 370)), ("all_gather", 8, GB, at_bus(GB, 370)),
        ("network", 2, KB, 23 * US), ("network", 2, MB, 46 * US),
        ("network", 2, 16 * MB, 370 * US), ("network", 2, GB, 22_200 * US),
    ],
    "h200": all_reduces(0.06, 53, 301, 468),
    "gb200": [
        ("all_reduce", 8, KB, 9 * US), ("all_reduce", 8, 64 * KB, 17 * US),
        ("all_reduce", 8, MB, 18 * US), ("all_reduce", 72, GB, 2 * at_bus(GB, 681, 72)),
        ("all_to_all", 8, 8 * 16, 11.8 * US), ("all_to_all", 8, 8 * 4 * KB, 13.1 * US),
    ],
    "mi350x": [
        *swept("all_reduce", 0.042, 0.066, 0.317, 10.46),
        *swept("reduce_scatter", 0.038, 0.045, 0.200, 5.57),
        *swept("all_to_all", 0.052, 0.058, 0.203, 5.39),
        *swept("all_gather", 0.046, 0.062, 0.581, 20.05),
    ],
}  # fmt: skip
"""Collective, ranks, bytes of a rank's buffer, seconds, as the profile's sources state them."""
STATED = {"a100": 300, "h100": 450, "h200": 450, "gb200": 900, "mi350x": 537.6}
SHARDINGS = {
    "all_to_all": "table_wise", "network": "table_wise", "reduce_scatter": "row_wise",
    "all_gather": "row_wise", "all_reduce": "data_parallel",
}  # fmt: skip
PHASE = {"all_to_all": 1, "network": 1, "reduce_scatter": 1, "all_gather": 3, "all_reduce": 3}


def site(profile: str, machines: int, ranks: int) -> Cluster:
    """Equal machines with the profile's stated links and NDR cards."""
    links = {"intra_machine": f"{STATED[profile]}GB/s", "inter_machine": "50GB/s"}
    return cluster(machines, ranks, profile=profile, interconnect=links)


def without_passes(name: str) -> Profile:
    """The profile with exchanges only: no copies and no update of the table behind them."""
    profile = load_profile(name)
    free = {"batched_copy_multiple": 1e-12, "dense_update_multiple": 1e-12}
    return profile.model_copy(update={"kernel": profile.kernel.model_copy(update=free)})


def priced(kind: str, ranks: int, size: float, profile: str) -> float:
    """Price of the collective, as a model's only exchange: a buffer of ``size`` on every rank."""
    per_rank = round(size * (2 if kind == "network" else 1) / 4 / ranks)  # floats of outputs
    dim = next((d for d in (256, 128, 64, 32, 16, 8) if per_rank % d == 0), 4)
    table: dict[str, Any] = {"dim": dim, "constraints": {"sharding_types": SHARDINGS[kind]}}
    count = ranks if kind in ("all_to_all", "network") else 1  # a table a rank
    if kind == "all_reduce":
        table |= {"dim": 4, "rows": round(size / 16)}
    given = model(*[table] * count, batch_per_rank=per_rank // dim)
    where = site(profile, ranks, 1) if kind == "network" else site(profile, 1, ranks)
    cost = price(given, where, without_passes(profile)).entries.cost
    return float(cost[0, PHASE[kind]]) * PS


@pytest.mark.parametrize(
    ("profile", "kind", "ranks", "size", "seconds"),
    [(name, *row) for name, rows in PUBLISHED.items() for row in rows],
)
def test_a_price_is_within_a_fifth_of_the_published_time(
    profile: str, kind: str, ranks: int, size: float, seconds: float
) -> None:
    """Collective by collective and size by size, for every profile that names a table."""
    assert priced(kind, ranks, size, profile) == pytest.approx(seconds, rel=0.2)


def test_every_profile_says_which_collectives_were_measured() -> None:
    """A table has an origin of its own, and profiles without one say so."""
    for name in profile_names():
        profile = load_profile(name)
        assert "collectives" in profile.origin
        assert (profile.collectives is None) == (profile.origin["collectives"][:8] == "no table")


def test_a_model_s_tables_share_one_call() -> None:
    """Ten tables of a tenth of the size cost together what one of the whole size costs."""

    def total(count: int) -> float:
        limits = {"sharding_types": "row_wise"}
        table = {"dim": 8, "rows": 100, "num_poolings": 10 // count, "constraints": limits}
        given = model(*[table] * count, batch_per_rank=16)
        return float(price(given, site("mi350x", 1, 8)).entries.cost[:, 1].sum())

    assert total(10) == pytest.approx(total(1), rel=1e-6)


def test_what_has_no_table_keeps_the_cluster_s_bandwidth() -> None:
    """b200 names none: bytes over the stated links."""
    found = price(model({}), site("h100", 1, 8), load_profile("b200")).links
    assert found.all_to_all == pytest.approx(450e9 * 8 / 7)
    assert found.reduced == ()


SECONDS = st.lists(st.floats(1e-7, 1e-2), min_size=6, max_size=6).map(sorted)
TABLE = st.tuples(st.sets(st.floats(1, 1e9), min_size=1, max_size=6).map(sorted), SECONDS).map(
    lambda drawn: tuple(zip(*drawn, strict=False))
)


@given(TABLE, st.sampled_from(["measured", "stated"]), st.floats(0, 1e11), st.floats(0, 1e11))
def test_more_bytes_never_take_less_time(
    points: Any, beyond: Any, one: float, other: float
) -> None:
    """Time rises with size, and nothing takes no time."""
    table = CollectiveTable(points=points, beyond=beyond, origin="made up")
    low, high = sorted((one, other))
    assert table.seconds(low, 1e9, 1.0) <= table.seconds(high, 1e9, 1.0) * (1 + 1e-12)
    assert table.seconds(0, 1e9, 1.0) == 0


def test_small_gradients_share_a_bucket() -> None:
    """Of 100 fused bytes at 2 s, 25 pay a quarter; 1,000 pay at the last size's bandwidth."""
    links = Links(1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1, 2, reduced=((10, 1.0), (100, 2.0)), fused=100.0)
    sizes = np.array([0, 25, 100, 1000])
    assert all_reduce_seconds(sizes, links).tolist() == pytest.approx([0.0, 0.5, 2.0, 20.0])


def test_a_table_that_falls_is_refused() -> None:
    """A larger buffer that is faster, and a repeated size."""
    for points in ([[1, 2.0], [2, 1.0]], [[1, 1.0], [1, 2.0]]):
        with pytest.raises(ValueError, match="sorted by rising size"):
            CollectiveTable(points=points, origin="made up")  # type: ignore[arg-type]


#: all_to_all, reduce_scatter, local, local_all_to_all, across, all_reduce; groups and ranks.
TWO_MACHINES = Links(10.0, 20.0, 100.0, 50.0, 5.0, 4.0, 2, 16)


def test_links_of_one_machine() -> None:
    """A rank keeps an eighth of its buffer and sends the rest at 400 GB/s."""
    links = links_of(cluster(1, 8))
    assert links.all_to_all == pytest.approx(400e9 * 8 / 7)
    assert links.reduce_scatter == pytest.approx(400e9 * 8 / 7)
    assert links.all_reduce == pytest.approx(200e9 * 8 / 7)
    assert links.local == links.reduce_scatter
    assert (links.across, links.groups, links.ranks) == (inf, 1, 8)


def test_links_of_two_machines_are_the_network_cards() -> None:
    """Half of every buffer leaves the machine, at 50 GB/s per rank."""
    links = links_of(cluster(2, 8))
    assert links.all_to_all == pytest.approx(100e9)
    assert links.local_all_to_all == pytest.approx(400e9 * 8 / 7)
    assert links.across == 50e9


def test_a_single_rank_exchanges_for_free() -> None:
    """Nothing moves: every bandwidth is infinite and every time is 0."""
    links = links_of(cluster(1, 1))
    sent = np.array([1e9])
    assert links.all_to_all == inf
    assert exchange.row_wise_seconds(sent, np.array([True]), links).tolist() == [0.0]
    assert exchange.data_parallel_seconds(sent, np.array([1e9]), 9.0, links).tolist() == [9.0]


def test_exchanges_by_hand() -> None:
    """100 bytes row-wise at 20 (pooled) and 10 (sequence) bytes a second, table-row-wise inside a
    machine and 10 between machines; 40 bytes of a replica's gradient at 4, and nine passes at
    10."""
    sent, pooled = np.array([100.0, 100.0]), np.array([True, False])
    assert exchange.row_wise_seconds(sent, pooled, TWO_MACHINES).tolist() == [5.0, 10.0]
    across = np.array([10.0, 10.0])
    two_steps = exchange.table_row_wise_seconds(sent, across, pooled, TWO_MACHINES)
    assert two_steps.tolist() == [1.0 + 2.0, 2.0 + 2.0]
    reduced = exchange.data_parallel_seconds(np.array([40]), np.array([10.0]), 9.0, TWO_MACHINES)
    assert reduced.tolist() == [10.0 + 36.0]


def test_pooled_outputs_are_bags() -> None:
    """512 samples, 3 features: 3.5 ids per bag give whole bags, 0.25 ids a quarter of them."""
    shared = {"num_features": 3, "pooling_factor": 3.5}
    found = traffic_of(model(shared, {"pooling_factor": 0.25}), 8, False)
    assert found.ids.tolist() == [512 * 10.5, 128]
    assert found.outputs.tolist() == [512 * 3, 128]


def test_sequences_return_every_id() -> None:
    """A sequence's outputs are its ids."""
    found = traffic_of(model({"output": "sequence", "sequence_length": 20}), 8, False)
    assert found.ids.tolist() == found.outputs.tolist() == [10_240]


def test_deduplication_drops_repeats_of_sequences_only() -> None:
    """2.4% of a sequence's ids remain; a pooled table keeps all of its ids."""
    seq = {"output": "sequence", "sequence_length": 20, "access": {"kind": "unknown",
           "unique_fraction": 0.024}}  # fmt: skip
    found = traffic_of(model(seq, {"pooling_factor": 20}, dedup=True), 8, False)
    assert found.ids.tolist() == [pytest.approx(245.76), 10_240]
    assert found.outputs[0] == found.ids[0]
    assert found.raw_ids.tolist() == [10_240, 10_240]
    assert found.dedup_lookups.tolist() == [10_240, 0]


def test_distinct_rows_of_the_global_batch() -> None:
    """8 ranks draw 4,096 ids of 1,000 equally popular rows: 1000 · (1 − 0.999^4096); only if asked
    for."""
    assert traffic_of(model({}), 8, False).distinct.tolist() == [0.0]
    found = traffic_of(model({}), 8, True).distinct
    assert found[0] == pytest.approx(1000 * (1 - 0.999**4096))
