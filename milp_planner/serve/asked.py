"""Requests: text from outside becomes checked inputs, or an error of one sentence.

No part of a request can name a file: models come as text or as the name of a shipped one, and the
fields of a model that would name files are refused before they are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.access import curve_names
from milp_planner.inputs.changes import changed_cluster, changed_model
from milp_planner.inputs.files import build, read_json
from milp_planner.inputs.problems import choice
from milp_planner.inputs.repeated import count_tables
from milp_planner.inputs.strict_yaml import Document, read_yaml
from milp_planner.pricing.profile import profile_names
from milp_planner.request import PlanRequest
from milp_planner.serve.limits import Limits

MOST_BYTES = 2**50
SECONDS = 30.0
"""Default time limit of a job."""


@dataclass(frozen=True)
class Catalog:
    """The shipped models and clusters: YAML texts by name."""

    models: Mapping[str, str]
    clusters: Mapping[str, str]


Growth = Annotated[float, Field(ge=0, le=10_000)]


class Asked(PlanRequest):
    """A requested job: those fields of a request that need no file, and sizes to try."""

    model: Annotated[str, Field(min_length=1)]
    """Name of a shipped model, or YAML text."""
    cluster: Annotated[str, Field(min_length=1)]
    """Name of a shipped cluster, or YAML text."""
    start: Annotated[str, Field(max_length=64)] | None = None
    """Job whose plan to start from."""
    hbm: Annotated[int, Field(gt=0, le=MOST_BYTES)] | None = None
    """HBM of the smallest rank, in bytes."""
    ddr: Annotated[int, Field(gt=0, le=MOST_BYTES)] | None = None
    """DDR of the smallest machine, in bytes."""
    machines: Annotated[int, Field(ge=1, le=4096)] | None = None
    """Machines like the cluster's first."""
    growth: Annotated[dict[str, Growth], Field(max_length=100, default_factory=dict)]
    """Percent by which rows grow, by table or pattern."""


OWN = ("hbm", "ddr", "machines", "growth")
ASKED = (
    "objective", "goals", "time_limit", "gap", "seed", "start", "max_moved", "moves_within",
)  # fmt: skip
"""Fields of a request that a job may have, besides model and cluster."""
RENAMED = {"moves_from": "start", "before": "start", "most_moves": "max_moved"}
"""Former names of fields, which are read as well."""


def schema() -> dict[str, Any]:
    """The JSON schema of a job."""
    whole = Asked.model_json_schema()
    named = ("model", "cluster", *ASKED, *OWN)
    whole["properties"] = {name: whole["properties"][name] for name in named}
    seconds = whole["properties"]["time_limit"]
    seconds["description"] = f"Seconds; default: {SECONDS:g}, or the most allowed"
    return whole


def read_request(
    body: bytes, catalog: Catalog, limits: Limits
) -> tuple[dict[str, Any], dict[str, Any]]:
    """How a requested job is to be solved, and its model and cluster, as plain values.

    BadInput with one sentence if anything is wrong or too large.
    """
    data = read_data(body)
    asked = read_asked(data)
    model, cluster = inputs_of(asked, catalog, limits)
    how = {name: data[name] for name in ASKED if data.get(name) is not None}
    how["time_limit"] = _seconds(asked.time_limit, limits)
    return how, {"model": model.to_dict(), "cluster": cluster.to_dict()}


def _seconds(asked: float | None, limits: Limits) -> float:
    if asked is not None and asked > limits.seconds:
        raise BadInput(f"request: time_limit: at most {limits.seconds:g} s are allowed here")
    return min(SECONDS, limits.seconds) if asked is None else asked


def read_data(body: bytes) -> dict[str, Any]:
    """A request's JSON object, its fields by their names of today."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"the request is not UTF-8 text (byte {error.start})") from None
    data = read_json(text, "request").data
    if not isinstance(data, dict):
        raise BadInput(f"request: needs a JSON object, found a {type(data).__name__}")
    return {RENAMED.get(str(name), str(name)): value for name, value in data.items()}


def read_asked(data: dict[str, Any]) -> Asked:
    """The request; BadInput with one sentence for what a job may not have."""
    known = ("model", "cluster", *ASKED, *OWN)
    for name in data:
        if name not in known:
            raise BadInput(f"request: {name[:80]}: {choice(name, known)}")
    try:
        return Asked.of(data)
    except BadInput as error:
        first = replace(error.problems[0], message=error.problems[0].message[:300])
        raise BadInput(f"request: {first}") from None


def inputs_of(asked: Asked, catalog: Catalog, limits: Limits) -> tuple[Model, Cluster]:
    """The requested model and cluster; BadInput if they are wrong or too large."""
    document, folder = _safe(_document(asked.model, "model", catalog.models, limits))
    tables = count_tables(document.data.get("tables"))
    if tables > limits.tables:
        raise BadInput(f"model: {tables:,} tables; at most {limits.tables:,} here")
    model = build(Model, document, folder)
    if asked.growth:
        grown = {f"tables.{name}.rows": f"+{p}%" for name, p in asked.growth.items()}
        model = changed_model(model, grown)
    document = _document(asked.cluster, "cluster", catalog.clusters, limits)
    cluster = _resized(build(Cluster, document), asked)
    if cluster.profile not in profile_names():
        raise BadInput(
            f"cluster: profile {cluster.profile!r}: {choice(cluster.profile, profile_names())}"
        )
    if cluster.num_ranks > limits.ranks:
        raise BadInput(f"cluster: {cluster.num_ranks:,} ranks; at most {limits.ranks:,} here")
    return model, cluster


def _document(text: str, what: str, shipped: Mapping[str, str], limits: Limits) -> Document:
    """Parse YAML text, which contains a line break or a brace; anything else is a name."""
    if "\n" not in text and "{" not in text:
        if text not in shipped:
            raise BadInput(f"{what}: {choice(text[:80], list(shipped))}, or YAML text")
        text = shipped[text]
    document = read_yaml(text, what, most=limits.values)
    if not isinstance(document.data, dict):
        raise BadInput(f"{what}: needs a mapping of fields")
    return document


def _safe(document: Document) -> tuple[Document, Path | None]:
    """The document, and the folder of shipped curves, or None if the document names no curve.

    BadInput for a field that names a file.
    """
    if isinstance(document.data.get("tables"), dict):
        raise BadInput("model: tables: the service reads no files; allowed: a list of tables")
    curves = [*_named(document.data, "curve")]
    if any(_named(document.data, "keys")):
        raise BadInput("model: access.keys: the service reads no files; allowed: other kinds")
    for curve in curves:
        if curve not in curve_names():
            raise BadInput(f"model: access.curve: {choice(str(curve)[:80], curve_names())}")
    return document, Path("/nonexistent") if curves else None


def _named(data: Any, name: str) -> Iterator[Any]:
    """Values of all fields called ``name``, at any depth."""
    if isinstance(data, dict):
        for key, value in data.items():
            if key == name:
                yield value
            yield from _named(value, name)
    elif isinstance(data, list):
        for item in data:
            yield from _named(item, name)


def _resized(cluster: Cluster, asked: Asked) -> Cluster:
    """The cluster with the requested machines and memories."""
    if asked.machines is not None and asked.machines != len(cluster.machines):
        cluster = changed_cluster(cluster, {"machines": asked.machines})
    here = {
        "hbm": min(rank.hbm_bytes for rank in cluster.ranks),
        "ddr": min(machine.ddr_bytes for machine in cluster.machines),
    }
    wanted = {name: getattr(asked, name) for name in here if getattr(asked, name) is not None}
    sizes = {f"cluster.{name}": f"{size - here[name]:+}" for name, size in wanted.items()}
    return changed_cluster(cluster, sizes)
