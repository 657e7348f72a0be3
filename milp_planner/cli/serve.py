"""``milp-planner serve``: the planner as a service with one page."""

from __future__ import annotations

import os
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated

from milp_planner.cli.failures import say
from milp_planner.cli.options import option, positive, whole
from milp_planner.cli.readers import find_cache
from milp_planner.errors import BadInput, MissingExtra

TOKEN = "MILP_PLANNER_TOKEN"
_FEWEST = 16


def run(
    host: Annotated[
        str, option("--host ADDRESS", "Where to listen; any but loopback needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, option("--port N", "Port; 0: any free one.", whole(0, 65535))] = 8765,
    most_seconds: Annotated[
        float, option("--most-seconds S", "Longest time limit of a job.", positive)
    ] = 300.0,
    most_memory: Annotated[
        str, option("--most-memory SIZE", "Memory above which a job is ended.")
    ] = "8GiB",
    running: Annotated[
        int, option("--running N", "Jobs solved at the same time.", whole(1, 64))
    ] = 1,
    waiting: Annotated[
        int, option("--waiting N", "Jobs that may wait; one more is refused.", whole(0, 10_000))
    ] = 16,
    cache: Annotated[
        Path | None,
        option(
            "--cache DIR",
            "Folder of the plan cache; default: the variable MILP_PLANNER_CACHE, or a temporary"
            " one that is deleted with the service.",
        ),
    ] = None,
) -> None:
    """Serve the planner over HTTP, with a page that plans while you watch.

    Open the address it prints: pick or paste a model and a cluster, watch plan and bound converge,
    change HBM, DDR, machines and moves, download exports. The interface is described in
    /openapi.json. Every job is solved in a process of its own. The token is read from the variable
    MILP_PLANNER_TOKEN; all addresses except loopback need one.
    """
    try:
        import uvicorn

        from milp_planner.serve.app import LOOPBACK, Catalog, application
    except ModuleNotFoundError as error:
        if error.name not in ("uvicorn", "starlette"):
            raise
        raise MissingExtra(f"serve needs {error.name}: pip install 'milp-planner[serve]'") from None
    from milp_planner.inputs.quantities import parse_bytes
    from milp_planner.serve.limits import Limits
    from scenarios import catalog

    token, local = os.environ.get(TOKEN) or None, is_loopback(host)
    if token is None and not local:
        raise BadInput(f"--host {host}: any address but loopback needs a token; set {TOKEN}")
    if token is not None and len(token) < _FEWEST:
        raise BadInput(f"{TOKEN}: needs at least {_FEWEST} characters")
    try:
        memory = parse_bytes(most_memory)
    except ValueError as error:
        raise BadInput(f"--most-memory {most_memory!r}: {error}") from None
    kept = find_cache(cache, none=False)
    limits = Limits(seconds=most_seconds, memory=memory, running=running, waiting=waiting)
    texts = Catalog(
        {each.name: each.path.read_text("utf-8") for each in catalog.models()},
        {each.name: each.path.read_text("utf-8") for each in catalog.clusters()},
    )
    hosts = {*LOOPBACK, host, f"[{host}]"} if local else None
    app = application(texts, limits, token, hosts, None if kept is None else kept.folder.resolve())
    config = uvicorn.Config(
        app, host=host, port=port, log_level="warning", limit_concurrency=256,
        timeout_graceful_shutdown=3, server_header=False,
    )  # fmt: skip
    listening = config.bind_socket()
    shown = f"[{host}]" if ":" in host else host
    say(f"http://{shown}:{listening.getsockname()[1]}/ (Ctrl-C ends it)")
    uvicorn.Server(config).run(sockets=[listening])


def is_loopback(host: str) -> bool:
    """Whether an address can only be reached from this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
