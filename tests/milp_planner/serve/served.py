"""Services on a free port, in this process or one of their own, and a standard-library client."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from milp_planner.serve.limits import Limits
from scenarios import catalog

MODEL = """
name: small
workload: {batch_per_rank: 512}
tables:
  - {name: users, rows: 1000000, dim: 64}
  - {name: items, rows: 400000, dim: 64}
"""
CLUSTER = """
name: two
machines: 1
ranks_per_machine: 2
hbm: 16GiB
ddr: 64GiB
profile: a10
interconnect: {intra_machine: 50GB/s, inter_machine: 10GB/s}
"""
JOB = {"model": MODEL, "cluster": CLUSTER, "time_limit": 5.0}
LONG = {"model": "dlrmv4-yambda5b", "cluster": "8xb200-tight", "time_limit": 60.0}


@dataclass
class Answer:
    """A response of the service."""

    code: int
    text: str
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.text)


@dataclass
class Client:
    """Sends requests to one service."""

    port: int
    token: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> Answer:
        """Send one request."""
        given = {**self.headers, **{k.replace("_", "-"): v for k, v in headers.items()}}
        if self.token:
            given.setdefault("Authorization", f"Bearer {self.token}")
        if body is not None:
            given.setdefault("Content-Type", "application/json")
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", body, given, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return Answer(answer.status, answer.read().decode(), dict(answer.headers))
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.read().decode(), dict(error.headers))

    def get(self, path: str, **headers: str) -> Answer:
        """Send a GET request."""
        return self.ask("GET", path, **headers)

    def post(self, job: dict[str, Any], **headers: str) -> Answer:
        """Submit a job."""
        return self.ask("POST", "/v1/jobs", json.dumps(job).encode(), **headers)

    def events(self, id: str) -> list[dict[str, Any]]:
        """All events of a job, until it ends."""
        text = self.get(f"/v1/jobs/{id}/events").text
        lines = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
        return [json.loads(line) for line in lines]

    def until(self, id: str, *states: str, seconds: float = 60) -> dict[str, Any]:
        """The job, once it is in one of these states."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            job: dict[str, Any] = self.get(f"/v1/jobs/{id}").json
            if job["state"] in states:
                return job
            time.sleep(0.05)
        raise AssertionError(f"job {id} is {job['state']}, not {states}")


@contextmanager
def command(*arguments: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """``milp-planner serve`` on a free port, as a user starts it: its address and its process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "milp_planner", "serve", "--port", "0", *arguments],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        found = re.search(r"http://127\.0\.0\.1:\d+/", process.stderr.readline())
        assert found is not None
        until_answered(found[0] + "healthz")
        yield found[0], process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait(30)


def until_answered(url: str, seconds: float = 30) -> None:
    """Wait until a service that is starting answers."""
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                assert answer.read() == b'{"ok":true}'
                return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


@contextmanager
def service(
    limits: Limits | None = None,
    token: str | None = None,
    hosts: set[str] | None = None,
    cache: Path | None = None,
) -> Iterator[Client]:
    """A running service, ended afterwards."""
    import uvicorn

    from milp_planner.serve.app import Catalog, application

    texts = Catalog(
        {each.name: each.path.read_text("utf-8") for each in catalog.models()},
        {each.name: each.path.read_text("utf-8") for each in catalog.clusters()},
    )
    app = application(texts, limits or Limits(), token, hosts, cache)
    config = uvicorn.Config(app, port=0, log_level="warning", timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)
    listening = config.bind_socket()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    end = time.monotonic() + 30
    while not server.started and time.monotonic() < end:
        time.sleep(0.02)
    try:
        yield Client(listening.getsockname()[1], token or "")
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()
