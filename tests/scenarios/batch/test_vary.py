"""Axes: each changes what its name says, and nothing else.

Sharding groups in batches: axes of a cluster's ``two_d``, and the best division in a record.
"""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from milp_planner import plan
from milp_planner.errors import BadInput
from milp_planner.inputs import Model
from milp_planner.inputs.access import MeasuredSkew, WorstBatch
from milp_planner.inputs.changes import scaled
from milp_planner.inputs.cluster import Reservations
from milp_planner.inputs.two_d import TwoD
from milp_planner.plans.divisions import words_of
from scenarios.batch.execute import execute
from scenarios.batch.scenario import Scenario, expand
from scenarios.batch.suite import AXES, Suite, Sweep, find_suite
from scenarios.batch.vary import vary_cluster, vary_model
from scenarios.catalog import find_cluster, find_model
from tests.corpus import mistakes
from tests.scenarios.batch.small import MODEL


def test_nothing_changes_without_axes() -> None:
    """A sweep's empty point is the input itself; the value any keeps the model's own limits, for
    comparison with the limited points."""
    model, cluster = find_model(MODEL), find_cluster("4x8xh100")
    assert vary_model(model, {}) == model == vary_model(model, {"sharding": "any", "mode": "any"})
    assert vary_cluster(cluster, {}) == cluster


def test_cluster_axes() -> None:
    """Machines, ranks, memories and profile, together."""
    axes = {"machines": 3, "ranks_per_machine": 2, "hbm": 5000, "ddr": 7000, "profile": "a10"}
    cluster = vary_cluster(find_cluster("8xh100"), axes)
    assert [len(machine.ranks) for machine in cluster.machines] == [2, 2, 2]
    assert {rank.hbm_bytes for rank in cluster.ranks} == {5000}
    assert {machine.ddr_bytes for machine in cluster.machines} == {7000}
    assert cluster.profile == "a10"


@pytest.mark.parametrize(
    ("axis", "value"),
    [
        ("batch", 7), ("exchange_dtype", "bf16"), ("exchange_dtype_backward", "fp8"),
        ("codec", "low_memory"), ("dedup", True), ("fusion", "free"),
    ],
)  # fmt: skip
def test_axes_of_the_workload(axis: str, value: object) -> None:
    """Each changes only its own field of the workload."""
    model, field = find_model("dlrmv4-yambda5b"), {"batch": "batch_per_rank"}.get(axis, axis)
    assert getattr(model.workload, field) != value
    varied = vary_model(model, {axis: value}, ("item_id",)).to_dict()
    assert varied["workload"] == {**model.to_dict()["workload"], field: value}
    assert {**varied, "workload": None} == {**model.to_dict(), "workload": None}


def test_the_axis_of_columns() -> None:
    """It applies to every table, including those that only_tables leaves out."""
    varied = vary_model(find_model("dlrmv4-yambda5b"), {"dim": 1024}, ("item_id",))
    assert {table.dim for table in varied.tables} == {1024}


def test_every_field_of_reservations_and_divisions_is_an_axis() -> None:
    """A new field needs an axis."""
    assert {*Reservations.model_fields, *TwoD.model_fields} - {"whole"} <= {*AXES}


def test_what_the_percentage_covers_is_an_axis() -> None:
    """Together with the percentage, which it is about."""
    [value] = Sweep.from_dict({"percent_covers": "buffers"}).to_dict()["percent_covers"]
    varied = vary_cluster(find_cluster("8xh100"), {"hbm_percent": 20, "percent_covers": value})
    assert varied.reservations.percent_covers == "buffers"


@pytest.mark.parametrize("axis", sorted(set(Reservations.model_fields) - {"percent_covers"}))
def test_axes_of_the_reservations(axis: str) -> None:
    """A suite can use each, which changes only its own field of the reservations."""
    cluster = find_cluster("8xh100")
    [value] = Sweep.from_dict({axis: 7}).to_dict()[axis]
    assert getattr(cluster.reservations, axis) != 7
    varied = vary_cluster(cluster, {axis: value})
    assert varied.reservations == cluster.reservations.model_copy(update={axis: 7})
    assert varied.model_copy(update={"reservations": cluster.reservations}) == cluster


def test_model_axes_reach_only_the_tables_named() -> None:
    """Skew and limits apply to only_tables, batch and growth to all tables."""
    model = find_model("dlrmv4-yambda5b")
    axes = {"batch": 7, "growth": "50", "skew": 1.0, "sharding": "row_wise", "mode": "HBM_ONLY"}
    varied = vary_model(model, axes, ("item_id",), hot_ids=3)
    changed, other = varied.table("item_id"), varied.table("uid")
    assert varied.workload.batch_per_rank == 7
    assert (changed.rows, other.rows) == (14_085_936, 1_500_002)
    assert changed.access.to_dict()["hot_ids"] == [0, 1, 2]
    assert changed.constraints.sharding_types == ("row_wise",)
    assert changed.constraints.modes == ("HBM_ONLY",)
    assert (other.access, other.constraints) == (
        model.table("uid").access,
        model.table("uid").constraints,
    )


def test_unknown_table() -> None:
    """only_tables is checked against the model."""
    with pytest.raises(BadInput, match="no table 'item'"):
        vary_model(find_model("dlrmv4-yambda5b"), {}, ("item",))


def test_a_second_machine_needs_a_link() -> None:
    """An axis cannot make a cluster whose machines have no link."""
    with pytest.raises(BadInput, match="interconnect"):
        vary_cluster(find_cluster("1xa10"), {"machines": 2})


@given(st.integers(1, 10**10), st.fractions(0, 100, max_denominator=100))
def test_growth_is_rounded_up(rows: int, percent: Fraction) -> None:
    """The least whole number that is not below the exact growth."""
    exact = rows * (1 + percent / 100)
    assert exact <= scaled(rows, 1 + percent / 100) < exact + 1


def test_workload_and_routing_axes() -> None:
    """Grid of ratios, storage model, fusion and routing rule reach the model; nothing else."""
    base = Model.from_dict(
        {
            "name": "m",
            "workload": {"batch_per_rank": 8},
            "tables": [
                {"name": "d", "rows": 100, "dim": 8, "kind": "dynamicemb"},
                {"name": "t", "rows": 100, "dim": 8},
            ],
        }
    )
    axes = {"cache_ratios": "twentieths", "storage_model": "torcheasyrec", "fusion": "free",
            "dist_type": "hash_roundrobin"}  # fmt: skip
    found = vary_model(base, axes)
    assert len(found.workload.cache_ratios) == 19 and found.workload.fusion == "free"
    assert found.workload.storage_model == "torcheasyrec"
    assert found.table("d").dist_types == ("hash_roundrobin",)
    assert found.table("t") == base.table("t")


def test_skews_lengths_and_the_other_tables() -> None:
    """Measured ratios are for the cluster's number of ranks; tables left out have their own
    sharding axis."""
    axes = {"measured_skew": 2.0, "peak_skew": 5.3, "sequence_length": 9.0,
            "sharding": "row_wise", "other_sharding": "column_wise"}  # fmt: skip
    varied = vary_model(find_model("dlrmv4-yambda5b"), axes, ("item_id",), ranks=16)
    item, album, uid = (varied.table(name) for name in ("item_id", "album_id", "uid"))
    assert item.access.peak_skew == WorstBatch(max_over_mean=5.3, ranks=16)
    assert item.access.measured_skew == MeasuredSkew(max_over_mean=2.0, ranks=16)
    assert album.access.peak_skew is None
    assert (item.sequence_length, album.sequence_length, uid.sequence_length) == (9, 9, 1)
    kinds = [table.constraints.sharding_types for table in (item, album)]
    assert kinds == [("row_wise",), ("column_wise",)]


def test_single_tables_grow() -> None:
    """By their own percentages, rounded up; the first name that matches counts."""
    model = find_model("dlrmv4-yambda5b")
    first, second = model.tables[0], model.tables[1]
    varied = vary_model(model, {"table_growth": f"{first.name}=50%, *=10%"})
    assert varied.tables[0].rows == scaled(first.rows, Fraction(3, 2))
    assert varied.tables[1].rows == scaled(second.rows, Fraction(11, 10))
    alone = vary_model(model, {"growth": "100", "table_growth": f"{second.name}=0%"})
    assert alone == vary_model(model, {"growth": "100"})


@pytest.mark.parametrize(
    ("text", "words"), mistakes(__file__, "growth of tables is checked when a suite is read")
)
def test_growth_of_tables_is_checked_when_a_suite_is_read(text: str, words: str) -> None:
    """Names and percentages, each name once."""
    with pytest.raises(BadInput, match=words):
        Sweep.from_dict({"table_growth": [text]})
    with pytest.raises(BadInput, match=r"no table is called 'item_ib'; .*did you mean item_id\?"):
        vary_model(find_model("dlrmv4-yambda5b"), {"table_growth": "item_ib=5%"})


def test_a_path_is_an_axis() -> None:
    """Of the model or of the cluster, with all that a change can say."""
    model, cluster = find_model("dlrmv4-yambda5b"), find_cluster("8xh100")
    axes = {
        "tables.item_id.rows": "×2", "cluster.machines.0.ddr": "1TiB",
        "interconnect.intra_machine": "×2",
    }  # fmt: skip
    assert vary_model(model, axes).table("item_id").rows == 2 * model.table("item_id").rows
    varied = vary_cluster(cluster, axes)
    assert varied.machines[0].ddr_bytes == 2**40 and varied.interconnect is not None
    assert varied.interconnect.intra_machine == 2 * cluster.interconnect.intra_machine


GROUPED_MODEL = """
name: m
workload: {batch_per_rank: 64}
defaults: {dim: 32, constraints: {sharding_types: [table_wise, row_wise], modes: [HBM_ONLY]}}
tables:
  - {name: a, rows: 1000}
  - {name: b, rows: 700}
"""


def scenarios(folder: Path, **sweep: Any) -> list[Scenario]:
    """A small model on four machines of two ranks."""
    (folder / "m.yaml").write_text(GROUPED_MODEL)
    axes = {"ranks_per_machine": 2, **sweep}
    suite = {
        "name": "s", "models": ["m.yaml"], "clusters": ["4x8xh100"], "sweep": axes,
        "formulations": ["cpsat"], "time_limit": 30,
    }  # fmt: skip
    return expand(Suite.from_dict(suite), folder)


def test_axes_of_the_division() -> None:
    """Fields of two_d; all leaves the cluster undivided, whatever the other axes say."""
    place = find_cluster("4x8xh100")
    two_d = vary_cluster(place, {"sharding_group_size": 8, "sync_interval": 4}).two_d
    assert two_d == TwoD(sharding_group_size=8, sync_interval=4)
    assert vary_cluster(place, {"sharding_group_size": "all", "sync_interval": 4}) == place


@pytest.mark.parametrize("size", ["auto", 2, "all"])
def test_a_record_is_of_the_best_division(tmp_path: Path, size: Any) -> None:
    """It has plan's figures, the samples of all ranks, the division, and its averaging's time."""
    sweep = {"sharding_group_size": size, "layout": "contiguous", "strategy": "default"}
    [scenario] = scenarios(tmp_path, **sweep, sync_interval=100_000)
    record = execute(scenario, scenario.key())
    assert record["error"] is None
    found = plan(*scenario.inputs(), formulation="cpsat", settings=scenario.settings())
    assert record["objective"] == found.outcome.objective
    assert record["samples"] == 64 * 8
    divided = found.cluster.two_d is not None
    assert record.get("division") == (words_of(found.cluster) if divided else None)
    assert (record["sync"] > 0) == (found.cluster.replicas > 1)
    if size == "auto":
        assert found.cluster.replicas > 1
        assert record["standing"] == "certified optimal"


def test_the_suite_that_ships() -> None:
    """Twelve points: two clusters, with and without groups, three intervals, equally many ranks."""
    suite, folder = find_suite("scale-up")
    found = expand(suite, folder)
    assert len(found) == 12
    assert {find_cluster(name).num_ranks for name in suite.clusters} == {72}
