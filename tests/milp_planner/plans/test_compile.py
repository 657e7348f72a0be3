"""Options become an Instance that keeps the format's rules and the prices.

Ranks that overflow whatever is chosen: by hand, and never if a plan exists.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from formulations.instance import Instance, Scope, Where
from formulations.instance.file import instance_from_dict, instance_to_dict
from formulations.instance.validate import validate
from formulations.result.check import check
from formulations.result.placement import Placement
from milp_planner.inputs import Cluster
from milp_planner.plans.compile import compile_instance
from milp_planner.plans.forced import Forced, TableLeast, forced_overflow
from milp_planner.pricing import price
from milp_planner.pricing.entries import MOMENTS, SHARD_NAMES, alive
from milp_planner.pricing.outside import capacities
from tests.formulations.brute_force import brute_force
from tests.milp_planner.pricing.build import cluster, model, uneven_cluster

TABLES = st.fixed_dictionaries(
    {
        "rows": st.integers(1, 10**7),
        "dim": st.sampled_from([16, 64, 100, 256]),
        "kind": st.sampled_from(["torchrec", "dynamicemb"]),
        "output": st.sampled_from(["pooled", "sequence"]),
        "optimizer": st.sampled_from(["none", "sgd", "adam", "rowwise_adagrad"]),
        "access": st.sampled_from(
            [
                "unknown",
                {"kind": "zipf", "alpha": 1.1},
                {"kind": "zipf", "alpha": 1.1, "hot_ids": [0]},
                {"kind": "unknown", "measured_skew": {"max_over_mean": 2.0, "ranks": 4}},
            ]
        ),
    }
)
CLUSTERS = st.sampled_from(
    [cluster(1, 1), cluster(1, 4), cluster(2, 2), uneven_cluster(), cluster(2, 2, hbm=0)]
)


def compiled(*tables: dict[str, Any], site: Cluster | None = None, **workload: Any) -> Instance:
    """The Instance of some tables on one machine of eight ranks."""
    return compile_instance(price(model(*tables, **workload), site or cluster()))


def first_places(instance: Instance, options: list[int]) -> Placement:
    """A well-formed placement: every shard on the first ranks its block allows."""
    ranks = []
    for option in options:
        blocks = []
        for index in instance.blocks_of(option):
            block = instance.block(index)
            machines = block.places or range(len(instance.machines))
            if block.where == Where.EVERY_RANK:
                found = list(range(instance.num_ranks))
            elif block.where == Where.LIST:
                found = list(block.places or ())
            elif block.where == Where.ONE_MACHINE:
                found = [r for m in list(machines)[: block.count] for r in instance.machines[m]]
            elif block.where == Where.ANY_RANK_OF_ONE_MACHINE:
                found = [instance.machines[next(iter(machines))][0]] * block.count
            else:
                found = [(block.places or (0,))[0]] * block.count
            blocks.append(np.array(found, dtype=np.int64))
        ranks.append(blocks)
    return Placement(np.array(options, dtype=np.int64), ranks)


@given(
    st.lists(TABLES, min_size=1, max_size=3),
    CLUSTERS,
    st.sampled_from(["additive", "largest_collective"]),
)
@settings(max_examples=40, deadline=None)
def test_instances_are_valid_and_survive_their_file(
    tables: list[dict[str, Any]], site: Cluster, buffers: str
) -> None:
    """Arrays built directly pass every rule of the format and survive its file."""
    instance = compiled(*tables, site=site, buffers=buffers)
    validate(instance)
    assert instance_from_dict(instance_to_dict(instance)).fingerprint == instance.fingerprint


@given(st.lists(TABLES, min_size=1, max_size=3), CLUSTERS, st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_loads_of_a_placement_are_its_prices(
    tables: list[dict[str, Any]], site: Cluster, random: Any
) -> None:
    """The loads that ``check`` sums over ranks are the prices of the shards."""
    options = price(model(*tables), site)
    instance = compile_instance(options)
    chosen = [random.choice(options.of(t)) for t in range(len(tables))]
    loads = check(instance, first_places(instance, chosen)).loads
    assert loads is not None
    cost, held, ddr = np.zeros(5), np.zeros(len(SHARD_NAMES), dtype=np.int64), 0
    for option in chosen:
        lo, hi = options.entries.first[option : option + 2]
        choice = options.choices[option]
        positions = {
            "row_wise": site.num_ranks, "data_parallel": site.num_ranks,
            "table_row_wise": choice.machine_ranks,
            "grid_shard": choice.machine_ranks * choice.columns,
        }.get(choice.sharding, choice.columns)  # fmt: skip
        times = options.entries.repeat[lo:hi] if hi - lo > 1 else np.array([positions])
        times = times * (choice.columns if choice.sharding == "grid_shard" and hi - lo > 1 else 1)
        cost += (options.entries.cost[lo:hi] * times[:, None]).sum(axis=0)
        held += (options.entries.ledger[lo:hi] * times[:, None]).sum(axis=0)
        ddr += int((options.entries.ddr[lo:hi] * times).sum())
    assert loads.cost.sum(axis=0).tolist() == cost.tolist()
    sums = {moment: int(held @ alive(moment)) for moment in MOMENTS}
    *near, far = zip(instance.resources, loads.use, strict=True)
    assert far[1].sum() == ddr
    for resource, use in near:
        moment = resource.name.partition("@")[2]
        assert int(use.sum()) == sums[moment] if moment else int(use.sum()) in sums.values()


def test_resources_are_what_the_cluster_leaves() -> None:
    """Each rank's HBM after its reservation, each machine's DDR."""
    site = cluster(2, 4, reservations={"hbm_percent": 15, "kjt_multiple": 0})
    sent = 3 * 512 * 64 * 4  # gradients of the activations: as activations, put in order, as sent
    hbm, ddr = compiled({}, site=site).resources
    assert (hbm.name, hbm.scope, ddr.name, ddr.scope) == ("hbm", Scope.RANK, "ddr", Scope.MACHINE)
    assert hbm.capacity.tolist() == [80 * 2**30 * 85 // 100 - sent] * 8
    assert ddr.capacity.tolist() == [95 * 10**10] * 2


def test_places_of_every_sharding_type() -> None:
    """Each sharding type gets the kind of place that the runtime needs."""
    instance = compiled({"dim": 128}, site=cluster(4, 8))
    found = {}
    for option, name in enumerate(instance.option_names):
        block = instance.block(int(instance.option_blocks[option]))
        found[name.split("/")[0]] = (block.where, block.count, block.distinct)
    assert found == {
        "data_parallel": (Where.EVERY_RANK, 1, False),
        "table_wise": (Where.ANY_RANK, 1, False),
        "column_wise:2": (Where.ANY_RANK, 2, False),
        "column_wise:4": (Where.ANY_RANK, 4, False),
        "row_wise": (Where.EVERY_RANK, 1, False),
        "table_row_wise": (Where.ONE_MACHINE, 1, True),
        "table_column_wise:2": (Where.ANY_RANK_OF_ONE_MACHINE, 2, False),
        "table_column_wise:4": (Where.ANY_RANK_OF_ONE_MACHINE, 4, False),
        "grid_shard:2": (Where.ONE_MACHINE, 2, True),
        "grid_shard:4": (Where.ONE_MACHINE, 4, True),
    }


def test_pinned_ranks_become_lists() -> None:
    """A rank that is named twice holds two shards, each in its own block."""
    pin = {"sharding_type": "column_wise", "mode": "HBM_ONLY", "ranks": [5, 5, 1, 0]}
    instance = compiled({"dim": 128, "constraints": {"pin": pin}})
    validate(instance)
    blocks = [instance.block(b) for b in instance.blocks_of(0)]
    assert [b.places for b in blocks] == [(5,), (5,), (1,), (0,)]
    assert all(b.where == Where.LIST for b in blocks)


@pytest.mark.usefixtures("even_batches")
def test_largest_collective_is_one_resource_a_collective() -> None:
    """The largest collective is the peak: each resource counts all tables and its own buffers."""
    seq = {"rows": 8000, "output": "sequence", "sequence_length": 10}
    tables = seq, {"rows": 4000}
    instance = compiled(*tables, buffers="largest_collective")
    names = [r.name for r in instance.resources]
    assert len(names) == 7
    assert "hbm:torchrec/sequence/row_wise" in names
    additive = compiled(*tables)
    chosen = [instance.option_index(t, "row_wise/HBM_ONLY") for t in (0, 1)]
    peaks = check(instance, first_places(instance, chosen)).loads
    total = check(additive, first_places(additive, chosen)).loads
    assert peaks is not None
    assert total is not None
    use = {name: int(peaks.use[i][0]) for i, name in enumerate(names)}
    first, second = 2 * 512 * 10 * 64 * 4, 512 * 8 * 64 * 4  # a sequence is permuted
    tables_only = int(total.use[0][0]) - first - second
    assert use["hbm:torchrec/sequence/row_wise"] == tables_only + first
    assert use["hbm:torchrec/pooled/row_wise"] == tables_only + second
    assert use["hbm:torchrec/pooled/table_wise"] == tables_only


def test_one_collective_needs_no_further_resources() -> None:
    """If there is one collective, both buffer rules agree."""
    dyn = {"kind": "dynamicemb"}
    assert compiled(dyn, dyn).fingerprint == compiled(
        dyn, dyn, buffers="largest_collective"
    ).fingerprint  # fmt: skip


def test_fusion_reaches_the_instance() -> None:
    """check rejects two HYBRID tables at different ratios, but not HBM_ONLY beside CACHING."""
    dyn = {"kind": "dynamicemb"}
    instance = compiled(dyn, dyn)

    def violations(first: str, second: str) -> tuple[str, ...]:
        names = (f"row_wise/{first}", f"row_wise/{second}")
        chosen = [instance.option_index(t, name) for t, name in enumerate(names)]
        return check(instance, first_places(instance, chosen)).violations

    assert violations("HYBRID/0.3/roundrobin", "HYBRID/0.4/roundrobin")
    assert violations("HYBRID/0.3/roundrobin", "HBM_ONLY/roundrobin")
    assert violations("HYBRID/0.3/roundrobin", "HOST_ONLY/roundrobin")
    assert not violations("HYBRID/0.3/roundrobin", "HYBRID/0.3/roundrobin")
    assert not violations("HBM_ONLY/roundrobin", "CACHING/0.4/roundrobin")
    assert not violations("HBM_ONLY/roundrobin/beside_caching", "HYBRID/0.4/roundrobin")


@pytest.mark.parametrize("objective", ["total", "busiest_rank", "step_time"])
def test_objective_and_phases(objective: str) -> None:
    """The five phases of the design, and the requested objective."""
    instance = compile_instance(price(model({}), cluster()), objective)
    assert instance.objective == objective
    assert instance.phases == ("fwd_compute", "fwd_comms", "bwd_compute", "bwd_comms", "prefetch")


HOT = {"kind": "unknown", "peak_skew": {"max_over_mean": 2.0, "ranks": 2}}
ROWS: dict[str, Any] = {
    "rows": 1000, "output": "sequence", "sequence_length": 1, "access": HOT,
    "optimizer": "none", "constraints": {"sharding_types": "row_wise", "modes": ["HBM_ONLY"]},
}  # fmt: skip


def test_the_overflow_by_hand() -> None:
    """500 rows of 256 bytes. Of two ranks' 512 ids each rank may get twice the mean, 1,024: 8
    bytes each, and as much for those sent; 16 for each bag of both ranks; two rows of output
    each when they are sent. The replica of the second table holds rows and ids; the third may
    lie elsewhere."""
    replica = {"constraints": {"sharding_types": "data_parallel"}, "rows": 10}
    read = model(ROWS, replica, {"rows": 100}, mode="inference")
    site = cluster(1, 2, hbm="600kB", ddr="0B")
    found = forced_overflow(price(read, site))
    buffers = 2 * (8 * 1024 + 16 * 1024 + 1024 * 256)
    first = TableLeast("t0", 500 * 256 + buffers, buffers)
    second = TableLeast("t1", 10 * 256 + 8 * 512, 8 * 512)
    moment = "forward_send"
    assert found == Forced(
        ranks=(0, 1),
        all_ranks=2,
        moment=moment,
        least=first.least + second.least,
        room=capacities(read, site)[moment][0],
        tables=(first, second),
    )
    assert "t0 685.0 KiB" in str(found)
    assert "on each of all 2 ranks" in str(found)
    assert Forced.from_dict(found.to_dict()) == found


def test_one_rank_alone_is_named() -> None:
    """The first rank has 501 of 1,001 rows, the last of which does not fit."""
    read = model({**ROWS, "rows": 1001}, mode="inference", batch_per_rank=1)
    site = cluster(1, 2, hbm="200kB", ddr="0B")
    found = forced_overflow(price(read, site))
    assert found is None
    tight = cluster(1, 2, hbm=f"{500 * 256 + 600}B", ddr="0B")
    found = forced_overflow(price(read, tight))
    assert found is not None
    assert found.ranks == (0,)
    assert "on rank 0, where" in str(found)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["row_wise", "table_wise", "data_parallel"]), min_size=1, max_size=3),
    st.sampled_from([["HBM_ONLY"], ["HBM_ONLY", "HOST_ONLY"]]),
    st.integers(200, 1500),
    st.sampled_from(["0B", "300kB", "1GB"]),
    st.booleans(),
)
def test_nothing_fits_where_a_rank_is_named(
    types: list[str], modes: list[str], hbm: int, ddr: str, both: bool
) -> None:
    """If a rank is named, brute force finds no plan; with row-wise tables in HBM only, it finds one
    if no rank is named."""
    tables = [
        {**ROWS, "rows": 500 * (i + 1), "constraints": {
            "sharding_types": [each, "row_wise"] if both else each, "modes": modes}}
        for i, each in enumerate(types)
    ]  # fmt: skip
    tables = [t for t in tables if "HOST_ONLY" not in modes or "data_parallel" not in str(t)]
    assume(tables)
    options = price(model(*tables), cluster(1, 2, hbm=f"{hbm}kB", ddr=ddr))
    found = forced_overflow(options)
    truth = brute_force(compile_instance(options)).objective
    if found is not None:
        assert truth is None
    elif set(types) == {"row_wise"} and modes == ["HBM_ONLY"]:
        assert truth is not None
