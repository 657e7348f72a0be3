"""Requests: text from outside becomes checked inputs, or an error of one sentence.

No part of a request can name a file: models come as text or as the name of a shipped one, and the
fields of a model that would name files are refused before they are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.access import curve_names
from milp_planner.inputs.changes import changed_cluster, changed_model
from milp_planner.inputs.files import build, read_json
from milp_planner.inputs.problems import choice
from milp_planner.inputs.repeated import count_tables
from milp_planner.inputs.strict_yaml import Document, read_yaml
from milp_planner.pricing.profile import profile_names
from milp_planner.serve.limits import Limits

MOST_BYTES = 2**50
SECONDS = 30.0
"""Default time limit of a job."""


class Catalog(Protocol):
    """The shipped models and clusters: texts by name."""

    @property
    def models(self) -> Mapping[str, str]:
        """YAML texts of models."""

    @property
    def clusters(self) -> Mapping[str, str]:
        """YAML texts of clusters."""


class Asked(BaseModel):
    """A requested job: ``model`` and ``cluster`` are names of shipped ones, or YAML texts."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)

    model: Annotated[str, Field(min_length=1, description="Name of a shipped model, or YAML text")]
    cluster: Annotated[
        str, Field(min_length=1, description="Name of a shipped cluster, or YAML text")
    ]
    objective: Literal["step_time", "pipelined_step", "busiest_rank", "total"] = "step_time"
    time_limit: Annotated[
        float | None,
        Field(gt=0, le=86_400, description=f"seconds; default: {SECONDS:g}, or the most allowed"),
    ] = None
    gap: Annotated[
        float, Field(ge=0, lt=1, description="certified gap at which the search stops, a fraction")
    ] = 0.0
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    hbm: Annotated[
        int | None, Field(gt=0, le=MOST_BYTES, description="HBM of the smallest rank, in bytes")
    ] = None
    ddr: Annotated[
        int | None, Field(gt=0, le=MOST_BYTES, description="DDR of the smallest machine, in bytes")
    ] = None
    machines: Annotated[
        int | None, Field(ge=1, le=4096, description="machines like the cluster's first")
    ] = None
    growth: Annotated[
        dict[str, Annotated[float, Field(ge=0, le=10_000)]],
        Field(max_length=100, description="percent by which rows grow, by table or pattern"),
    ] = {}
    moves_from: Annotated[
        str | None, Field(max_length=64, description="job whose plan is in production")
    ] = None
    most_moves: Annotated[
        int | None, Field(ge=0, le=100_000, description="most tables that may move from that plan")
    ] = None


def read_request(
    body: bytes, catalog: Catalog, limits: Limits
) -> tuple[dict[str, Any], dict[str, Any]]:
    """How a requested job is to be solved, and its model and cluster, as plain values.

    BadInput with one sentence if anything is wrong or too large.
    """
    asked = read_asked(body)
    model, cluster = inputs_of(asked, catalog, limits)
    how = asked.model_dump(include={"objective", "gap", "seed", "moves_from", "most_moves"})
    how["time_limit"] = _seconds(asked.time_limit, limits)
    return how, {"model": model.to_dict(), "cluster": cluster.to_dict()}


def _seconds(asked: float | None, limits: Limits) -> float:
    if asked is not None and asked > limits.seconds:
        raise BadInput(f"request: time_limit: at most {limits.seconds:g} s are allowed here")
    return min(SECONDS, limits.seconds) if asked is None else asked


def read_asked(body: bytes) -> Asked:
    """Parse a request's JSON; BadInput with one sentence for anything else."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"the request is not UTF-8 text (byte {error.start})") from None
    data = read_json(text, "request").data
    if not isinstance(data, dict):
        raise BadInput(f"request: needs a JSON object, found a {type(data).__name__}")
    try:
        asked = Asked.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "request"
        message = f"{first['msg'][:1].lower()}{first['msg'][1:]}"
        if first["type"] == "extra_forbidden":
            message = choice(str(first["loc"][0]), [*Asked.model_fields])
        raise BadInput(f"request: {where[:80]}: {message}") from None
    if (asked.moves_from is None) != (asked.most_moves is None):
        raise BadInput("request: moves_from and most_moves must be given together")
    return asked


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
