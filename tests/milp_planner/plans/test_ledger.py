"""The ledger of a plan: all that the Instance charges, and how far batch and burst may grow.

Several moments of a step: auto proves what brute force finds, and certificates close.

A percentage that covers the exchange's buffers: two constraints, and the larger one decides.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import milp_planner
from formulations import Instance, Settings, solve
from formulations.evidence.verify import verify
from milp_planner import plan
from milp_planner.errors import BadInput
from milp_planner.features.plan.held import held_info, notes
from milp_planner.inputs import Cluster, Model
from milp_planner.integrations.exports import dynamicemb as export
from milp_planner.plans.compile import compile_instance
from milp_planner.plans.growth import Overflow, growth_of
from milp_planner.plans.ledger import LedgerInfo, ledger_of
from milp_planner.plans.placement import Plan
from milp_planner.pricing import price
from milp_planner.pricing.entries import MOMENTS
from milp_planner.pricing.outside import at_moment, exchange_bytes
from tests.formulations.brute_force import brute_force
from tests.milp_planner.pricing.build import cluster, model

SEQ = {"rows": 80_000, "dim": 64, "output": "sequence", "sequence_length": 50}
HOT = {"kind": "unknown", "peak_skew": {"max_over_mean": 2.0, "ranks": 8}}
ROW_WISE = {"constraints": {"sharding_types": ["row_wise"]}}
GB = 2**30


def planned(read: Model, site: Cluster | None = None) -> Plan:
    """A plan that is found at once."""
    return milp_planner.plan(read, site or cluster(), formulation="greedy", time_limit=5)


def known(plan: Plan) -> LedgerInfo:
    """Its ledger, which must exist."""
    found = ledger_of(plan)
    assert found is not None
    return found


@pytest.mark.parametrize("buffers", ["additive", "largest_collective"])
@pytest.mark.parametrize("wire", ["fp32", "fp16"])
def test_every_rank_has_the_room_that_the_instance_leaves_it(buffers: str, wire: str) -> None:
    """The least room of any HBM resource on the rank, within the half percent of merged moments."""
    tables = [{"rows": 50_000}, {**SEQ, **ROW_WISE}, {**SEQ, "dim": 128, "rows": 9_000}]
    plan = planned(model(*tables, batch_per_rank=2048, exchange_dtype=wire, buffers=buffers))
    verdict = plan.verdict
    assert verdict is not None
    assert verdict.loads is not None
    left = [
        resource.capacity - use
        for resource, use in zip(plan.instance.resources, verdict.loads.use, strict=True)
        if resource.name.startswith("hbm")
    ]
    for place in known(plan).hbm:
        least = min(int(each[place.place]) for each in left)
        assert place.used == max(place.moments.values())
        assert -8 <= place.room - least <= place.whole // 200


def test_the_assumed_share_and_the_headroom_are_of_the_whole_memory() -> None:
    """80 GiB: 10% assumed, 5% kept free, and a sentence that says so."""
    read = model(SEQ).model_copy(update={"outside_embeddings": None})
    found = known(planned(read, cluster(reservations={"kjt_multiple": 0})))
    place = found.hbm[0]
    assert (place.whole, place.headroom) == (80 * GB, 4 * GB)
    assert place.entries["assumed"] == 8 * GB
    assert found.assumed is not None
    assert found.meaning.keys() >= place.entries.keys()


def test_bytes_in_an_external_store_by_hand() -> None:
    """8,192 rows on 8 ranks, 1,536 bytes each with Adam's state: 12 MiB in the store and none in
    DDR, and the export names it."""
    table = {"rows": 8192, "dim": 128, "kind": "dynamicemb", "optimizer": "adam"}
    limits = {"modes": ["CACHING"], "cache_ratios": ["1/2"]}
    found = planned(model({**table, "external_storage": "ps", "constraints": limits}))
    ledger = known(found)
    assert ledger.stores == {"ps": 8192 * 1536}
    assert not any("host_tables" in place.entries for place in ledger.ddr)
    held = held_info(found)
    assert held is not None and notes(held)[1].startswith(
        "ps, an external store, keeps 12 MiB of rows, which no memory here counts"
    )
    assert "external stores are named, not built: ps" in export.notes(found)
    near = known(planned(model({**table, "constraints": limits})))
    assert near.stores == {}
    assert [place.entries["host_tables"] for place in near.ddr] == [8192 * 1536]


def test_a_plan_that_counts_other_bytes_has_no_ledger() -> None:
    """For instance one of an earlier version: a byte more in a shard."""
    plan = planned(model(SEQ))
    use = plan.instance.shard_use + 1
    assert ledger_of(replace(plan, instance=replace(plan.instance, shard_use=use))) is None


def test_the_largest_batch_fits_and_a_larger_one_does_not() -> None:
    """With the same options and places, it fits at the stated batch and at no larger one."""
    read = model({**SEQ, **ROW_WISE, "access": HOT}, batch_per_rank=65_536)
    plan = planned(read)
    growth = growth_of(plan)
    assert growth is not None
    assert growth.batch is not None
    assert growth.batch.now == 8 * 65_536

    def room(batch: float) -> int:
        workload = read.workload.model_copy(update={"batch_per_rank": int(batch) // 8})
        again = planned(read.model_copy(update={"workload": workload}))
        if again.outcome.placement is None:
            return -1
        return min(place.room for place in known(again).hbm)

    assert room(growth.batch.at) >= 0
    assert room(growth.batch.at * 1.02) < 0


def test_the_burst_that_fills_the_first_rank_by_hand() -> None:
    """Twice the mean is planned for; each further mean adds its ids and rows, both twice."""
    rows = 65_536 * 50
    plan = planned(
        model({**SEQ, **ROW_WISE, "access": HOT}, batch_per_rank=65_536), cluster(hbm="5GiB")
    )
    growth = growth_of(plan)
    assert growth is not None
    size = 64 * 4 * rows
    mean = 2 * (2 * 8 * rows + size)  # ids of two batches; rows, and the same in fp32 as sent
    place = known(plan).hbm[0]
    expected = 2.0 + place.room / mean
    assert growth.burst == Overflow(pytest.approx(2.0), pytest.approx(expected), 0)
    assert growth.tables == ("t0",)


def test_whole_rows_do_not_follow_a_burst() -> None:
    """With table-wise sequences and pooled outputs, no burst fills a rank."""
    whole = {**SEQ, "access": HOT, "constraints": {"sharding_types": ["table_wise"]}}
    growth = growth_of(planned(model(whole, batch_per_rank=4096)))
    assert growth is not None
    assert growth.burst is None


@pytest.mark.parametrize("wire", ["fp32", "fp16"])
def test_rows_and_buffers_of_tables_are_what_shards_hold(wire: str) -> None:
    """Summed over tables, they are what all ranks hold of these entries; rows of floats by hand."""
    tables = [{"rows": 50_000}, SEQ, {**SEQ, "dim": 128, "rows": 9_000}]
    tables = [{**each, **ROW_WISE} for each in tables]
    plan = planned(model(*tables, batch_per_rank=2048, exchange_dtype=wire, mode="inference"))
    found = known(plan)
    assert [each.rows for each in found.tables] == [
        4 * 64 * 50_000,
        4 * 64 * 80_000,
        4 * 128 * 9_000,
    ]
    assert sum(each.rows for each in found.tables) == sum(p.entries["weights"] for p in found.hbm)
    passing = ("inputs", "lengths", "output", "send_buffer", "encoding")
    assert {place.moment for place in found.hbm} == {"forward_send"}
    assert sum(each.buffers for each in found.tables) == sum(
        place.entries.get(name, 0) for place in found.hbm for name in passing
    )
    held = held_info(plan)
    assert held is not None
    largest = max(found.tables, key=lambda each: each.buffers)
    assert f"largest buffers, on all ranks together: {largest.name} " in notes(held)[0]


def test_a_measured_peak_that_grows_with_the_batch_limits_it() -> None:
    """20 GiB at 128 samples per rank, with 32 MiB per sample. If the peak is constant, C times the
    samples fill the other 60 GiB with exchange; if it grows, b times do, where 16 + 4 b + 60 b/C =
    80. If no bytes per sample are stated, the sentence says that no growth is counted."""
    long = {**SEQ, "sequence_length": 2000, "constraints": {"sharding_types": ["table_wise"]}}
    read = model(*[long] * 8, batch_per_rank=128)
    said: dict[str, object] = {"measured_peak": "20GiB"}
    grows = {"measured_batch": 128, "activation_bytes_per_sample": "32MiB"}

    def batch(outside: dict[str, object]) -> tuple[float, str]:
        plan = planned(Model.from_dict({**read.to_dict(), "outside_embeddings": outside}))
        found = held_info(plan)
        assert found is not None
        assert found.growth is not None
        assert found.growth.batch is not None
        [told] = [line for line in notes(found) if line.startswith("global batch")]
        return found.growth.batch.at / 8, told

    most, told = batch({**said, **grows})
    assert "is not stated" not in told
    constant, told = batch(said)
    assert most / 128 == pytest.approx(64 / (4 + 60 * 128 / constant), rel=0.02)
    assert most < 0.8 * constant
    assert "activation_bytes_per_sample is not stated" in told


def test_host_memory_of_loaders_and_checkpoints_by_hand() -> None:
    """80,000 rows of 64 floats in host memory and 9,000 in HBM, with one number of state each, on
    eight ranks, each of which has 2 workers that keep 2 batches of 512 samples of 1 kB ready; a
    checkpoint copies all rows and state. The machine has what the Instance leaves."""
    host = {"rows": 80_000, "constraints": {"modes": ["HOST_ONLY"], "sharding_types": "table_wise"}}
    near = {"rows": 9_000, "constraints": {"modes": ["HBM_ONLY"], "sharding_types": "table_wise"}}
    memory = {"loader_workers": 2, "bytes_per_sample": 1000, "checkpoint": "staged"}
    data = {**model(host, near).to_dict(), "host_memory": memory}
    plan = planned(Model.from_dict(data))
    [place] = known(plan).ddr
    row = 64 * 4 + 4
    assert place.entries == {
        "host_tables": 80_000 * (row - 4),  # row-wise state stays in HBM
        "checkpoint_staging": 89_000 * row,
        "loaders": 8 * 2 * 2 * 512 * 1000,
    }
    assert place.moment == "checkpoint"
    assert place.moments[""] == place.used - 89_000 * row
    verdict = plan.verdict
    assert verdict is not None
    assert verdict.loads is not None
    assert plan.instance.resources[-1].capacity[0] - verdict.loads.use[-1][0] == place.room
    assert known(plan).assumed is None
    silent = known(planned(model(host))).assumed
    assert silent is not None
    assert silent.startswith("no host memory is reserved for data loaders and checkpoints")


def test_a_checkpoint_that_does_not_fit_is_refused() -> None:
    """2 GiB of rows fit HBM, but a host of 1 GiB cannot hold their copy."""
    read = model({"rows": 2**23, "optimizer": "none"})
    site = cluster(ddr="1GiB")
    assert planned(read, site).outcome.placement is not None
    data = {**read.to_dict(), "host_memory": {"checkpoint": "staged"}}
    refused = milp_planner.plan(Model.from_dict(data), site, time_limit=5)
    assert refused.outcome.status.value == "infeasible"


SIZES = ((400_000, 1), (150_000, 2), (60_000, 1))
"""Rows and ids a sample of each table."""


def instance(mebibytes: int) -> Instance:
    """Three sequence tables on two ranks; the exchange takes as much as the tables."""
    tables = [
        {"rows": rows, "output": "sequence", "sequence_length": ids,
         "constraints": {"modes": ["HBM_ONLY", "HOST_ONLY"]}}
        for rows, ids in SIZES
    ]  # fmt: skip
    read = model(*tables, batch_per_rank=2**17, exchange_dtype="fp16")
    found = compile_instance(price(read, cluster(1, 2, hbm=f"{mebibytes}MiB", ddr="120MiB")))
    names = [resource.name for resource in found.resources]
    assert names == ["hbm@forward_send", "hbm@backward_send", "ddr"]
    return found


@pytest.mark.parametrize("mebibytes", [300, 450, 500, 550, 700, 900])
def test_auto_proves_the_optimum_over_all_moments(mebibytes: int) -> None:
    """Infeasible, tight and wide cases agree with brute force, are certified, and verify."""
    problem = instance(mebibytes)
    truth = brute_force(problem)
    outcome = solve(problem, "auto", Settings(time_limit=20))
    assert outcome.objective == truth.objective
    assert outcome.status.value == ("infeasible" if truth.objective is None else "optimal")
    assert outcome.certified_bound == truth.objective
    assert outcome.certificate is not None
    assert verify(problem, outcome).ok


def test_every_moment_counts() -> None:
    """In some case, ignoring one moment would allow a plan better than any that fits."""
    gains = {0: False, 1: False}
    for mebibytes in range(440, 700, 20):
        problem = instance(mebibytes)
        fits = brute_force(problem).objective
        for moment in gains:
            resources = list(problem.resources)
            free = np.full_like(resources[moment].capacity, 2**40)
            resources[moment] = replace(resources[moment], capacity=free)
            ignoring = brute_force(replace(problem, resources=tuple(resources))).objective
            assert ignoring is not None or fits is None
            gains[moment] |= ignoring is not None and (fits is None or ignoring < fits)
    assert all(gains.values())


MIB = 2**20
GIVEN = {"hbm_percent": 25, "kjt_multiple": 0, "min_headroom": 5}


def inputs(batch: int, covers: str, **held: Any) -> tuple[Model, Cluster]:
    """A table of 740 MiB without state on one rank of 1000 MiB, a quarter of which is reserved."""
    table = {
        "rows": 740 * MIB // 256, "optimizer": "sgd", "pooling_factor": 1,
        "constraints": {"modes": ["HBM_ONLY"], "sharding_types": ["table_wise"]},
    }  # fmt: skip
    reservations = {**GIVEN, "percent_covers": covers, **held}
    asked = cluster(1, 1, hbm="1000MiB", ddr="1GiB", reservations=reservations)
    return model(table, batch_per_rank=batch), asked


def status(batch: int, covers: str) -> str:
    """Status of the plan."""
    return str(plan(*inputs(batch, covers), time_limit=10).outcome.status.value)


def test_the_larger_of_the_two_decides() -> None:
    """740 of 750 MiB fit beside the percentage if buffers are within it: of 1000 MiB, 50 stay free
    and 210 are left for buffers. Buffers above that count for themselves."""
    assert status(100_000, "outside") == "infeasible"  # the buffers alone exceed 10 MiB
    assert status(100_000, "buffers") == "optimal"
    assert status(600_000, "buffers") == "infeasible"  # the buffers alone exceed 210 MiB
    assert status(1, "outside") == status(1, "buffers") == "optimal"


def test_the_constraints_by_hand() -> None:
    """Rows have 75% of 1000 MiB, every moment 95% of it less its exchange."""
    asked = inputs(100_000, "buffers")
    options = price(*asked)
    instance = compile_instance(options)
    rooms = {r.name: r.capacity.tolist() for r in instance.resources}
    assert rooms.pop("hbm@rows") == [750 * MIB]
    exchange = exchange_bytes(asked[0], 1)
    assert rooms["hbm"][0] in {950 * MIB - at_moment(exchange, moment) for moment in MOMENTS}
    column = [r.name for r in instance.resources].index("hbm@rows")
    assert instance.shard_use[:, column].tolist() == [740 * MIB]


def test_the_ledger_counts_buffers_once() -> None:
    """No percentage is drawn beside the buffers, and what is shown is what is charged."""
    made = plan(*inputs(100_000, "buffers"), time_limit=10)
    ledger = ledger_of(made)
    assert ledger is not None
    (place,) = ledger.hbm
    assert "reserved" not in place.entries
    assert place.headroom == 50 * MIB
    assert place.room >= 0


def test_a_reservation_without_a_percentage_is_refused() -> None:
    """There is nothing that could cover the buffers; unknown words are refused, too."""
    with pytest.raises(BadInput, match="percent_covers: buffers needs hbm_percent"):
        inputs(1, "buffers", hbm_percent=None)
    with pytest.raises(BadInput, match="percent_covers"):
        inputs(1, "all")
