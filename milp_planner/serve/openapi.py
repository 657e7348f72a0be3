"""The interface's description in OpenAPI 3.1."""

from __future__ import annotations

from typing import Any

from milp_planner.serve.asked import schema
from milp_planner.version import __version__

_ERROR = {
    "type": "object", "properties": {"error": {"type": "string", "description": "one sentence"}},
    "required": ["error"],
}  # fmt: skip
_JOB = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "state": {"enum": ["queued", "running", "done", "failed", "cancelled"]},
        "message": {"type": "string"},
        "created": {"type": "number", "description": "seconds since 1970"},
        "peak_bytes": {"type": "integer"},
        "result": {
            "type": ["object", "null"],
            "description": "status, standing, objective, bound, certified_bound (picoseconds), "
            "certified_gap, seconds (of the solve), cached (whether it was solved before), exports",
        },
    },
}


def _answer(
    what: str, schema: dict[str, Any] | None, kind: str = "application/json"
) -> dict[str, Any]:
    return {"description": what, "content": {kind: {} if schema is None else {"schema": schema}}}


def _operation(
    summary: str, answers: dict[str, Any], *refusals: str, parameters: tuple[str, ...] = ()
) -> dict[str, Any]:
    error = _answer("refused; a sentence says why", {"$ref": "#/components/schemas/Error"})
    found: dict[str, Any] = {
        "summary": summary,
        "responses": {**answers, **dict.fromkeys(("401", *refusals), error)},
    }
    if parameters:
        found["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in parameters
        ]
    return found


def description() -> dict[str, Any]:
    """The whole document."""
    job = {"$ref": "#/components/schemas/Job"}
    one = {"200": _answer("the job", job)}
    accepted = {"202": _answer("the job", job)}
    submit = _operation("Plan a model on a cluster", accepted, "413", "415", "422", "429")
    submit["requestBody"] = {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Asked"}}},
    }
    events = {"200": _answer("queued, running, progress, then done, failed or cancelled", None,
                             "text/event-stream")}  # fmt: skip
    text = {"200": _answer("YAML", None, "text/plain")}
    return {
        "openapi": "3.1.0",
        "info": {"title": "milp-planner", "version": __version__},
        "security": [{}, {"token": []}],
        "paths": {
            "/v1/jobs": {
                "post": submit,
                "get": _operation("All known jobs", {"200": _answer("jobs", None)}),
            },
            "/v1/jobs/{id}": {
                "get": _operation("One job", one, "404", parameters=("id",)),
                "delete": _operation("Stop a job and keep its best plan", accepted, "404",
                                     parameters=("id",)),
            },
            "/v1/jobs/{id}/events": {
                "get": _operation("Events of a job as server-sent events", events, "404",
                                  parameters=("id",)),
            },
            "/v1/jobs/{id}/{name}": {
                "get": _operation(
                    "A file of an ended job: plan.json, picture.json, report.html, or an export "
                    "such as torchrec.txt", {"200": _answer("the file", None, "*/*")}, "404", "409",
                    parameters=("id", "name"),
                ),
            },
            "/v1/shipped": {"get": _operation("Names of the shipped models and clusters",
                                              {"200": _answer("models, clusters", None)})},
            "/v1/shipped/{kind}/{name}": {
                "get": _operation("YAML text of one of them", text, "404",
                                  parameters=("kind", "name")),
            },
            "/metrics": {"get": _operation("Metrics in Prometheus' text format",
                                           {"200": _answer("metrics", None, "text/plain")})},
        },
        "components": {
            "schemas": {"Asked": schema(), "Job": _JOB, "Error": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }  # fmt: skip
