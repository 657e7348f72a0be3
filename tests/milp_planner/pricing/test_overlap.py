"""Phases, prices and hidden times of a pipelined step, by hand."""

from typing import Any

import numpy as np
import pytest

from formulations.result.check import check
from formulations.result.placement import Placement
from milp_planner.inputs.model import Workload
from milp_planner.plans.compile import compile_for, compile_instance, under_all
from milp_planner.pricing import Options, price
from milp_planner.pricing.overlap import hidden_times, ids_time, overlapped
from tests.milp_planner.pricing.build import cluster, entry, model, priced

#: Milliseconds: of 6 forward 1 goes on beside the exchange, of 10 backward 2.
DENSE = {
    "forward_ms": 6.0, "backward_ms": 10.0,
    "beside_forward_exchange_ms": 1.0, "beside_backward_exchange_ms": 2.0,
}  # fmt: skip
MS = 10**9


def test_ids_are_a_phase_of_their_own() -> None:
    """512 samples of 10 ids from each of 8 ranks: 327,680 bytes, at 400 GB/s · 8/7 (the part that
    stays on a rank crosses no link). Row-wise, a rank receives an eighth; replicas receive none."""
    options = priced({"pooling_factor": 10})
    time = ids_time(options)
    whole = 327_680 / (400e9 * 8 / 7) * 1e12
    assert time[entry(options, "table_wise/HBM_ONLY")] == round(whole) == 716_800
    assert time[entry(options, "row_wise/HBM_ONLY")] == pytest.approx(whole / 8, abs=1)
    assert time[entry(options, "data_parallel/HBM_ONLY")] == 0


@pytest.mark.parametrize(
    ("workload", "hidden"),
    [
        ({"pipeline": "none"}, (0, 1, 2, 0, 0)),
        ({"pipeline": "sparse_dist"}, (0, 1, 2, 16, 0)),
        ({"pipeline": "hugectr"}, (0, 1, 2, 16, 0)),
        ({}, (0, 1, 2, 16, 0)),
        ({"mode": "inference"}, (0, 1, 2, 0, 0)),
        ({"prefetch_pipeline": True}, (0, 1, 2, 6, 10)),
        ({"dense_part": None}, (0, 0, 0, 0, 0)),
    ],
)
def test_what_hides_what(workload: dict[str, Any], hidden: tuple[int, ...]) -> None:
    """compute, both exchanges, ids and prefetch: milliseconds that the dense part hides."""
    read = Workload.from_dict({"batch_per_rank": 1, "dense_part": DENSE, **workload})
    assert hidden_times(read) == tuple(ms * MS for ms in hidden)


def only(rank: int) -> dict[str, Any]:
    """Constraints that leave a table one option on one rank."""
    return {"sharding_types": ["table_wise"], "modes": ["HBM_ONLY"], "ranks": [rank]}


def two_tables(**workload: Any) -> Options:
    """A table of many ids pinned to rank 0, one of few pinned to rank 1, and a replica."""
    tables = (
        {"pooling_factor": 20, "rows": 100_000, "constraints": only(0)},
        {"pooling_factor": 1, "dim": 512, "rows": 100_000, "constraints": only(1)},
        {"pooling_factor": 1, "constraints": {"sharding_types": ["data_parallel"]}},
    )  # fmt: skip
    return price(model(*tables, **workload), cluster(1, 2))


@pytest.mark.parametrize(("beside", "whole"), [(0.001, 0.002), (0.0001, 0.0001), (0, 0)])
def test_a_plans_terms_by_hand(beside: float, whole: float) -> None:
    """From the prices of the five phases: lookups, gradients and updates of a rank are one sum, to
    which every rank adds the replica's; each exchange counts beyond what hides of it."""
    dense = {"forward_ms": whole, "backward_ms": 0.0, "beside_forward_exchange_ms": beside}
    options = two_tables(pipeline="sparse_dist", dense_part=dense)
    part, full = round(beside * MS), round(whole * MS)
    instance = compile_instance(options, "pipelined_step")
    assert instance.phases == ("compute", "fwd_comms", "bwd_comms", "ids", "prefetch")
    assert instance.hidden == (0, part, 0, full, 0)
    first, second, copy = (options.entries.cost[i].tolist() for i in range(3))
    ids = ids_time(options).tolist()
    replica = copy[0] + copy[2] + copy[3]
    compute = max(first[0] + first[2], second[0] + second[2]) + replica
    forward = max(first[1], second[1])
    backward = max(first[3], second[3])
    wanted = compute + forward - part + backward + max(0, max(ids) - full)
    # 512 samples of 20 ids from each of 2 ranks, 163,840 bytes at 400 GB/s · 2/1
    assert max(ids) == 204_800 and forward > part and compute > 0 and backward > 0
    placement = Placement(np.arange(3), [[np.array([0])], [np.array([1])], [np.array([0, 1])]])
    verdict = check(instance, placement)
    assert verdict.feasible
    assert verdict.objectives == {"pipelined_step": wanted}
    values = under_all(options)(placement)
    assert values.keys() == {"total", "busiest_rank", "step_time", "pipelined_step"}
    assert values["pipelined_step"] == wanted
    assert values["step_time"] == (
        max(first[0], second[0]) + copy[0] + forward + max(first[2], second[2]) + copy[2]
        + max(backward, 0) + copy[3]
    )  # fmt: skip


def test_one_barrier_is_no_more_than_two() -> None:
    """A rank that is slow in lookups and another that is slow in updates: the sum of maxima counts
    both, the maximum of sums one."""
    options = priced({"pooling_factor": 10}, {"pooling_factor": 3, "optimizer": "adam"})
    merged, cost = overlapped(options).cost[:, 0], options.entries.cost
    replicated = np.array([o.sharding == "data_parallel" for o in options.choices])
    shards = np.repeat(replicated, np.diff(options.entries.first))
    assert (merged == cost[:, 0] + cost[:, 2] + np.where(shards, cost[:, 3], 0)).all()
    assert (overlapped(options).cost[shards, 2] == 0).all()


def test_averaged_groups_keep_their_phase() -> None:
    """Averaging sharding groups is counted in full."""
    two_d = {"sharding_group_size": 2, "layout": "strided", "strategy": "fully_sharded"}
    compiled = compile_for(model({}), cluster(2, 2, two_d=two_d), "pipelined_step")
    assert compiled.instance.phases[-1] == "sync"
    assert compiled.instance.hidden == (0, 0, 0, 0, 0, 0)
