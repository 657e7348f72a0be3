"""A TorchEasyRec config fragment: constraints of a plan's tables, feature by feature.

TorchEasyRec's config says less than a plan: sharding types and kernels of TorchRec tables, and
capacity and ``cache_load_factor`` of dynamicemb tables, whose mode and routing its own planner
sets. What cannot be said is refused, or written as a comment where the trainer decides it.

References
----------
alibaba/TorchEasyRec, ``tzrec/protos/feature.proto`` (``ParameterConstraints``,
``DynamicEmbedding``).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from milp_planner.errors import BadInput
from milp_planner.inputs.constraints import Pin
from milp_planner.inputs.model import Model
from milp_planner.inputs.table import Table
from milp_planner.integrations.exports.pins import known, one_of, proper_ratio
from milp_planner.integrations.exports.text_proto import Message, parse, show
from milp_planner.options.choice import SHARDING_TYPES
from milp_planner.placed import PlacedTable
from milp_planner.placement import Plan

_KERNELS = {
    "dense": "HBM_ONLY",
    "fused": "HBM_ONLY",
    "fused_uvm": "HOST_ONLY",
    "fused_uvm_caching": "CACHING",
}
_SCORES = {"timestamp": "TIMESTAMP", "step": "STEP", "lfu": "LFU", "customized": "CUSTOMIZED"}


def write(plan: Plan) -> str:
    """``feature_configs`` blocks to merge into a pipeline config, one a feature.

    Raises
    ------
    BadInput
        For a dynamicemb table that is HOST_ONLY, not routed round-robin, or scored in a way the
        config has no word for.
    """
    lines = ["# Constraints of a milp-planner plan; merge into your feature_configs."]
    for placed in plan.tables:
        table = plan.model.table(placed.name)
        lines += [f"# {placed.name}: {placed.option}"]
        body = _dynamic(table, placed) if placed.kind == "dynamicemb" else _static(placed)
        for feature in table.feature_names:
            fields: list[tuple[str, object]] = [
                ("feature_name", feature),
                ("embedding_name", table.name),
                ("embedding_dim", table.dim),
                body,
            ]
            lines += show("feature_configs", Message([("id_feature", Message(fields))]))
    return "\n".join(lines) + "\n"


def notes(plan: Plan) -> list[str]:
    """What the config leaves to TorchEasyRec."""
    found = ["the ranks are left to TorchEasyRec's planner"]
    if any(p.column_shards > 1 for p in plan.tables):
        found.append("the width of column shards is left to TorchRec")
    static = sorted({str(p.cache_ratio) for p in plan.tables
                     if p.kind == "torchrec" and p.mode == "CACHING"})  # fmt: skip
    if static:
        found.append(
            f"the load factor of fused_uvm_caching tables ({', '.join(static)}) has no field"
        )
    dynamic = sorted({p.mode for p in plan.tables if p.kind == "dynamicemb"})
    if dynamic:
        found.append(
            f"the mode of dynamicemb tables ({', '.join(dynamic)}) is TorchEasyRec's choice at "
            "the given ratio"
        )
    return found


def read(text: str, model: Model) -> dict[str, Pin]:
    """What such a fragment fixes: sharding type and mode, or a dynamicemb table's ratio.

    Raises
    ------
    BadInput
        For text that cannot be parsed, unknown features or tables, illegal values, and features
        of one table that disagree.
    """
    pins: dict[str, Pin] = {}
    for config in parse(text).all("feature_configs"):
        feature = (
            config.one("id_feature", "feature_configs") if isinstance(config, Message) else None
        )
        if not isinstance(feature, Message):
            raise BadInput("feature_configs: found no id_feature block")
        table = _table(feature, model)
        pin = _read_feature(table, feature)
        if pins.setdefault(table.name, pin) != pin:
            raise BadInput(f"table {table.name!r}: its features disagree")
    return pins


def _static(placed: PlacedTable) -> tuple[str, Message]:
    fields = [("sharding_types", placed.sharding_type), ("compute_kernels", placed.kernel)]
    return "embedding_constraints", Message(fields)


def _dynamic(table: Table, placed: PlacedTable) -> tuple[str, Message]:
    where = f"table {table.name!r}"
    if placed.mode == "HOST_ONLY":
        raise BadInput(f"{where} is HOST_ONLY, which TorchEasyRec cannot express (ratio 0)")
    if placed.dist_type not in (None, "roundrobin"):
        raise BadInput(
            f"{where} is routed by {placed.dist_type}; TorchEasyRec routes roundrobin only"
        )
    if table.score_strategy not in _SCORES:
        raise BadInput(
            f"{where}: score_strategy {table.score_strategy}; TorchEasyRec allows: "
            f"{', '.join(_SCORES)}"
        )
    return "dynamicemb", Message(
        [
            ("max_capacity", table.rows),
            ("cache_load_factor", float(placed.cache_ratio)),
            ("score_strategy", _SCORES[table.score_strategy]),
        ]
    )


def _table(feature: Message, model: Model) -> Table:
    name = feature.one("feature_name", "id_feature")
    embedding = feature.one("embedding_name", f"feature {name!r}")
    if embedding is not None:
        return known(model, embedding, f"feature {name!r}")
    for table in model.tables:
        if name in table.feature_names:
            return table
    return known(model, name, "feature_name")


def _read_feature(table: Table, feature: Message) -> Pin:
    where = f"table {table.name!r}"
    if table.kind == "dynamicemb":
        options = feature.one("dynamicemb", where)
        if not isinstance(options, Message):
            raise BadInput(f"{where}: is of dynamicemb and needs a dynamicemb block")
        return _read_dynamic(table, options)
    constraints = feature.one("embedding_constraints", where)
    if not isinstance(constraints, Message):
        return Pin()
    fields: dict[str, Any] = {}
    kind = constraints.one("sharding_types", where)
    if kind is not None:
        fields["sharding_type"] = one_of(kind, SHARDING_TYPES, f"{where}: sharding_types")
    kernel = constraints.one("compute_kernels", where)
    if kernel is not None:
        fields["mode"] = one_of(kernel, _KERNELS, f"{where}: compute_kernels")
    return Pin(**fields)


def _read_dynamic(table: Table, options: Message) -> Pin:
    where = f"table {table.name!r}"
    capacity = options.one("max_capacity", where)
    if capacity != table.rows:
        raise BadInput(f"{where}: max_capacity is {capacity!r}, the model has {table.rows} rows")
    factor = options.one("cache_load_factor", where)
    if factor is None:
        return Pin(sharding_type="row_wise")
    if factor == 1:
        return Pin(sharding_type="row_wise", mode="HBM_ONLY")
    ratio = proper_ratio(factor, f"{where}: cache_load_factor")
    return Pin(sharding_type="row_wise", cache_ratio=Fraction(ratio).limit_denominator(100))
