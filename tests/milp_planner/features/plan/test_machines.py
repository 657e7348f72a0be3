"""How many machines would be enough if nothing fits, against enumeration."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from formulations import Settings, solve
from milp_planner import plan, verify
from milp_planner.features.plan.remedies import MOST_TIMES, with_more_machines
from milp_planner.features.plan.shortage import (
    advice,
    draw_shortage,
    shortage_of,
    with_diagnosis,
)
from milp_planner.inputs import Cluster
from milp_planner.inputs.changes import changed_at_scale, changed_cluster
from milp_planner.plans.compile import compile_for
from tests.milp_planner.features.explain.quick import truth
from tests.milp_planner.features.plan.test_ranks import drawn
from tests.milp_planner.pricing.build import cluster, model

#: A batch so small that the exchange's buffers fit beside the tables.
SMALL: dict[str, Any] = {"mode": "inference", "batch_per_rank": 1}
LIMITS = Settings(time_limit=20, workers=1)
WHOLE = {"modes": ["HBM_ONLY", "HOST_ONLY"], "sharding_types": "table_wise"}


@settings(max_examples=8, deadline=None)
@given(
    hbm=st.integers(60, 300), ddr=st.integers(60, 300),
    rows=st.lists(st.integers(1, 5), min_size=2, max_size=3),
)  # fmt: skip
def test_the_number_is_the_least_with_a_plan(hbm: int, ddr: int, rows: list[int]) -> None:
    """Machines of one rank; tables of 64 kB to 320 kB, whole, in HBM or in DDR. If three machines
    are not enough, no number is."""
    read = model(*({"rows": 250 * n, "constraints": WHOLE} for n in rows), **SMALL)
    site = cluster(1, 1, hbm=f"{hbm}kB", ddr=f"{ddr}kB", interconnect=None)
    linked = cluster(1, 1, hbm=f"{hbm}kB", ddr=f"{ddr}kB")
    does = [
        truth(
            compile_for(read, changed_cluster(linked, {"machines": n}), "total").instance
        ).objective
        is not None
        for n in (1, 2, 3)
    ]
    assume(not does[0])
    instance = compile_for(read, site, "total").instance
    outcome = with_diagnosis(instance, solve(instance, "cpsat", LIMITS), LIMITS)
    info = shortage_of(with_more_machines(outcome, read, site, LIMITS, 20).detail)
    enough = does.index(True) + 1 if any(does) else None
    assert info is not None and info.machines == enough
    assert info.machines_too_few == (MOST_TIMES if enough is None else enough - 1)


def test_plan_says_how_many_machines_would_do() -> None:
    """Five tables fill a rank each: five machines of one rank have a plan, four have none, and the
    sentence says so."""
    read = model(*[{"rows": 1000, "constraints": WHOLE}] * 5, **SMALL)
    site = cluster(1, 1, hbm="300kB", ddr="0B")
    none = plan(read, site, formulation="cpsat", settings=LIMITS)
    info = shortage_of(none.outcome.detail)
    assert info is not None and (info.machines, info.machines_too_few) == (5, 4)
    said = "or 5 machines like this one would do, for the same global batch (proved: one less is "
    said += "too few)"
    assert said in list(advice(info, "ps"))
    assert "each tier after reservations, with the others" in drawn(draw_shortage(info))
    assert plan(
        read, changed_cluster(site, {"machines": 5}), formulation="cpsat", settings=LIMITS
    ).tables
    assert not plan(
        read, changed_cluster(site, {"machines": 4}), formulation="cpsat", settings=LIMITS
    ).tables
    assert verify(none).ok


def test_machines_of_several_kinds_have_no_kind() -> None:
    """If machines differ, no number of them is tried."""
    data = cluster(2, 1, hbm="300kB", ddr="0B").to_dict()
    data["machines"][1]["ddr"] = 2048
    read = model(*[{"rows": 1000, "constraints": WHOLE}] * 5, **SMALL)
    none = plan(read, Cluster.from_dict(data), formulation="cpsat", settings=LIMITS)
    info = shortage_of(none.outcome.detail)
    assert info is not None and info.machines_now is None
    assert not any("machines like" in line for line in advice(info, "ps"))


def test_more_machines_share_the_global_batch() -> None:
    """Each takes its part, rounded up, unless another batch is asked for as well."""
    read = model({"rows": 1000, "constraints": {"sharding_types": "row_wise"}}, batch_per_rank=4096)
    whole = cluster(1, 2, hbm="8MiB", ddr="0B")
    larger, place = changed_at_scale(read, whole, {"machines": 2})
    assert (larger.workload.batch_per_rank, place.num_ranks) == (2048, 4)
    same, _ = changed_at_scale(read, whole, {"batch": 100, "machines": 3})
    assert same.workload.batch_per_rank == 100
    odd, _ = changed_at_scale(read, whole, {"machines": 3})
    assert odd.workload.batch_per_rank == 1366
