"""Bodies that become large when they are read, beside a client that asks whether the service lives.

Run as ``python -m benchmarks.serve.bodies [-o FILE]`` (needs the extra ``serve``). Every body is
sent twice, two at a time. The exit code is 1 unless each gets one sentence within five seconds, the
service and its processes stay below 1 GiB together, and ``/healthz`` answers within 0.2 s
throughout.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.serve.run import children, resident
from milp_planner.files import write_json
from tests.milp_planner.serve.served import CLUSTER, command

HEAD = "name: m\nworkload: {batch_per_rank: 8}\n"
MANY = "tables:\n" + "".join(f"- {{name: t{n}, rows: 9, dim: 8}}\n" for n in range(19_000))
MODELS = {
    "thirty lines of 100,000 names": HEAD + "tables:\n"
    + "".join(f"- {{names: {n}_0..{n}_99999, rows: 1, dim: 8}}\n" for n in range(30)),
    "1.5 million ones": f"{HEAD}tables: [{'1,' * 1_500_000}1]\n",
    "1.3 million empty tables": f"{HEAD}tables: [{'{},' * 1_300_000}{{}}]\n",
    "20,000 empty tables": f"{HEAD}tables: [{'{},' * 19_999}{{}}]\n",
    "20,000 patterns over 19,000 tables": f"{HEAD}patterns:\n"
    + "".join(f"  '[t{n}]*': {{dim: 8}}\n" for n in range(20_000)) + MANY,
}  # fmt: skip
BODIES = {name: {"model": text, "cluster": CLUSTER} for name, text in MODELS.items()} | {
    "300,000 unknown fields": {"model": HEAD, "cluster": CLUSTER}
    | {f"k{n}": 1 for n in range(300_000)},
    "a thousand machines of 65,536 ranks": {
        "model": HEAD + "tables: []\n",
        "cluster": "name: c\nmachines:\n" + "- {ddr: 1TB, hbm: 80GiB, ranks: 65536}\n" * 1_000,
    },
}
#: Most seconds for an answer, for /healthz, and most bytes of all processes together.
SECONDS, HEALTHY, MEMORY = 5.0, 0.2, 2**30


class Watch:
    """Asks for /healthz, and sums up the memory of the service and its processes, all the time."""

    def __init__(self, address: str, pid: int) -> None:
        self.slowest, self.asked, self.peak, self.over = 0.0, 0, 0, threading.Event()
        self._address, self._pid = address, pid
        self._threads = [threading.Thread(target=each) for each in (self._health, self._memory)]

    def __enter__(self) -> Watch:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        for each in self._threads:
            each.join()

    def _health(self) -> None:
        while not self.over.wait(0.02):
            start = time.monotonic()
            with urllib.request.urlopen(self._address + "healthz", timeout=60) as answer:
                answer.read()
            self.slowest = max(self.slowest, time.monotonic() - start)
            self.asked += 1

    def _memory(self) -> None:
        while not self.over.wait(0.02):
            self.peak = max(self.peak, sum(map(held, family(self._pid))))


def family(pid: int) -> list[int]:
    """A process and all that descend from it."""
    try:
        return [pid, *(each for child in children(pid) for each in family(child))]
    except OSError:
        return []


def held(pid: int) -> int:
    """Bytes that a process holds; 0 if it is gone."""
    try:
        return resident(pid)
    except (OSError, IndexError):
        return 0


def sent(address: str, name: str) -> tuple[str, float, str]:
    """A body's name, the seconds until it was answered, and the sentence."""
    body, start = json.dumps(BODIES[name]).encode(), time.monotonic()
    request = urllib.request.Request(
        address + "v1/jobs", body, {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:
            said = f"{answer.status}, accepted"
    except urllib.error.HTTPError as error:
        said = f"{error.code}, {json.load(error)['error']}"
    return name, time.monotonic() - start, said


def main() -> int:
    """Send the bodies, report and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path)
    output = parser.parse_args().output
    with command() as (address, service):
        sent(address, "thirty lines of 100,000 names")  # starts the first reader
        with Watch(address, service.pid) as watch, ThreadPoolExecutor(2) as clients:
            answers = list(clients.map(lambda name: sent(address, name), [*BODIES, *BODIES]))
    found: dict[str, dict[str, Any]] = {}
    for name, seconds, said in answers:
        slowest = max(seconds, found.get(name, {}).get("seconds", 0.0))
        found[name] = {"seconds": round(slowest, 2), "answer": said}
    result = {
        "date": datetime.date.today().isoformat(), "cores": os.cpu_count(), "bodies": found,
        "healthz_slowest_seconds": round(watch.slowest, 3), "healthz_asked": watch.asked,
        "peak_bytes_of_all_processes": watch.peak,
    }  # fmt: skip
    print(json.dumps(result, indent=1))
    if output is not None:
        write_json(output, result)
    slow = [name for name, each in found.items() if each["seconds"] > SECONDS]
    refused = all(each["answer"].startswith("422, ") for each in found.values())
    return 1 if slow or not refused or watch.slowest > HEALTHY or watch.peak > MEMORY else 0


if __name__ == "__main__":
    sys.exit(main())
