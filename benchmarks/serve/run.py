"""200 requests from 20 clients at once, with cancels, killed processes and hostile bodies.

Run as ``python -m benchmarks.serve.run [-o FILE]`` (needs the extra ``serve``). It starts the
service as a user would, and ends with exit code 1 when a job is lost, an answer is not what it
should be, a process outlives its job, or memory grows beyond what is stated.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from http.client import HTTPException
from pathlib import Path
from typing import Any

from milp_planner.files import write_json
from tests.milp_planner.serve.served import MODEL, command

CLIENTS, REQUESTS, SEED = 20, 200, 1
#: What requests do, and how many of ten do it.
KINDS = ("plan",) * 5 + ("cancel",) * 2 + ("kill", "leave", "hostile")
HOSTILE = (
    b"[" * 50_000, b"x" * (4 * 2**20 + 1), b'{"model": NaN}', b"\xff",
    json.dumps({"model": "a: &a [1]\nb: *a\n", "cluster": "1xa10"}).encode(),
    json.dumps({"model": "name: m\ntables: {csv: /etc/passwd}\n", "cluster": "1xa10"}).encode(),
    json.dumps({"model": "../../etc/passwd", "cluster": "1xa10"}).encode(),
)  # fmt: skip
#: How they may end; the others are done or cancelled.
ALLOWED = {"plan": ("done",), "kill": ("failed", "cancelled")}
#: Bytes that the service itself may grow by between the first and the last quarter of the requests.
MOST_GROWTH = 64 * 2**20


class Load:
    """Clients of one service, and what they saw."""

    def __init__(self, address: str, pid: int) -> None:
        self.address, self.pid = address, pid
        self.seen: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.resident: list[int] = []
        self._left = random.Random(SEED).choices(KINDS, k=REQUESTS)
        self._lock = threading.Lock()

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
        """Code and JSON of one request."""
        request = urllib.request.Request(
            self.address + path, body, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)
        except urllib.error.URLError as error:
            if not isinstance(error.reason, (BrokenPipeError, ConnectionResetError)):
                raise  # else refused while a large body was still sent
            return 413, {"error": str(error)}

    def client(self, number: int) -> None:
        """Send requests while any are left."""
        chance = random.Random(SEED + number)
        while True:
            with self._lock:
                if not self._left:
                    return
                kind = self._left.pop()
                self.resident.append(resident(self.pid))
            try:
                self.one(kind, chance)
            except (OSError, ValueError, KeyError, HTTPException) as error:
                self.wrong.append(f"{kind}: {type(error).__name__}: {error}")

    def one(self, kind: str, chance: random.Random) -> None:
        """One request and what follows from it."""
        if kind == "hostile":
            code, said = self.ask("POST", "v1/jobs", chance.choice(HOSTILE))
            self._expect(400 <= code < 500 and bool(said["error"]), f"hostile: {code} {said}")
            self.seen["refused"] += 1
            return
        job = {"model": MODEL, "cluster": "1xa10", "time_limit": 2.0, "seed": chance.randrange(9)}
        if kind != "plan":
            job |= {"model": "dlrmv4-yambda5b", "cluster": "8xb200-tight", "time_limit": 20.0}
        code, made = self.ask("POST", "v1/jobs", json.dumps(job).encode())
        while code == 429:
            self.seen["asked to wait"] += 1
            time.sleep(0.2 + chance.random())
            code, made = self.ask("POST", "v1/jobs", json.dumps(job).encode())
        self._expect(code == 202, f"{kind}: {code} {made}")
        id = made["id"]
        if kind == "leave":  # a reader that goes away in the middle
            with urllib.request.urlopen(f"{self.address}v1/jobs/{id}/events", timeout=300) as news:
                news.readline()
        if kind in ("cancel", "leave"):
            time.sleep(chance.random() * 2)
            self.ask("DELETE", f"v1/jobs/{id}")
        if kind == "kill" and not self._kill(id):
            self.ask("DELETE", f"v1/jobs/{id}")
        state = self._end(id)
        allowed = ALLOWED.get(kind, ("cancelled", "done"))
        if state not in allowed:
            self._expect(False, f"{kind}: {self.ask('GET', f'v1/jobs/{id}')[1]}")
        self.seen[f"{kind}: {state}"] += 1

    def _kill(self, id: str) -> bool:
        """Kill the process of a job once it runs."""
        while self.ask("GET", f"v1/jobs/{id}")[1].get("state") == "queued":
            time.sleep(0.2)
        for pid in children(self.pid):
            if f"/{id}" in cwd(pid):
                os.kill(pid, signal.SIGKILL)
                return True
        return False

    def _end(self, id: str) -> str:
        """The state in the job's last event, with which the stream ends."""
        with urllib.request.urlopen(f"{self.address}v1/jobs/{id}/events", timeout=300) as news:
            told = [line[7:].strip().decode() for line in news if line.startswith(b"event: ")]
        self._expect(told[-1] in ("done", "failed", "cancelled"), f"job {id}: {told[-1]}")
        return told[-1]

    def _expect(self, so: bool, otherwise: str) -> None:
        if not so:
            self.wrong.append(otherwise)


def children(pid: int) -> list[int]:
    """Processes that a process started."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found += [int(child) for child in task.read_text().split()]
    return found


def cwd(pid: int) -> str:
    """A process's working directory; empty where the process is gone."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def resident(pid: int) -> int:
    """Bytes that a process holds."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main() -> int:
    """Run the clients, report and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    output = parser.parse_args().output
    with command("--running", "2", "--waiting", "12") as (address, service):
        load, start = Load(address, service.pid), time.monotonic()
        clients = [threading.Thread(target=load.client, args=(n,)) for n in range(CLIENTS)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        seconds = time.monotonic() - start
        waiting = load.ask("GET", "v1/jobs")[1]["jobs"]
        open_jobs = [job["id"] for job in waiting if job["state"] in ("queued", "running")]
        cached = sum(bool((job["result"] or {}).get("cached")) for job in waiting)
        left = [pid for pid in children(service.pid) if "milp-planner-serve." in cwd(pid)]
    quarter = len(load.resident) // 4
    growth = max(load.resident[-quarter:]) - max(load.resident[:quarter])
    result = {
        "date": datetime.date.today().isoformat(), "requests": REQUESTS, "clients": CLIENTS,
        "seconds": round(seconds, 1), "cached_of_last": [cached, len(waiting)],
        "seen": dict(sorted(load.seen.items())), "wrong": load.wrong, "open_jobs": open_jobs,
        "processes_left": len(left), "service_peak_bytes": max(load.resident),
        "service_growth_bytes": growth, "cores": os.cpu_count(),
    }  # fmt: skip
    print(json.dumps(result, indent=1))
    if output is not None:
        write_json(output, result)
    bad = load.wrong or open_jobs or left or growth > MOST_GROWTH
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
