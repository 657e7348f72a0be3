"""recsys-examples' HSTU trainer: what a gin file of its states, and what its planner makes of it.

Its tables stand in the file, as ``DynamicEmbeddingArgs`` and ``EmbeddingArgs``, or in the training
script, where dynamicemb tables have a GPU capacity ratio of 1.

References
----------
NVIDIA/recsys-examples 43465aea, ``examples/hstu/training``; read, not run. Its gin files:
``configs/benchmark_ranking.gin`` a00a749d, ``configs/movielen_ranking.gin`` 24df1268.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from milp_planner.drawing.units import listed
from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.constraints import PinSpec
from milp_planner.inputs.quantities import FINEST_RATIO
from milp_planner.inputs.table import Table
from milp_planner.integrations.exports import known, pin_of_share
from milp_planner.integrations.replay.dynamicemb import others
from milp_planner.pricing.storage import runtime_value_bytes

_BINDING = re.compile(
    r"^[ \t]*(?:(?P<scope>[\w.-]+)/)?(?P<what>(?:Trainer|Network|Optimizer|"
    r"(?:Benchmark)?Dataset|(?:Dynamic)?Embedding)Args)\.(?P<field>\w+)"
    r"[ \t]*=[ \t]*(?P<value>\[[^]]*\]|[^#\n]*)",
    re.MULTILINE,
)
_INCLUDE = re.compile(r"^[ \t]*(include[ \t]+[^#\n]*?)[ \t]*(?:#.*)?$", re.MULTILINE)
_NUMBER, _TEXT = (int, float), (str,)
_FIELDS: dict[str, tuple[type, ...]] = {
    "train_batch_size": _NUMBER, "pipeline_type": _TEXT, "optimizer_str": _TEXT,
    "hidden_size": _NUMBER, "item_embedding_dim": _NUMBER, "contextual_embedding_dim": _NUMBER,
    "item_feature_name": _TEXT, "action_feature_name": _TEXT, "feature_names": (list, tuple),
    "table_name": _TEXT, "item_vocab_size_or_capacity": _NUMBER, "sharding_type": _TEXT,
    "item_vocab_gpu_capacity_ratio": _NUMBER, "global_hbm_for_values": _NUMBER, "caching": (bool,),
}  # fmt: skip
"""The fields that count, and what they hold."""
_DYNAMIC = "DynamicEmbeddingArgs"
_NAMED = "item_feature_name", "action_feature_name"
Bindings = dict[tuple[str, str], dict[str, Any]]
"""Values by scope and class, then by field; references and None are left out."""


def is_gin(text: str) -> bool:
    """Whether a text binds arguments of that trainer."""
    return _BINDING.search(text) is not None


def _read(text: str) -> tuple[Bindings, list[str]]:
    """What the fields that count hold, and what is not read: references, and other files."""
    found: Bindings = {}
    unread: list[str] = _INCLUDE.findall(text)
    for each in _BINDING.finditer(text):
        if (allowed := _FIELDS.get(each["field"])) is None:
            continue
        written = each["value"].strip()
        try:
            value = ast.literal_eval(written)
        except (SyntaxError, ValueError):
            unread.append(f"{each['what']}.{each['field']} = {written}")
            continue
        if value is None:
            continue
        if not isinstance(value, allowed):
            kinds = " or ".join(kind.__name__ for kind in allowed)
            raise BadInput(f"{each['what']}.{each['field']}: found {written}; allowed: {kinds}")
        found.setdefault((each["scope"] or "", each["what"]), {})[each["field"]] = value
    return found, unread


def _tables(found: Bindings, model: Model) -> Iterator[tuple[Table, bool, dict[str, Any]]]:
    """Tables that the file describes, whether dynamicemb has them, and how."""
    for (scope, what), fields in found.items():
        if what.endswith("EmbeddingArgs") and "table_name" in fields:
            yield known(model, fields["table_name"], f"{scope}/{what}"), what == _DYNAMIC, fields


def stated(text: str, model: Model) -> Model:
    """The model with what the file states: batch, columns, optimizer; rows and kind of tables."""
    (found, _), document = _read(text), model.to_dict()
    of = {what: fields for (scope, what), fields in found.items() if not scope}
    if (batch := of.get("TrainerArgs", {}).get("train_batch_size")) is not None:
        document["workload"]["batch_per_rank"] = batch
    network = of.get("NetworkArgs", {})
    two, named = _items(found)
    own = {
        "dim": None if two else network.get("hidden_size"),
        "optimizer": of.get("OptimizerArgs", {}).get("optimizer_str"),
    }
    given = {
        table.name: {
            "kind": "dynamicemb" if dynamic else "torchrec",
            "rows": fields.get("item_vocab_size_or_capacity"),
            "dim": _width(network, named, fields) if two and named else None,
        }
        for table, dynamic, fields in _tables(found, model)
    }
    for each in document["tables"]:
        for stated_here in (own, given.get(each["name"], {})):
            each |= {field: value for field, value in stated_here.items() if value is not None}
    return Model.from_dict(document, "as the file states it")


def _items(found: Bindings) -> tuple[bool, set[Any]]:
    """Whether tables of items and actions have other columns than context's, and their features."""
    network = found.get(("", "NetworkArgs"), {})
    widths = [network.get(f"{kind}_embedding_dim", 0) for kind in ("item", "contextual")]
    data = found.get(("", "BenchmarkDatasetArgs"), {})
    return min(widths) > 0, {v for k, v in data.items() if k in _NAMED}


def _width(network: dict[str, Any], named: set[Any], fields: dict[str, Any]) -> int | None:
    """Columns of a table where those of items and actions have others than context's."""
    features = set(map(str, fields.get("feature_names", ())))
    kind = "item" if features & named else "contextual"
    width: int | None = network[f"{kind}_embedding_dim"] if features else None
    return width


def runs_now(text: str, model: Model, cluster: Cluster) -> tuple[dict[str, PinSpec], list[str]]:
    """What the trainer runs, on the model with what the file states, and what is assumed."""
    found, unread = _read(text)
    rows = {table.name: fields for table, _, fields in _tables(found, model)}
    trainer = found.get(("", "TrainerArgs"), {})
    prefetched = trainer.get("pipeline_type") == "prefetch"
    replicated = [n for n, each in rows.items() if each.get("sharding_type") == "data_parallel"]
    pins, notes = others(model, prefetched, replicated)
    notes += [f"not read: {listed(unread, 3)}"] if unread else []
    two, named = _items(found)
    if two and not named:
        notes.append("the file states two widths, but not which tables are of items: as the model")
    silent = []
    for table in model.tables:
        if table.kind == "dynamicemb":
            share, near = _share(table, rows.get(table.name, {}), model, cluster.num_ranks)
            notes += near
            silent += [table.name] if share is None else []
            caching = bool(rows.get(table.name, {}).get("caching"))
            pins[table.name] = pin_of_share(table, Fraction(1) if share is None else share, caching)
    if silent:
        notes.append(
            f"the file states no HBM for dynamicemb tables ({listed(silent, 3)}): all of it, as "
            "the example's script asks"
        )
    return pins, notes


def _share(
    table: Table, fields: dict[str, Any], model: Model, world: int
) -> tuple[Fraction | None, list[str]]:
    """The share of a table's values in HBM, to a hundredth, and a sentence if that is not exact."""
    ratio = fields.get("item_vocab_gpu_capacity_ratio")
    asked = fields.get("global_hbm_for_values") if ratio is None else ratio
    if asked is None:
        return None, []
    if not isinstance(asked, int | float) or not 0 <= asked < 2**63:
        raise BadInput(f"table {table.name!r}: found {asked!r}; allowed: a number from 0")
    row = runtime_value_bytes(table.dim, table.element_bytes, model.optimizer_of(table))
    slots = world * table.bucket_capacity
    whole = 1 if ratio is not None else -(-table.rows // slots) * slots * row
    share = min(Fraction(1), Fraction(str(asked)) / whole)
    near = share.limit_denominator(FINEST_RATIO)
    near = near if near or not share else Fraction(1, FINEST_RATIO)
    asks = f"table {table.name!r} asks for {float(share):.4g} of its values in HBM"
    return near, [] if near == share else [f"{asks}; judged at {near}"]
