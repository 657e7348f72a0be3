"""The judge of a reader's result for a file: a sentence, or a value that passes every check.

A file that is accepted must satisfy the published JSON schema as another YAML reader sees it, must
come back equal from its own writer, and must obey the format's rules when they are checked again
by the plain code below.
"""

import json
from collections.abc import Callable
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from formulations import Instance, InstanceError, read_instance
from formulations.instance.file import instance_from_dict, instance_to_dict
from formulations.instance.validate import validate
from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.files import load_cluster, load_model

SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schemas"
LOADERS: dict[str, Callable[[Path], Any]] = {
    "model": load_model,
    "cluster": load_cluster,
    "instance": read_instance,
}


#: libyaml where there is one: PyYAML's own scanner refuses tabs that YAML 1.1 allows.
_YAML = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Wrong(AssertionError):
    """The reader did what it must not: accepted nonsense, or refused without a sentence."""


def judge(kind: str, path: Path, must_refuse: bool = False) -> bool:
    """Read a file and judge what happens.

    Parameters
    ----------
    kind : str
        ``model``, ``cluster`` or ``instance``.
    path : Path
    must_refuse : bool
        Whether the file is certainly wrong.

    Returns
    -------
    bool
        Whether it was accepted.

    Raises
    ------
    Wrong
        With what went wrong. Any other exception is one the reader should not have let out.
    """
    try:
        value = LOADERS[kind](path)
    except (BadInput, InstanceError) as error:
        _judge_sentence(str(error), path)
        return False
    if must_refuse:
        raise Wrong("a file that is certainly wrong was accepted")
    document = _independently_read(path)
    error = next(_validator(kind).iter_errors(document), None)
    if error is not None:
        raise Wrong(f"accepted, but the schema says: {error.message[:200]}")
    {"model": _model, "cluster": _cluster, "instance": _instance}[kind](value, document)
    return True


def _judge_sentence(sentence: str, path: Path) -> None:
    if "\n" in sentence or not sentence.startswith(str(path)):
        raise Wrong(f"not one sentence about the file: {sentence[:200]!r}")
    if path.suffix == ".yaml" and len(sentence) > 1000:  # an instance's own names stay whole
        raise Wrong(f"a sentence of {len(sentence)} characters")


def _independently_read(path: Path) -> Any:
    text = path.read_text("utf-8-sig")
    return json.loads(text) if path.suffix == ".json" else yaml.load(text, Loader=_YAML)


@cache
def _validator(kind: str) -> Any:
    schema = json.loads((SCHEMAS / f"{kind}.schema.json").read_text("utf-8"))
    return jsonschema.Draft202012Validator(schema)


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise Wrong(f"accepted against the rule: {rule}")


def _model(model: Model, document: Any) -> None:
    again = Model.from_dict(json.loads(json.dumps(model.to_dict())))
    _require(again == model and again.fingerprint() == model.fingerprint(), "round trip")
    names = [table.name for table in model.tables]
    _require(len(set(names)) == len(names), "table names differ")
    _require(all(t.rows >= 1 and t.dim >= 1 for t in model.tables), "rows and dims from 1")
    if isinstance(document["tables"], list):
        _require(names == [t["name"] for t in document["tables"]], "every table is read, in order")


def _cluster(cluster: Cluster, document: Any) -> None:
    again = Cluster.from_dict(json.loads(json.dumps(cluster.to_dict())))
    _require(again == cluster and again.fingerprint() == cluster.fingerprint(), "round trip")
    machines = document["machines"]
    count = machines if isinstance(machines, int) else len(machines)
    _require(len(cluster.machines) == count, "every machine is read")
    numbers = list(chain.from_iterable(cluster.machine_ranks))
    _require(numbers == list(range(cluster.num_ranks)), "ranks are numbered machine by machine")
    _require(all(r.hbm_bytes >= 0 for r in cluster.ranks), "HBM from 0")


def _instance(instance: Instance, document: Any) -> None:
    validate(instance)
    written = instance_to_dict(instance)
    again = instance_from_dict(json.loads(json.dumps(written)))
    _require(again.fingerprint == instance.fingerprint, "round trip")
    ranks = sorted(chain.from_iterable(document["machines"]))
    _require(ranks == list(range(document["ranks"])), "machines are a partition of the ranks")
    tables = {t["name"]: {o["name"] for o in t["options"]} for t in document["tables"]}
    _require(len(tables) == len(document["tables"]) == instance.num_tables, "table names differ")
    places = {"rank": document["ranks"], "machine": len(document["machines"]), "cluster": 1}
    for resource in document["resources"]:
        capacity = resource["capacity"]
        if isinstance(capacity, list):
            _require(len(capacity) == places[resource["scope"]], "one capacity a place")
    _shards(document, {r["name"] for r in document["resources"]})
    for named in (*document.get("pins", ()), *document.get("forbidden", ())):
        _require(named["option"] in tables[named["table"]], "pins name options that exist")


def _shards(document: Any, resources: set[str]) -> None:
    ranks = set(range(document["ranks"]))
    for table in document["tables"]:
        for block in chain.from_iterable(o["blocks"] for o in table["options"]):
            where = block["where"]
            _require(not isinstance(where, list) or set(where) <= ranks, "listed ranks exist")
            for shard in block["shards"]:
                _require(set(shard.get("use", {})) <= resources, "used resources exist")
                _require(len(shard["cost"]) == len(document["phases"]), "one cost a phase")
                values = [*shard.get("use", {}).values(), *shard["cost"]]
                _require(all(type(v) is int and 0 <= v < 2**53 for v in values), "plain integers")
