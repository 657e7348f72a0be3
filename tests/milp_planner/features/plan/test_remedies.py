"""Changes of the model if nothing fits: every reported one works when it is made."""

from __future__ import annotations

from typing import Any

from formulations import Settings
from milp_planner import plan
from milp_planner.features.plan.shortage import Remedy, advice, shortage_of
from milp_planner.inputs import Cluster, Model
from tests.milp_planner.pricing.build import cluster, model

HOT = {"kind": "unknown", "unique_fraction": 0.1, "peak_skew": {"max_over_mean": 8.0, "ranks": 8}}
ROWS: dict[str, Any] = {
    "rows": 1000, "output": "sequence", "sequence_length": 10, "access": HOT,
    "constraints": {"sharding_types": "row_wise"},
}  # fmt: skip
LIMITS = Settings(time_limit=20, workers=1)
#: 5,120 ids per rank: the hot rank returns 40,960 rows of 256 bytes (10 MiB), 35 MiB at the stock
#: codec's peak of 3.5; the low-memory codec needs 25, columns on eight ranks 4.4 (and of ids 1.2).
FP16: dict[str, Any] = {"exchange_dtype": "fp16"}


def remedies(read: Model, site: Cluster) -> tuple[Remedy, ...]:
    """The remedies of an infeasible plan; each says whether the changed model has a plan."""
    found = plan(read, site, settings=LIMITS)
    assert found.outcome.status.value == "infeasible"
    info = shortage_of(found.outcome.detail)
    assert info is not None
    for each in info.remedies:
        again = plan(_changed(read, each), site, settings=LIMITS).outcome
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
    """fp32 is assumed, as FBGEMM returns; a trainer that sets output_dtype needs half of the
    buffers."""
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
