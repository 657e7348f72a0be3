"""Apply the axes of a sweep to a model and a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from milp_planner.errors import BadInput
from milp_planner.features.plan.remedies import with_machines
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.cluster import Reservations
from milp_planner.inputs.grown import parse_growth, with_growth
from milp_planner.inputs.two_d import TwoD

Axes = Mapping[str, Any]
"""Value of each axis of a scenario, as plain JSON; an axis that is absent changes nothing."""
_WORKLOAD = {
    "batch": "batch_per_rank", "cache_ratios": "cache_ratios", "storage_model": "storage_model",
    "cost_model": "cost_model", "fusion": "fusion",
    "exchange_dtype": "exchange_dtype", "exchange_dtype_backward": "exchange_dtype_backward",
    "codec": "codec", "dedup": "dedup",
}  # fmt: skip


def vary_model(
    model: Model, axes: Axes, only: Sequence[str] = (), hot_ids: int = 0, ranks: int = 2
) -> Model:
    """The model with batch, rows, accesses and limits changed by the axes.

    Parameters
    ----------
    model, axes
    only
        The tables whose skew, sharding and mode are changed; empty: all.
    hot_ids
        With skew: for this many rows, the k-th most popular row has id k.
    ranks
        Number of ranks for which measured and peak skew are given, which is the cluster's.

    Raises
    ------
    BadInput
        When ``only`` or ``table_growth`` names a table that the model does not have, or the result
        is invalid.
    """
    names = [table.name for table in model.tables]
    unknown = [name for name in only if name not in names]
    if unknown:
        raise BadInput(f"only_tables: the model {model.name} has no table {unknown[0]!r}")
    data = _grown(model, axes).to_dict()
    for axis, field in _WORKLOAD.items():
        if axis in axes:
            data["workload"][field] = axes[axis]
    for table in data["tables"]:
        if "dim" in axes:
            table["dim"] = axes["dim"]
        if "sequence_length" in axes and table.get("sequence_length", 0) > 1:
            table["sequence_length"] = axes["sequence_length"]
        if not only or table["name"] in only:
            _vary_table(table, axes, hot_ids)
            _measure(table, axes, ranks)
        elif axes.get("other_sharding", "any") != "any":
            table["constraints"]["sharding_types"] = [axes["other_sharding"]]
    return Model.from_dict(data, model.name)


def vary_cluster(cluster: Cluster, axes: Axes) -> Cluster:
    """The cluster with machines, ranks, memories, groups and profile changed by the axes.

    Raises
    ------
    BadInput
        When the result is invalid, for instance two machines without a link.
    """
    data = (with_machines(cluster, axes["machines"]) if "machines" in axes else cluster).to_dict()
    data["machines"] = [_vary_machine(machine, axes) for machine in data["machines"]]
    data["reservations"] |= {name: axes[name] for name in Reservations.model_fields if name in axes}
    data["two_d"] = _division(data["two_d"], axes)
    if "profile" in axes:
        data["profile"] = axes["profile"]
    return Cluster.from_dict(data, cluster.name)


def _division(two_d: dict[str, Any] | None, axes: Axes) -> dict[str, Any] | None:
    """The cluster's ``two_d`` with the fields that are axes."""
    named = {name: axes[name] for name in TwoD.model_fields if name in axes}
    if named.get("sharding_group_size") == "all":
        return None
    return {**(two_d or {}), **named} if named else two_d


def _grown(model: Model, axes: Axes) -> Model:
    if "growth" in axes and model.tables:
        model = with_growth(model, {"*": Fraction(axes["growth"])})
    if "table_growth" in axes:
        model = with_growth(model, parse_growth(axes["table_growth"]))
    return model


def _vary_table(table: dict[str, Any], axes: Axes, hot_ids: int) -> None:
    if "skew" in axes:
        hot = list(range(min(hot_ids, table["rows"])))
        table["access"] = {"kind": "zipf", "alpha": axes["skew"], "hot_ids": hot}
    if axes.get("dist_type", "any") != "any" and table["kind"] == "dynamicemb":
        table["dist_types"] = [axes["dist_type"]]
    for axis, field in (("sharding", "sharding_types"), ("mode", "modes")):
        if axes.get(axis, "any") != "any":
            table["constraints"][field] = [axes[axis]]


def _measure(table: dict[str, Any], axes: Axes, ranks: int) -> None:
    for axis in ("measured_skew", "peak_skew"):
        if axis in axes:
            table["access"][axis] = {"max_over_mean": axes[axis], "ranks": ranks}


def _vary_machine(machine: dict[str, Any], axes: Axes) -> dict[str, Any]:
    ranks = machine["ranks"]
    if "ranks_per_machine" in axes:
        ranks = [ranks[0]] * axes["ranks_per_machine"]
    if "hbm" in axes:
        ranks = [{**rank, "hbm": axes["hbm"]} for rank in ranks]
    return {**machine, "ranks": ranks, "ddr": axes.get("ddr", machine["ddr"])}
