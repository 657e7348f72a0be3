"""The HTTP interface: access control, routes, and the form of answers."""

from __future__ import annotations

import hmac
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    FileResponse,
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from milp_planner.errors import BadInput
from milp_planner.integrations.exports import FORMATS
from milp_planner.serve.asked import Catalog
from milp_planner.serve.jobs import ENDED, QUEUED, RUNNING, Full, Job, Jobs
from milp_planner.serve.limits import Limits
from milp_planner.serve.openapi import description
from milp_planner.serve.reader import Readers

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
#: A report brings its own styles and script; it gets no origin to use them against.
_REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
)
_OPEN = {"/", "/serve.css", "/serve.js", "/healthz"}
"""Paths that need no token, as they reveal nothing."""
LOOPBACK = {"127.0.0.1", "localhost", "[::1]"}


class Refused(Exception):
    """A request that is answered with an error sentence."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class Service:
    """Request handlers that share jobs, limits and catalog."""

    def __init__(self, catalog: Catalog, limits: Limits, cache: Path | None) -> None:
        self.catalog, self.limits = catalog, limits
        self.jobs = Jobs(limits, cache)
        self.answers: Counter[int] = Counter()
        self.readers = Readers(catalog, limits)

    async def page(self, _request: Request) -> Response:
        """The page."""
        return _text("index.html", "text/html")

    async def style(self, _request: Request) -> Response:
        """Styles of the page: those shared by every page, and its own."""
        drawing = files("milp_planner.drawing")
        parts = [drawing.joinpath(name).read_text("utf-8") for name in ("page.css", "series.css")]
        parts.append(files("milp_planner.serve").joinpath("serve.css").read_text("utf-8"))
        return Response("".join(parts), media_type="text/css")

    async def script(self, _request: Request) -> Response:
        """Script of the page."""
        return _text("serve.js", "text/javascript")

    async def health(self, _request: Request) -> Response:
        """Whether the service is alive."""
        return JSONResponse({"ok": True})

    async def openapi(self, _request: Request) -> Response:
        """The OpenAPI description of this interface."""
        return JSONResponse(description())

    async def shipped(self, _request: Request) -> Response:
        """Names of the shipped models and clusters."""
        catalog = self.catalog
        return JSONResponse({"models": [*catalog.models], "clusters": [*catalog.clusters]})

    async def shipped_text(self, request: Request) -> Response:
        """The YAML text of a shipped model or cluster."""
        kind, name = request.path_params["kind"], request.path_params["name"]
        found = {"models": self.catalog.models, "clusters": self.catalog.clusters}.get(kind, {})
        if name not in found:
            raise Refused(404, f"no shipped {kind[:20]} have that name")
        return PlainTextResponse(found[name])

    async def submit(self, request: Request) -> Response:
        """Read a request; queue its job."""
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            raise Refused(415, "the content type must be application/json")
        body = await _body(request, self.limits.body)
        how, inputs = await self.readers.read(body)
        if "start" in how:
            before = self._job(how["start"])
            if before.result is None or before.result["objective"] is None:
                raise Refused(409, f"job {before.id} has no plan to move from")
        try:
            job = self.jobs.submit(how, inputs)
        except Full:
            raise Refused(
                429, f"{self.limits.waiting} jobs are already waiting; try again later"
            ) from None
        return JSONResponse(job.to_dict(), 202, {"Location": f"/v1/jobs/{job.id}"})

    async def listed(self, _request: Request) -> Response:
        """All known jobs."""
        return JSONResponse({"jobs": [job.to_dict() for job in self.jobs.all.values()]})

    async def one(self, request: Request) -> Response:
        """One job."""
        return JSONResponse(self._job(request.path_params["id"]).to_dict())

    async def cancel(self, request: Request) -> Response:
        """Ask a job to stop."""
        job = self._job(request.path_params["id"])
        if job.state not in ENDED:
            self.jobs.cancel(job)
        return JSONResponse(job.to_dict(), 202)

    async def events(self, request: Request) -> Response:
        """Events of a job as they happen."""
        job = self._job(request.path_params["id"])

        async def stream() -> AsyncIterator[str]:
            async for event in job.follow():
                if event is None:
                    yield ": alive\n\n"
                else:
                    yield f"event: {event['event']}\ndata: {json.dumps(event)}\n\n"

        return StreamingResponse(stream(), media_type="text/event-stream")

    async def file(self, request: Request) -> Response:
        """One of the files of a finished job."""
        job, name = self._job(request.path_params["id"]), request.path_params["name"]
        kinds = {"plan.json": "application/json", "picture.json": "application/json"}
        kinds |= {"report.html": "text/html", **{f"{f}.txt": "text/plain" for f in FORMATS}}
        if name not in kinds:
            raise Refused(404, f"a job has no such file; allowed: {', '.join(kinds)}")
        path = job.folder / name
        if job.state not in ENDED:
            raise Refused(409, f"the job is {job.state}; its files are ready when it ends")
        if not path.is_file():
            why = (job.result or {}).get("not_exported", {}).get(name.removesuffix(".txt"))
            raise Refused(404, why or f"the job is {job.state} and has no {name}")
        headers = {"Content-Security-Policy": _REPORT_POLICY} if name == "report.html" else {}
        return FileResponse(path, media_type=kinds[name], headers=headers)

    async def metrics(self, _request: Request) -> Response:
        """Metrics in Prometheus' text format 0.0.4."""
        jobs = self.jobs
        found: dict[str, dict[str, object]] = {
            "jobs gauge": {f'{{state="{s}"}}': jobs.count(s) for s in (QUEUED, RUNNING)},
            "jobs_ended_total counter": {f'{{state="{s}"}}': jobs.ended[s] for s in ENDED},
            "jobs_cached_total counter": {"": jobs.cached},
            "solve_seconds_total counter": {"": f"{jobs.seconds:.3f}"},
            "job_peak_bytes gauge": {"": jobs.peak},
            "http_answers_total counter": {
                f'{{code="{code}"}}': count for code, count in sorted(self.answers.items())
            },
        }
        lines = []
        for kind, values in found.items():
            lines.append(f"# TYPE milp_planner_{kind}")
            lines += [f"milp_planner_{kind.split()[0]}{at} {v}" for at, v in values.items()]
        return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")

    def _job(self, id: str) -> Job:
        job = self.jobs.all.get(id)
        if job is None:
            raise Refused(404, "there is no such job, or it has been dropped")
        return job


def application(
    catalog: Catalog,
    limits: Limits,
    token: str | None = None,
    hosts: set[str] | None = None,
    cache: Path | None = None,
) -> ASGIApp:
    """The service as an ASGI application.

    Parameters
    ----------
    catalog : Catalog
    limits : Limits
    token : str, optional
        Token that every request must carry; None: none.
    hosts : set of str, optional
        Host names that requests may be addressed to; None: any.
    cache : Path, optional
        Folder where plans are kept; None: a temporary one.
    """
    service = Service(catalog, limits, cache)
    handlers: list[tuple[str, str, Callable[[Request], Awaitable[Response]]]] = [
        ("GET", "/", service.page),
        ("GET", "/serve.css", service.style),
        ("GET", "/serve.js", service.script),
        ("GET", "/healthz", service.health),
        ("GET", "/openapi.json", service.openapi),
        ("GET", "/metrics", service.metrics),
        ("GET", "/v1/shipped", service.shipped),
        ("GET", "/v1/shipped/{kind}/{name}", service.shipped_text),
        ("POST", "/v1/jobs", service.submit),
        ("GET", "/v1/jobs", service.listed),
        ("GET", "/v1/jobs/{id}", service.one),
        ("DELETE", "/v1/jobs/{id}", service.cancel),
        ("GET", "/v1/jobs/{id}/events", service.events),
        ("GET", "/v1/jobs/{id}/{name}", service.file),
    ]

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        await service.jobs.close()
        await service.readers.close()

    app = Starlette(
        routes=[Route(path, handler, methods=[method]) for method, path, handler in handlers],
        exception_handlers=dict.fromkeys((Refused, BadInput, ClientDisconnect, 404, 405), _told),
        lifespan=lifespan,
    )
    return Guard(app, service.answers, token, hosts)


class Guard:
    """Checks host, origin and token before a request; adds headers and counts answers after it."""

    def __init__(
        self, app: ASGIApp, answers: Counter[int], token: str | None, hosts: set[str] | None
    ) -> None:
        self._app, self._answers, self._token, self._hosts = app, answers, token, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or refuse it with a sentence."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def counted(message: Any) -> None:
            if message["type"] == "http.response.start":
                self._answers[message["status"]] += 1
                names = {name.lower() for name, _ in message["headers"]}
                message["headers"] += [each for each in _HEADERS if each[0] not in names]
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, receive, counted)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        host = headers.get("host", "")
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        if self._hosts is not None and name not in self._hosts:
            return _said(421, f"this service answers to {', '.join(sorted(self._hosts))} only")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return _said(403, "requests from pages of another origin are refused")
        if self._token is None or scope["path"] in _OPEN:
            return None
        given = headers.get("authorization", "")
        if hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
            return None
        return _said(401, "a token is needed: Authorization: Bearer TOKEN")


_HEADERS = [
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


def _said(code: int, message: str) -> Response:
    return JSONResponse({"error": message}, code)


async def _told(_request: Request, error: Exception) -> Response:
    """An error as an answer of one sentence."""
    if isinstance(error, Refused):
        return _said(error.code, error.message)
    if isinstance(error, BadInput):
        return _said(422, str(error))
    if isinstance(error, ClientDisconnect):
        return _said(400, "the client disconnected")
    code = int(getattr(error, "status_code", 404))
    return _said(
        code, "there is nothing here" if code == 404 else "this method is not allowed here"
    )


async def _body(request: Request, most: int) -> bytes:
    """The request's body, read up to the allowed size."""
    length = request.headers.get("content-length", "0")
    if length.isdigit() and int(length) > most:
        raise Refused(413, f"the request is larger than {most:,} bytes")
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise Refused(413, f"the request is larger than {most:,} bytes")
        parts.append(part)
    return b"".join(parts)


def _text(name: str, kind: str) -> Response:
    return Response(files("milp_planner.serve").joinpath(name).read_text("utf-8"), media_type=kind)
