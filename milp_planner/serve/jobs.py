"""Jobs: a bounded queue, a process for each, their events, and their outcomes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from formulations.settings import available_cores
from milp_planner.serve.limits import Limits, memory_of

QUEUED, RUNNING, DONE, FAILED, CANCELLED = "queued", "running", "done", "failed", "cancelled"
ENDED = (DONE, FAILED, CANCELLED)
#: Events of a job that are kept: the first few, and the newest.
MOST_EVENTS = 500
#: Seconds between two checks of a process's memory, and between two keep-alives to a client.
LOOK, ALIVE = 0.2, 10.0
#: Bytes of the longest line that a process may write.
LINE = 4 * 2**20


class Full(Exception):
    """The queue is full."""


@dataclass(eq=False)
class Job:
    """One job and everything known about it."""

    id: str
    folder: Path
    seconds: float
    """The longest that its process may take."""
    work: bytes
    """What its process is told: how to solve it, and its inputs."""
    state: str = QUEUED
    events: list[dict[str, Any]] = field(default_factory=list)
    told: int = 0
    """Number of events so far, of which the newest are kept."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    cancelling: bool = False
    result: dict[str, Any] | None = None
    message: str = ""
    created: float = field(default_factory=time.time)
    peak: int = 0
    """Peak memory of its process, in bytes."""

    def tell(self, event: dict[str, Any]) -> None:
        """Add an event and wake all listeners."""
        self.events.append(event)
        self.told += 1
        del self.events[:-MOST_EVENTS]
        self.changed.set()
        self.changed = asyncio.Event()

    def to_dict(self) -> dict[str, Any]:
        """The job as clients see it."""
        return {"id": self.id, "state": self.state, "message": self.message, "result": self.result,
                "created": round(self.created, 3), "peak_bytes": self.peak}  # fmt: skip

    async def follow(self) -> AsyncIterator[dict[str, Any] | None]:
        """Its events from the first kept to the last; None is a keep-alive."""
        seen = self.told - len(self.events)
        while True:
            changed = self.changed
            while seen < self.told:
                seen = max(seen, self.told - len(self.events))
                event = self.events[seen - self.told + len(self.events)]
                seen += 1
                yield event
            if self.state in ENDED:
                return
            try:
                await asyncio.wait_for(changed.wait(), ALIVE)
            except TimeoutError:
                yield None


class Jobs:
    """All jobs of a service.

    Parameters
    ----------
    limits : Limits
    cache : Path, optional
        Folder of plans that outlives the service; None: plans are kept until the service ends.
    """

    def __init__(self, limits: Limits, cache: Path | None = None) -> None:
        self.limits = limits
        self.all: dict[str, Job] = {}
        self.ended: Counter[str] = Counter()
        self.seconds = 0.0
        self.peak = 0
        self._turns = asyncio.Semaphore(limits.running)
        self._root = tempfile.TemporaryDirectory(prefix="milp-planner-serve.")
        self._cache = cache or Path(self._root.name) / "cache"
        self.cached = 0

    def count(self, state: str) -> int:
        """Jobs in a state."""
        return sum(job.state == state for job in self.all.values())

    def submit(self, how: Mapping[str, Any], inputs: bytes) -> Job:
        """Queue a job, described as :func:`milp_planner.serve.asked.read_request` does; raises Full
        if too many are waiting."""
        if self.count(QUEUED) >= self.limits.waiting:
            raise Full
        id = secrets.token_urlsafe(12)
        folder = Path(self._root.name) / id
        folder.mkdir()
        start = None
        if "start" in how:
            start = folder / "start.json"  # the other job may be dropped while this one waits
            shutil.copyfile(self.all[how["start"]].folder / "plan.json", start)
        work = {
            **how, "folder": str(folder), "cache": str(self._cache),
            "workers": max(1, available_cores() // self.limits.running),
            "start": None if start is None else str(start),
        }  # fmt: skip
        told = json.dumps(work).encode() + b"\n" + inputs + b"\n"
        job = self.all[id] = Job(id, folder, how["time_limit"] + self.limits.preparing, told)
        job.tell({"event": QUEUED})
        job.task = asyncio.create_task(self._run(job))
        self._forget()
        return job

    def _forget(self) -> None:
        """Drop the oldest of the ended jobs."""
        ended = [job for job in self.all.values() if job.state in ENDED]
        for job in ended[: max(0, len(ended) - self.limits.kept)]:
            del self.all[job.id]
            shutil.rmtree(job.folder, ignore_errors=True)

    async def _run(self, job: Job) -> None:
        async with self._turns:
            if job.cancelling:
                self._end(job, CANCELLED, {"event": CANCELLED})
                return
            job.state = RUNNING
            job.tell({"event": RUNNING})
            start = time.monotonic()
            try:
                await self._solve(job)
            except OSError as error:
                self._end(job, FAILED, {"event": FAILED, "message": f"no process started: {error}"})
            finally:
                self.seconds += time.monotonic() - start

    async def _solve(self, job: Job) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "milp_planner.serve.child", stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE, start_new_session=True, limit=LINE, cwd=job.folder,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        watch = asyncio.create_task(self._watch(job, process))
        last: dict[str, Any] = {}
        try:
            with contextlib.suppress(ConnectionError):
                process.stdin.write(job.work)
                await process.stdin.drain()
            job.work = b""
            while line := await process.stdout.readline():
                event = json.loads(line)
                if event["event"] == "progress":
                    job.tell(event)
                else:
                    last = event
        finally:
            if process.returncode is None and not last:
                _kill(process)
            await process.wait()
            watch.cancel()
        self._close(job, last)

    def _close(self, job: Job, last: dict[str, Any]) -> None:
        """End the job by the process's last event, or by its absence."""
        kind = last.pop("event", None)
        if kind == DONE:
            job.result = last
            self.cached += last["cached"]
            state = CANCELLED if job.cancelling else DONE
            self._end(job, state, {"event": state, **last})
        elif job.cancelling:
            self._end(job, CANCELLED, {"event": CANCELLED})
        else:
            job.message = (
                job.message or last.get("message") or "the process ended without an answer"
            )
            self._end(job, FAILED, {"event": FAILED, "message": job.message})

    def _end(self, job: Job, state: str, event: dict[str, Any]) -> None:
        job.state = state
        self.ended[state] += 1
        job.tell(event)

    async def _watch(self, job: Job, process: asyncio.subprocess.Process) -> None:
        """End the process if it takes too much memory or time, or goes on after it is cancelled."""
        end = time.monotonic() + job.seconds
        asked: float | None = None
        while process.returncode is None:
            job.peak = max(job.peak, memory_of(process.pid, 1))
            self.peak = max(self.peak, job.peak)
            now = time.monotonic()
            if job.peak > self.limits.memory:
                job.message = f"the job used more than {self.limits.memory:,} bytes of memory"
            elif now > end:
                job.message = "the job took too long"
            if job.message or (asked is not None and now > asked + self.limits.grace):
                _kill(process)
                return
            if job.cancelling and asked is None:
                asked = now
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(signal.SIGTERM)
            await asyncio.sleep(LOOK)

    def cancel(self, job: Job) -> None:
        """Ask a job to stop; the best plan so far is kept."""
        job.cancelling = True
        if job.state == QUEUED and job.task is not None:
            job.task.cancel()
            self._end(job, CANCELLED, {"event": CANCELLED})

    async def close(self) -> None:
        """Stop all jobs and their processes."""
        tasks = [job.task for job in self.all.values() if job.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._root.cleanup()


def _kill(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
