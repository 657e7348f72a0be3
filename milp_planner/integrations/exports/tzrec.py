"""A TorchEasyRec config fragment: constraints of a plan's tables, feature by feature.

TorchEasyRec's config holds less than a plan: sharding types and kernels of TorchRec tables, and
the capacity of dynamicemb tables, whose mode, ratio and routing its own planner sets. What it
cannot express is refused, or written as a comment if the trainer decides it. ``cache_load_factor``
is read, but never written: at the commit below it reaches the planner as a tuple, which stops it.

References
----------
alibaba/TorchEasyRec 54cac316, ``tzrec/protos/feature.proto`` (``ParameterConstraints``,
``DynamicEmbedding``); ``tzrec/utils/dynamicemb_util.py:318-322`` (``cache_load_factor``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import product
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from milp_planner.drawing.units import listed
from milp_planner.errors import BadInput, FallsShort
from milp_planner.inputs.constraints import PinSpec
from milp_planner.inputs.model import Model, Workload
from milp_planner.inputs.problems import one_of
from milp_planner.inputs.table import Table
from milp_planner.integrations.exports import known, pin, proper_ratio
from milp_planner.plans.placement import PlacedTable, Plan
from milp_planner.pricing.options import MODE_OF_KERNEL, SHARDING_TYPES

KINDS = (
    "id_feature", "raw_feature", "combo_feature", "lookup_feature", "match_feature",
    "expr_feature", "overlap_feature", "tokenize_feature", "custom_feature", "kv_dot_product",
    "bool_mask_feature", "sequence_id_feature", "sequence_raw_feature", "sequence_custom_feature",
)  # fmt: skip
"""Kinds of features; ``sequence_feature`` holds several of them."""
_OPTIMIZERS = {
    "sgd_optimizer": "sgd", "adagrad_optimizer": "adagrad", "adam_optimizer": "adam",
    "rowwise_adagrad_optimizer": "rowwise_adagrad",
}  # fmt: skip

#: The fields read and written, by message: (name, type, repeated); proto2, so absent fields are
#: distinguishable.
_FIELDS = {
    "Config": [("feature_configs", "FeatureConfig", True), ("train_config", "Train", False),
               ("data_config", "Data", False)],
    "Train": [("sparse_optimizer", "Optimizer", False),
              ("global_embedding_constraints", "Constraints", False)],
    "Data": [("batch_size", "INT64", False)],
    "Optimizer": [(name, "Empty", False) for name in _OPTIMIZERS],
    "Empty": [],
    "FeatureConfig": [*((kind, "Feature", False) for kind in KINDS),
                      ("sequence_feature", "Sequence", False)],
    "Sequence": [("sequence_name", "STRING", False), ("features", "FeatureConfig", True)],
    "Feature": [("feature_name", "STRING", False), ("embedding_name", "STRING", False),
                ("embedding_dim", "INT64", False), ("num_buckets", "INT64", False),
                ("hash_bucket_size", "INT64", False), ("boundaries", "DOUBLE", True),
                ("embedding_constraints", "Constraints", False),
                ("dynamicemb", "DynamicEmbedding", False)],
    "Constraints": [("sharding_types", "STRING", True), ("compute_kernels", "STRING", True)],
    "DynamicEmbedding": [("max_capacity", "INT64", False), ("cache_load_factor", "DOUBLE", False),
                         ("score_strategy", "STRING", False)],
}  # fmt: skip
_SCORES = {"timestamp": "TIMESTAMP", "step": "STEP", "lfu": "LFU", "customized": "CUSTOMIZED"}


def write(plan: Plan) -> str:
    """``feature_configs`` blocks to merge into a pipeline config, one per feature.

    BadInput for a dynamicemb table that is HOST_ONLY, not routed round-robin, or has a score
    strategy that the config cannot express; FallsShort for an exchange that it does not have.
    """
    if otherwise := priced_otherwise(plan.model.workload):
        raise FallsShort(otherwise[0])
    lines = ["# Constraints of a milp-planner plan; merge into your feature_configs."]
    for placed in plan.tables:
        table = plan.model.table(placed.name)
        lines += [f"# {placed.name}: {placed.option}"]
        key, body = _dynamic(table, placed) if placed.kind == "dynamicemb" else _static(placed)
        for feature in table.feature_names:
            fields = {
                "feature_name": feature,
                "embedding_name": table.name,
                "embedding_dim": table.dim,
                key: body,
            }
            config = _config()(feature_configs=[{"id_feature": fields}])
            lines += text_format.MessageToString(config, as_utf8=True).splitlines()
    return "\n".join(lines) + "\n"


def priced_otherwise(work: Workload) -> list[str]:
    """Sentences: what was priced and its sharders, TorchRec's defaults, do not do."""
    sent = {work.exchange_dtype, work.exchange_dtype_backward or work.exchange_dtype}
    found = []
    if sent != {"fp32"}:
        found.append(
            f"priced with {listed(sorted(sent - {'fp32'}), 2)} on the wire; TorchEasyRec sends "
            "fp32, which exchange_dtype: fp32 in the model prices"
        )
    if work.dedup:
        found.append(
            "priced with deduplication of ids, which TorchEasyRec does without: dedup: false in "
            "the model"
        )
    return found


def notes(plan: Plan) -> list[str]:
    """Sentences about what the config leaves to TorchEasyRec."""
    found = []
    if any(placed.stash for placed in plan.tables):
        found.append("no field says which tables are stashed")
    dynamic = sorted({
        f"{t.mode} at {t.cache_ratio}" for t in plan.tables if t.kind == "dynamicemb"
    })  # fmt: skip
    replicated = [t.name for t in plan.tables if t.sharding_type == "data_parallel"]
    if replicated:
        found.append(
            f"data_parallel tables ({listed(replicated, 3)}) are trained by dense_optimizer, not "
            "sparse_optimizer: its learning rate, and its state in place of the one counted here"
        )
    if dynamic:
        found.append(
            f"mode and ratio of dynamicemb tables ({', '.join(dynamic)}) are TorchEasyRec's "
            "choice: cache_load_factor would stop its planner (a tuple of one, at 54cac316)"
        )
    return found


def read(text: str, model: Model) -> dict[str, PinSpec]:
    """Pins that such a fragment fixes: sharding type and mode, or a dynamicemb table's ratio.

    BadInput for text that cannot be parsed, unknown features or tables, illegal values, and
    features of one table that disagree.
    """
    pins: dict[str, PinSpec] = {}
    for table, feature in _features(_parsed(text), model):
        pin = _read_feature(table, feature)
        if pins.setdefault(table.name, pin) != pin:
            raise BadInput(f"table {table.name!r}: its features disagree")
    return pins


def _parsed(text: str) -> Any:
    config = _config()()
    try:
        text_format.Parse(text, config, allow_unknown_field=True)
    except (text_format.ParseError, UnicodeError) as error:
        raise BadInput(f"not a text-format config (line:column : problem): {error}") from None
    except RecursionError:
        raise BadInput("not a text-format config: nested too deeply") from None
    return config


def _features(config: Any, model: Model) -> Iterator[tuple[Table, Any]]:
    """Every feature that has a table, with it."""
    for sequence, block in _blocks(config.feature_configs):
        kind = next(filter(block.HasField, KINDS), None)
        if kind is None:
            raise BadInput(f"feature_configs: found no block of a known kind ({listed(KINDS, 3)})")
        feature = getattr(block, kind)
        holds = "embedding_dim", "embedding_name", "embedding_constraints", "dynamicemb"
        if any(map(feature.HasField, holds)) or kind == "id_feature":
            yield _table(feature, model, sequence), feature


def _blocks(configs: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Blocks of features, each with the name of the sequence that it is in."""
    for block in configs:
        if block.HasField("sequence_feature"):
            inside = block.sequence_feature
            yield from ((inside.sequence_name, each) for each in inside.features)
        else:
            yield "", block


def stated(text: str, model: Model) -> Model:
    """The model with what a config states, and with the trainer's sharders: fp32, no deduplication.

    It states the batch, the sparse optimizer, and of a table its rows, columns and kind.
    """
    config, given = _parsed(text), dict[str, dict[str, Any]]()
    chosen = [name for key, name in _OPTIMIZERS.items()
              if config.train_config.sparse_optimizer.HasField(key)]  # fmt: skip
    for table, feature in _features(config, model):
        found: dict[str, Any] = {"kind": "torchrec"}
        rows = feature.num_buckets or feature.hash_bucket_size or len(feature.boundaries) + 1
        if feature.HasField("dynamicemb") and not feature.HasField("embedding_constraints"):
            found["kind"], rows = "dynamicemb", feature.dynamicemb.max_capacity or rows
        if rows > 1:
            found["rows"] = rows
        if feature.HasField("embedding_dim"):
            found["dim"] = feature.embedding_dim
        before = given.setdefault(table.name, {})
        if unlike := [key for key, value in found.items() if before.get(key, value) != value]:
            raise BadInput(f"table {table.name!r}: its features disagree on {unlike[0]}")
        before |= found
    document = model.to_dict()
    document["workload"] |= {"exchange_dtype": "fp32", "exchange_dtype_backward": None,
                             "dedup": False}  # fmt: skip
    if config.data_config.HasField("batch_size"):
        document["workload"]["batch_per_rank"] = config.data_config.batch_size
    for each in document["tables"]:
        each |= {"exchange_dtype": None, "exchange_dtype_backward": None}
        each |= {"optimizer": chosen[0]} if chosen else {}
        each |= given.get(each["name"], {})
    return Model.from_dict(document, "as the file states it")


Space = tuple[tuple[str, ...], tuple[str, ...]]
"""Sharding types and kernels that a table may have; none: any."""


def spaces(text: str, model: Model) -> dict[str, Space]:
    """What a config allows of TorchRec's tables: a feature's own constraints, or those of all."""
    config = _parsed(text)
    found = {table.name: _space(config.train_config.global_embedding_constraints)
             for table in model.tables if table.kind == "torchrec"}  # fmt: skip
    for table, feature in _features(config, model):
        if feature.HasField("embedding_constraints"):
            found[table.name] = _space(feature.embedding_constraints)
    return found


def open_tables(text: str, model: Model) -> list[str]:
    """Sentences: which tables have more than one option, so that the trainer's planner decides."""
    found = spaces(text, model)
    several = [t.name for t in model.tables if {len(each) for each in found.get(t.name, ())} != {1}]
    if not several:
        return []
    return [
        f"what the file leaves open ({listed(several, 3)}) is as TorchEasyRec's proposers choose: "
        "read, not run"
    ]


def _space(constraints: Any) -> Space:
    kinds, kernels = tuple(constraints.sharding_types), tuple(constraints.compute_kernels)
    for kind in kinds:
        one_of(kind, SHARDING_TYPES, "sharding_types")
    for kernel in kernels:
        one_of(kernel, MODE_OF_KERNEL, "compute_kernels")
    return kinds, kernels


@cache
def _config() -> Any:
    """The message class of the part of a config that a plan uses."""
    file = descriptor_pb2.FileDescriptorProto(name="tzrec_fragment.proto", package="tzrec_fragment")
    field = descriptor_pb2.FieldDescriptorProto
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for number, (key, kind, repeated) in enumerate(fields, 1):
            own = kind in _FIELDS
            message.field.add(
                name=key,
                number=number,
                label=field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL,
                type=field.TYPE_MESSAGE if own else getattr(field, f"TYPE_{kind}"),
                type_name=f".tzrec_fragment.{kind}" if own else None,
            )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tzrec_fragment.Config"))


def _static(placed: PlacedTable) -> tuple[str, dict[str, Any]]:
    return "embedding_constraints", {
        "sharding_types": [placed.sharding_type],
        "compute_kernels": [placed.kernel],
    }


def _dynamic(table: Table, placed: PlacedTable) -> tuple[str, dict[str, Any]]:
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
    return "dynamicemb", {
        "max_capacity": table.rows,
        "score_strategy": _SCORES[table.score_strategy],
    }


def _table(feature: Any, model: Model, sequence: str = "") -> Table:
    """The table of a feature: by its own name, as the model's feature, or with ``_emb`` added."""
    name = feature.feature_name
    if feature.HasField("embedding_name"):
        return known(model, feature.embedding_name, f"feature {name!r}")
    names = [f"{sequence}__{name}", name] if sequence else [name]
    for each, table in product(names, model.tables):
        if each in table.feature_names or table.name in (each, f"{each}_emb"):
            return table
    return known(model, names[0], "feature_name")


def _read_feature(table: Table, feature: Any) -> PinSpec:
    where = f"table {table.name!r}"
    if table.kind == "dynamicemb":
        if not feature.HasField("dynamicemb"):
            raise BadInput(f"{where}: is of dynamicemb and needs a dynamicemb block")
        return _read_dynamic(table, feature.dynamicemb)
    return pin(
        where,
        sharding_type=_only(feature, "sharding_types", SHARDING_TYPES, where),
        mode=_only(feature, "compute_kernels", MODE_OF_KERNEL, where),
    )


def _only(feature: Any, key: str, allowed: Mapping[str, str] | tuple[str, ...], where: str) -> Any:
    """The meaning of the one value of a repeated constraint; None if it is absent."""
    found = getattr(feature.embedding_constraints, key)
    if len(found) > 1:
        raise BadInput(f"{where}: {key} occurs {len(found)} times; allowed: once")
    return one_of(found[0], allowed, f"{where}: {key}") if found else None


def _read_dynamic(table: Table, options: Any) -> PinSpec:
    where = f"table {table.name!r}"
    if options.max_capacity != table.rows:
        raise BadInput(
            f"{where}: max_capacity is {options.max_capacity}, the model has {table.rows} rows"
        )
    if not options.HasField("cache_load_factor"):
        return pin(where, sharding_type="row_wise")
    if options.cache_load_factor == 1:
        return pin(where, sharding_type="row_wise", mode="HBM_ONLY")
    ratio = proper_ratio(options.cache_load_factor, f"{where}: cache_load_factor")
    return pin(where, sharding_type="row_wise", cache_ratio=ratio.limit_denominator(100))
