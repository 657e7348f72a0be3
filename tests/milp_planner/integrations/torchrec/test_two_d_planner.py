"""The sharding group chosen together with TorchRec's plan, on TorchRec's own estimates.

TorchRec's topology of a cluster with NVLink domains.
"""

from typing import Any

import pytest
import torch
from torchrec.distributed.planner import Topology
from torchrec.distributed.planner.types import CollectiveType, ParameterConstraints
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward

from formulations import Settings
from milp_planner.errors import BadInput
from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.sharding_group import group_of
from milp_planner.inputs.two_d import TwoD
from milp_planner.integrations.torchrec import MilpShardingPlanner
from milp_planner.integrations.torchrec.domains import topology_of
from milp_planner.integrations.torchrec.replicas import Replicas
from milp_planner.integrations.torchrec.two_d import TwoDShardingPlanner
from milp_planner.pricing import price
from milp_planner.pricing.exchange import Links
from scenarios.catalog import find_cluster
from tests.formulations.brute_force import brute_force
from tests.milp_planner.pricing.build import cluster, entry, model

from .models import bag_sharders, bags

INTRA, INTER, HOST = 600 * 2**30, 12.5 * 2**30, 32 * 2**30
QUICK = Settings(time_limit=30, workers=1)
SHAPES = [(4000, 32), (3000, 32), (2000, 32)]


def board(world: int, local: int, hbm: int = 2**30) -> Topology:
    """TorchRec's default bandwidths."""
    return Topology(world_size=world, local_world_size=local, compute_device="cuda", hbm_cap=hbm)


def limits(*kinds: str) -> dict[str, ParameterConstraints]:
    """Sharding types of every table, in HBM."""
    one = ParameterConstraints(sharding_types=[*kinds], compute_kernels=["fused"])
    return {f"t{index}": one for index in range(len(SHAPES))}


MORE: dict[str, Any] = {
    "constraints": limits("table_wise", "row_wise"), "batch_size": 64, "stats": [],
}  # fmt: skip


@pytest.mark.parametrize(("interval", "size"), [(1, 4), (100_000, 1)])
def test_brute_force_over_all_groups(interval: int, size: int) -> None:
    """4 ranks on 2 hosts. The replicas' bandwidth by hand: a pair on a host sends half over each
    link, one across hosts half over each rank's share of the network, 4 replicas half of each
    host's buffers over two shares."""
    groups = {
        (4, "one"): (2, None), (2, "strided"): (1, 2 * INTRA), (2, "contiguous"): (2, 2 * INTER),
        (1, "one"): (1, 4 * INTER),
    }  # fmt: skip
    truth = {}
    for (ranks, layout), (local, bandwidth) in groups.items():
        others = None if bandwidth is None else Replicas(bandwidth, HOST, interval)
        one = MilpShardingPlanner(topology=board(ranks, local), replicas=others, **MORE)
        problem = one.prepare(bags(SHAPES), bag_sharders())
        truth[ranks, layout] = brute_force(problem.instance).objective
    asked = TwoD(sync_interval=interval)
    found = TwoDShardingPlanner(board, 4, 2, asked, QUICK, "cpsat", **MORE)
    plan = found.plan(bags(SHAPES), bag_sharders())
    best = min(truth.values())
    assert (found.planner.outcome.before_goals or found.planner.outcome.objective) == best
    assert truth[size, "one"] == best
    assert len(found.tries) == 4
    assert all(each.bound >= best or each.best == best for each in found.tries)
    ranks = {rank for table in plan.plan[""].values() for rank in table.ranks}
    assert ranks <= set(range(size))
    assert found.arguments.get("sharding_group_size", 4) == size


def test_arguments() -> None:
    """The requested two groups of two are contiguous, so a host is a group."""
    asked = TwoD(sharding_group_size=2, layout="contiguous")
    found = TwoDShardingPlanner(board, 4, 2, asked, QUICK, "cpsat", **MORE)
    found.plan(bags(SHAPES), bag_sharders())
    arguments = {**found.arguments, "sharding_strategy": found.arguments["sharding_strategy"].name}
    assert arguments == {
        "world_size": 4, "sharding_group_size": 2, "use_inter_host_allreduce": True,
        "sharding_strategy": "DEFAULT", "node_group_size": 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("optimizer", "state"), [(torch.optim.SGD, 0), (torch.optim.Adagrad, 4 * 128), (None, 4)]
)
def test_sync_of_a_shard(optimizer: Any, state: int) -> None:
    """The vector of the page: 10^6 × 128 floats with 4 replicas on a host; the state is FBGEMM's,
    which defaults to row-wise Adagrad."""
    module = bags([(1_000_000, 128)])
    if optimizer is not None:
        apply_optimizer_in_backward(optimizer, module.parameters(), {"lr": 0.1})
    replicas = Replicas(INTRA * 4 / 3, HOST)
    one = MilpShardingPlanner(topology=board(16, 2, 2**40), replicas=replicas, stats=[])
    problem = one.prepare(module, bag_sharders())
    whole = next(o for o in problem.search_space if o.sharding_type == "table_wise")
    wanted = 2 * 3 / 4 * (512_000_000 + state * 1_000_000) / INTRA * 1e12
    assert replicas.sync(whole, whole.shards[0]) == pytest.approx(wanted, rel=1e-9)
    kernels = {option.compute_kernel for option in problem.search_space}
    assert kernels == {"fused", "fused_uvm", "dense"}


def test_what_is_refused() -> None:
    """Adam, tables that may only be cached, and the fully sharded strategy, whose memory TorchRec
    does not count."""
    adam = bags([(1000, 32)])
    apply_optimizer_in_backward(torch.optim.Adam, adam.parameters(), {"lr": 0.1})
    one = MilpShardingPlanner(topology=board(2, 2), replicas=Replicas(INTRA, HOST), stats=[])
    with pytest.raises(BadInput, match="'t0' in 2D: found Adam"):
        one.prepare(adam, bag_sharders())
    cached = {"t0": ParameterConstraints(compute_kernels=["fused_uvm_caching"])}
    one = MilpShardingPlanner(
        topology=board(2, 2), replicas=Replicas(INTRA, HOST), stats=[], constraints=cached
    )
    with pytest.raises(BadInput, match="'t0' in 2D: none of its kernels is averaged"):
        one.prepare(bags([(1000, 32)]), bag_sharders())
    with pytest.raises(BadInput, match="strategy default and an interval"):
        TwoDShardingPlanner(board, 4, 2, TwoD(strategy="fully_sharded"))


@pytest.mark.parametrize(
    ("kind", "exchange"),
    [("table_wise", 0.3125), ("row_wise", None), ("table_row_wise", 0.1627604167)],
)
def test_a_group_costs_what_torchrec_estimates(kind: str, exchange: float | None) -> None:
    """A strided group of 16 of 64 ranks, 2 on each of 8 hosts: at TorchRec's bandwidths our prices
    are TorchRec's estimates to 1e-6, and the page's vectors."""
    only = {"t0": ParameterConstraints(sharding_types=[kind], compute_kernels=["fused"],
                                       pooling_factors=[10.0])}  # fmt: skip
    one = MilpShardingPlanner(
        topology=board(16, 2, 2**40), constraints=only, batch_size=512, stats=[]
    )
    problem = one.prepare(bags([(1_000_000, 128)]), bag_sharders())
    perf = problem.search_space[0].shards[0].perf
    two_d = {"sharding_group_size": 16, "layout": "strided", "strategy": "default"}
    links = {"intra_machine": "600GiB/s", "inter_machine": "12.5GiB/s"}
    group = group_of(cluster(8, 8, interconnect=links, two_d=two_d))
    table = {"rows": 1_000_000, "dim": 128, "pooling_factor": 10.0,
             "constraints": {"sharding_types": [kind], "modes": ["HBM_ONLY"]}}  # fmt: skip
    same = Links(INTER, INTER, INTRA, INTRA, INTER, 8 * INTER, 8, 16)
    options = price(model(table), group, links=same)
    cost = options.entries.cost[entry(options, options.names[0])] / 1e9
    wanted = [perf.fwd_compute, perf.fwd_comms, perf.bwd_compute, perf.bwd_comms]
    assert cost[:4] == pytest.approx(wanted, rel=1e-6)
    assert exchange is None or perf.fwd_comms == pytest.approx(exchange, rel=1e-9)


def cluster_in_domains(count: int, ranks: int, sizes: list[int]) -> Cluster:
    """Equal machines in domains of a given size."""
    return Cluster.from_dict(
        {
            "name": "c", "machines": count, "ranks_per_machine": ranks, "hbm": "80GiB",
            "ddr": "1TB",
            "interconnect": {"intra_machine": "400GB/s", "inter_machine": "50GB/s",
                             "domains": {"machines": sizes}},
        }
    )  # fmt: skip


def test_two_racks() -> None:
    """144 ranks, groups of 72: NVLink within a rack, the network between racks."""
    found = topology_of(find_cluster("2xgb200-nvl72"))
    assert (found.world_size, found.local_world_size, found.intra_group_size) == (144, 4, 72)
    speed = found.comms_bandwidths.get_bw
    assert speed(4, 72, CollectiveType.ALL_TO_ALL) == 900e6
    assert speed(4, 144, CollectiveType.ALL_TO_ALL) == 50e6
    assert speed(1, 2, CollectiveType.ALL_TO_ALL) == 50e6
    assert speed(4, 144, CollectiveType.ALL_REDUCE) == 200e6


def test_one_rack_is_all_nvlink() -> None:
    """Groups in the only domain are connected by NVLink, too."""
    found = topology_of(find_cluster("gb200-nvl72"))
    assert found.intra_group_size == 4
    assert found.comms_bandwidths.get_bw(1, 18, CollectiveType.ALL_TO_ALL) == 900e6


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        (cluster_in_domains(3, 2, [1, 2]), r"domains of \[1, 2\] machines"),
        (cluster_in_domains(2, 1, [2]), "machines of one rank in a domain"),
        (find_cluster("mixed-h100"), "ranks or machines that differ"),
    ],
)
def test_what_torchrec_cannot_say(place: Cluster, sentence: str) -> None:
    """A cluster that TorchRec cannot express is refused in a sentence."""
    with pytest.raises(BadInput, match=sentence):
        topology_of(place)
