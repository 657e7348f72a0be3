"""Apply the axes of a sweep to a model and a cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.changes import Changes, changed_cluster, changed_model, root_of
from milp_planner.inputs.table import Table
from milp_planner.inputs.two_d import TwoD

Axes = Mapping[str, Any]
"""Value of each axis of a scenario, as plain JSON; an axis that is absent changes nothing."""
ANY = "any"
"""The value of a limit that leaves the model's own."""
_LIMITS = {"sharding": "constraints.sharding_types", "mode": "constraints.modes"}
_GROWTH = ("growth", "table_growth")
_OF_TABLES = (*_LIMITS, "other_sharding", "dist_type", "skew", "measured_skew", "peak_skew",
              "sequence_length")  # fmt: skip
"""Axes that are not the path of a field."""


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
    if "growth" in axes and names:
        model = changed_model(model, {"tables.*.rows": f"+{axes['growth']}%"})
    if "table_growth" in axes:
        model = changed_model(model, growths(axes["table_growth"]))
    changes = {name: axes[name] for name in axes if _is_path(name) and root_of(name) == "model"}
    for table in model.tables:
        own = _of_table(table, axes, not only or table.name in only, hot_ids, ranks)
        changes |= {f"tables.{table.name}.{field}": value for field, value in own}
    return changed_model(model, changes)


def growths(text: str) -> Changes:
    """``items=50%,user_*=10%`` as changes of rows; ValueError if it is anything else."""
    found: dict[str, str] = {}
    for part in text.split(","):
        match = re.fullmatch(r"\s*([^=\s]+)\s*=\s*(\d[\d.]*%?)\s*", part)
        path = f"tables.{match[1]}.rows" if match else ""
        if match is None or path in found:
            allowed = "names and percentages from 0%, such as items=50%,user_*=10%"
            raise ValueError(f"found {text!r}; allowed: {allowed}")
        found[path] = f"+{match[2].rstrip('%')}%"
    return found


def vary_cluster(cluster: Cluster, axes: Axes) -> Cluster:
    """The cluster with machines, ranks, memories, groups and profile changed by the axes.

    Raises
    ------
    BadInput
        When the result is invalid, for instance two machines without a link.
    """
    changes = {name: axes[name] for name in axes if _is_path(name) and root_of(name) == "cluster"}
    if changes.get("sharding_group_size") == "all":  # whatever else is asked of a division
        changes = {n: v for n, v in changes.items() if n not in TwoD.model_fields}
        changes["cluster.two_d"] = None
    return changed_cluster(cluster, changes)


def _is_path(axis: str) -> bool:
    return axis not in (*_GROWTH, *_OF_TABLES)


def _of_table(
    table: Table, axes: Axes, chosen: bool, hot_ids: int, ranks: int
) -> Iterator[tuple[str, Any]]:
    if "sequence_length" in axes and (table.sequence_length or 0) > 1:
        yield "sequence_length", axes["sequence_length"]
    if not chosen:
        if axes.get("other_sharding", ANY) != ANY:
            yield _LIMITS["sharding"], [axes["other_sharding"]]
        return
    for axis, field in _LIMITS.items():
        if axes.get(axis, ANY) != ANY:
            yield field, [axes[axis]]
    if axes.get("dist_type", ANY) != ANY and table.kind == "dynamicemb":
        yield "dist_types", [axes["dist_type"]]
    if "skew" in axes:
        hot = list(range(min(hot_ids, table.rows)))
        yield "access", {"kind": "zipf", "alpha": axes["skew"], "hot_ids": hot}
    for axis in ("measured_skew", "peak_skew"):
        if axis in axes:
            yield f"access.{axis}", {"max_over_mean": axes[axis], "ranks": ranks}
