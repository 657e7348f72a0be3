"""The advice for an infeasible plan: exact to the byte, as a value for the cluster's file; why
nothing fits, in figures and in words.

Changes of the model if nothing fits: every reported one works when it is made.
"""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example as always
from hypothesis import given
from hypothesis import strategies as st

from formulations import Settings, Status, solve
from formulations.capacity import budget
from milp_planner import Plan, plan
from milp_planner.drawing.units import memory_name
from milp_planner.features.plan.shortage import (
    Remedy,
    TierShortage,
    advice,
    draw_shortage,
    memory_for,
    shortage_of,
    with_advice,
    with_diagnosis,
)
from milp_planner.inputs import Cluster, Model
from milp_planner.plans.compile import compile_for
from scenarios.catalog import find_cluster, find_model
from tests.formulations.examples import ANY, at, built, two_modes
from tests.milp_planner.features.example import example
from tests.milp_planner.features.plan.test_ranks import drawn
from tests.milp_planner.inputs import builders
from tests.milp_planner.pricing.build import cluster, model

LIMITS = Settings(time_limit=60, workers=1)


@given(
    tier=st.sampled_from(["hbm", "ddr"]),
    usable=st.integers(0, 2**40),
    percent=st.one_of(st.integers(0, 99), st.sampled_from([12.5, "1/3", 99.99])),
    dense=st.integers(0, 10**9),
    own=st.integers(0, 10**9),
    further=st.integers(0, 10**9),
)
@always(tier="hbm", usable=2**40, percent=99.99, dense=0, own=0, further=0)
def test_memory_is_the_least_with_that_usable_part(
    tier: str, usable: int, percent: object, dense: int, own: int, further: int
) -> None:
    """This memory leaves the usable part asked for; one byte less does not."""
    held = {"hbm_percent": percent, "ddr_percent": percent, "dense_parameter_bytes": dense,
            "hbm_bytes": further, "ddr_bytes": further}  # fmt: skip
    model = Model.from_dict(builders.model(builders.table()))

    def cluster(memory: int) -> Cluster:
        rank = {"hbm": memory, "reserved": own}
        return Cluster.from_dict(
            {"name": "c", "machines": [{"ddr": memory, "ranks": [rank]}], "reservations": held}
        )

    def part(memory: int) -> int:
        built = cluster(memory)
        return (built.usable_hbm(model) if tier == "hbm" else built.usable_ddr(model))[0]

    memory = memory_for(tier, usable, model, cluster(0))
    if memory is None:
        assert part(2**53 - 1) < usable
        return
    assert memory < 1024 or part(memory) >= usable
    assert usable == 0 or memory <= 1024 or part(memory - 1) < usable


def test_the_drives_that_leave_so_many_live_rows() -> None:
    """The least size, stale rows included; one byte less holds less."""
    model = Model.from_dict(builders.model(builders.table()))

    def cluster(size: int) -> Cluster:
        drives = {"size": size, "bandwidth": "2GB/s", "space_amplification": "7/3"}
        return Cluster.from_dict(builders.cluster(ssd=drives))

    size = memory_for("ssd", 10**9, model, cluster(10**7))
    assert size is not None
    assert min(cluster(size).usable_ssd()) >= 10**9 > min(cluster(size - 1).usable_ssd())


def test_no_memory_is_enough_when_all_is_reserved() -> None:
    """If 100% is reserved, nothing is left, however large the memory."""
    model = Model.from_dict(builders.model(builders.table()))
    cluster = Cluster.from_dict(builders.cluster(reservations={"hbm_percent": 100}))
    assert memory_for("hbm", 1, model, cluster) is None


@pytest.fixture(scope="module")
def small() -> Plan:
    """DCNv2 has no plan on one A10 whose machine has 8 GiB of DDR."""
    machine = {**find_cluster("1xa10").to_dict()["machines"][0], "ddr": 8 * 2**30}
    site = Cluster.from_dict({**find_cluster("1xa10").to_dict(), "machines": [machine]})
    found = plan(find_model("mlperf-dlrm-dcnv2"), site, settings=LIMITS)
    assert found.outcome.status == Status.INFEASIBLE
    return found


@pytest.mark.parametrize("tier", ["hbm", "ddr"])
def test_shipped_model_on_too_small_a_cluster(small: Plan, tier: str) -> None:
    """With the advice there is a plan, with one byte less provably none."""
    diagnosis: Any = small.outcome.detail["diagnosis"]
    assert all(entry["proved"] for entry in diagnosis["capacities"])

    def status(memory: int) -> Status:
        document = small.cluster.to_dict()
        machine = document["machines"][0]
        (machine if tier == "ddr" else machine["ranks"][0])[tier] = memory
        compiled = compile_for(small.model, Cluster.from_dict(document), "step_time")
        return solve(compiled.instance, "cpsat", LIMITS).status

    memory = diagnosis["advice"][tier]
    assert status(memory) in (Status.OPTIMAL, Status.FEASIBLE)
    assert status(memory - 1) == Status.INFEASIBLE


def test_the_tables_to_drop_are_enough(small: Plan) -> None:
    """Without the named tables, DCNv2 has a plan there."""
    diagnosis: Any = small.outcome.detail["diagnosis"]
    assert diagnosis["drop"]["proved"] and diagnosis["drop"]["tables"]
    document = small.model.to_dict()
    document["tables"] = [
        t for t in document["tables"] if t["name"] not in diagnosis["drop"]["tables"]
    ]
    rest = plan(Model.from_dict(document), small.cluster, formulation="cpsat", settings=LIMITS)
    assert rest.outcome.placement is not None


def test_what_the_proof_rests_on() -> None:
    """A certificate if sums or packing refute; else the solver's word, named as such."""
    # each rank could hold one table, but none may go to the third rank
    table = {"any": replace(at(ANY, 1, hbm=2), among=(0, 1))}
    packed = built([table] * 3, "total", [[0, 1, 2]], hbm=3)
    for instance, kind in ((two_modes(hbm=11), "certificate"), (packed, "solver")):
        outcome = with_diagnosis(instance, solve(instance, "cpsat", LIMITS), LIMITS)
        assert outcome.status == Status.INFEASIBLE
        assert (outcome.certificate is None) == (kind == "solver")
        diagnosis: Any = outcome.detail["diagnosis"]
        assert diagnosis["proof"] == {"kind": kind, "method": "cpsat", "exact": True}


def test_memories_of_several_collectives_grow_together() -> None:
    """With ``largest_collective`` there is a single HBM answer, and it is exact."""
    tables = [
        builders.table(name="p", rows=10_000, dim=64),
        builders.table(name="s", rows=10_000, dim=64, output="sequence", sequence_length=3),
    ]
    model = Model.from_dict(builders.model(*tables, buffers="largest_collective"))

    def small(memory: int) -> Cluster:
        held = {"hbm_percent": 0, "kjt_multiple": 0, "min_headroom": 0}
        return Cluster.from_dict(builders.cluster(hbm=memory, ddr=0, reservations=held))

    compiled = compile_for(model, small(200_000), "step_time")
    assert sum(memory_name(r.name) == "hbm" for r in compiled.instance.resources) > 1
    outcome = solve(compiled.instance, "cpsat", LIMITS)
    outcome = with_diagnosis(compiled.instance, outcome, LIMITS)
    outcome = with_advice(outcome, compiled.model, compiled.cluster)
    diagnosis: Any = outcome.detail["diagnosis"]
    hbm, _ = diagnosis["capacities"]
    assert hbm["resource"] == "hbm" and hbm["proved"]
    advised = diagnosis["advice"]["hbm"]
    for memory, expected in ((advised, True), (advised - 1, False)):
        instance = compile_for(model, small(memory), "step_time").instance
        assert (solve(instance, "cpsat", LIMITS).placement is not None) == expected


HOT = {"kind": "unknown", "unique_fraction": 0.1, "peak_skew": {"max_over_mean": 8.0, "ranks": 8}}
ROWS: dict[str, Any] = {
    "rows": 1000, "output": "sequence", "sequence_length": 10, "access": HOT,
    "constraints": {"sharding_types": "row_wise"},
}  # fmt: skip
LIMITS_REMEDIES = Settings(time_limit=20, workers=1)
#: 5,120 ids per rank: the hot rank returns 40,960 rows of 256 bytes (10 MiB), 35 MiB at the stock
#: codec's peak of 3.5; the low-memory codec needs 25, columns on eight ranks 4.4 (and of ids 1.2).
FP16: dict[str, Any] = {"exchange_dtype": "fp16"}


def remedies(read: Model, site: Cluster) -> tuple[Remedy, ...]:
    """The remedies of an infeasible plan; each says whether the changed model has a plan."""
    found = plan(read, site, settings=LIMITS_REMEDIES)
    assert found.outcome.status.value == "infeasible"
    info = shortage_of(found.outcome.detail)
    assert info is not None
    for each in info.remedies:
        again = plan(_changed(read, each), site, settings=LIMITS_REMEDIES).outcome
        assert (again.placement is not None) == each.fits
        told = [line for line in advice(info, "ps") if str(each) in line]
        assert [line.startswith("what would help") for line in told] == [each.fits]
    return info.remedies


def _changed(read: Model, remedy: Remedy) -> Model:
    data = read.to_dict()
    if remedy.kind == "output_dtype":
        data["tables"] = [{**table, "output_dtype": remedy.value} for table in data["tables"]]
    elif remedy.kind != "sharding":
        data["workload"][remedy.kind] = remedy.value
    for table in data["tables"]:
        if table["name"] in remedy.tables:
            table["constraints"]["sharding_types"] = [remedy.value]
    return Model.from_dict(data)


def test_every_remedy_of_a_burst() -> None:
    """If one table bursts, column-wise, a codec without a copy, and distinct ids each help."""
    assert remedies(model(ROWS, **FP16), cluster(hbm="34MiB", ddr="0B")) == (
        Remedy("sharding", "column_wise", True, ("t0",)),
        Remedy("codec", "low_memory", True),
        Remedy("dedup", True, True),
    )


def test_as_many_tables_as_it_takes() -> None:
    """Two bursting tables: one column-wise is not enough, two are; the codec is not."""
    found = remedies(model(ROWS, ROWS, **FP16), cluster(hbm="24MiB", ddr="0B"))
    assert found[0] == Remedy("sharding", "column_wise", True, ("t0", "t1"))
    assert found[1] == Remedy("codec", "low_memory", False)


def test_rows_of_two_bytes_may_be_returned_as_they_are() -> None:
    """As FBGEMM returns, fp32 is assumed; one that sets output_dtype needs half the buffers."""
    table = {"rows": 1000, "dtype": "fp16", "pooling_factor": 1, "num_features": 40}
    read = model(table, **FP16)
    found = {each.kind: each for each in remedies(read, cluster(hbm="14MiB", ddr="0B"))}
    assert found["output_dtype"] == Remedy("output_dtype", "fp16", True)


def test_nothing_is_tried_that_changes_nothing() -> None:
    """Pooled fp32 rows that may already be column-wise: no change could help."""
    assert remedies(model({"rows": 10_000_000}), cluster(hbm="20MiB", ddr="0B")) == ()


def test_dynamicemb_tables_are_not_cut_by_columns() -> None:
    """They are row-wise, so only codec and dedup are tried."""
    table = {**ROWS, "kind": "dynamicemb", "constraints": {}}
    kinds = [each.kind for each in remedies(model(table, **FP16), cluster(hbm="12MiB", ddr="0B"))]
    assert kinds == ["codec", "dedup"]


def test_figures_by_hand() -> None:
    """b needs 70 of HBM on some rank, 80 beside a's share, and has 65; dropping b is enough."""
    instance = example(hbm=65)
    settings = Settings(time_limit=10)
    outcome = with_diagnosis(instance, solve(instance, "cpsat", settings), settings)
    info = shortage_of(outcome.detail)
    assert info is not None
    hbm = next(tier for tier in info.tiers if tier.resource == "hbm")
    # with a table-wise (60) on another rank, b's 70 are alone on theirs
    assert hbm == TierShortage("hbm", "rank", 65, 65, 70, 5, helps=True, proved=True, at_least=70)
    ddr = next(tier for tier in info.tiers if tier.resource == "ddr")
    assert not ddr.helps and ddr.needed is None
    assert info.drop == ("b",) and info.drop_proved
    assert info.conflict_tables == ("b",) and info.conflict_constraints == ("hbm",)
    text = drawn(draw_shortage(info))
    assert "65 B" in text and "70 B" in text and "5 B" in text and "proved least" in text
    assert "it alone is never enough" in text
    assert "or drop 1 table: b (proved: no fewer do)" in text
    assert "a smallest conflict: b against hbm" in text


def test_what_is_unknown_is_not_claimed() -> None:
    """Answers cut short by the time limit say so."""
    detail = {
        "diagnosis": {
            "capacities": [
                {"resource": "hbm", "scope": "rank", "least": None, "bound": 3, "impossible": False,
                 "capacity": [1, 2], "proved": False, "short_by": None},
                {"resource": "ddr", "scope": "machine", "least": 9, "bound": 3, "impossible": False,
                 "capacity": [1], "proved": False, "short_by": 8},
            ],
            "drop": {"tables": ["a", "b"], "bound": 1, "impossible": False, "proved": False},
            "conflict": None,
        }
    }  # fmt: skip
    info = shortage_of(detail)
    assert info is not None and info.conflict_tables == ()
    text = drawn(draw_shortage(info))
    assert "1 B to 2 B" in text and "not found in the time limit" in text
    assert "less may do" in text and "drop 2 tables: a, b (fewer may do)" in text
    assert "proved" not in text and "conflict" not in text


def test_what_to_write_into_the_file() -> None:
    """The memory to the byte with reservations, and the bound below which no plan exists."""
    known = {"least": 3 * 2**30, "bound": 2 * 2**30, "impossible": False, "proved": False}
    entry = {"resource": "hbm", "scope": "rank", "capacity": [2**30], "short_by": 2**31, **known}
    drop = {"tables": None, "bound": 1, "impossible": False, "proved": False}
    detail = {
        "diagnosis": {
            "capacities": [entry],
            "drop": drop,
            "conflict": None,
            "advice": {"hbm": 4 * 2**30 + 1},
        }
    }
    info = shortage_of(detail)
    assert info is not None and info.tiers[0].memory == 4 * 2**30 + 1
    text = " ".join(drawn(draw_shortage(info)).split())
    assert "no plan exists below 2 GiB of hbm for each rank" in text
    assert "in the cluster's file: hbm: 4294967297 for each rank" in text


def test_a_feasible_outcome_has_none() -> None:
    """If there is a plan, there is no diagnosis."""
    settings = Settings(time_limit=10)
    outcome = with_diagnosis(example(), solve(example(), "cpsat", settings), settings)
    assert shortage_of(outcome.detail) is None


def test_multipliers_of_the_plan_are_not_those_of_a_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A re-plan brings multipliers for its own objective; the diagnosis asks about others, and
    answers as it does without them."""
    prices = solve(example(), "auto", Settings(time_limit=10)).certificate
    assert prices is not None
    monkeypatch.setattr(budget, "EXACT_ALONE", 0)  # the solver that starts from multipliers
    instance, settings = example(hbm=65), Settings(time_limit=10)
    outcome = solve(instance, "cpsat", settings)
    info, plain = (
        shortage_of(with_diagnosis(instance, outcome, each).detail)
        for each in (replace(settings, prices=prices), settings)
    )
    assert info is not None and info == plain
