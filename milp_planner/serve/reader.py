"""Requests are read in processes of their own, within limits of time and memory.

``python -m milp_planner.serve.reader`` imports what reading needs, then forks for every request on
stdin, so that a hostile one costs the service neither memory nor answers. A request is a line with
its length, then its bytes. An answer is a line with two lengths, then how to solve the job (or the
error) and its inputs, both JSON; the inputs are handed on unread.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import sys
import traceback
from asyncio.subprocess import PIPE, Process
from dataclasses import asdict
from typing import Any, BinaryIO

from milp_planner.errors import BadInput
from milp_planner.serve.asked import Catalog, read_request
from milp_planner.serve.limits import Limits, memory_of

#: Requests that are read at the same time.
READERS = 2
TOO_MUCH = "the request takes too much time or memory to read"


class Readers:
    """The processes that read a service's requests; each is started when it is first needed."""

    def __init__(self, catalog: Catalog, limits: Limits) -> None:
        first = {"catalog": asdict(catalog), "limits": asdict(limits)}
        self._first = json.dumps(first).encode() + b"\n"
        self._idle: list[Process] = []
        self._turns = asyncio.Semaphore(READERS)

    async def read(self, body: bytes) -> tuple[dict[str, Any], bytes]:
        """How to solve a requested job, and its inputs as JSON; BadInput if it is refused."""
        async with self._turns:
            process = self._idle.pop() if self._idle else await self._started()
            try:
                how, inputs = await _exchanged(process, body)
            except BaseException:  # it may be in the middle of an answer
                _end(process)
                raise
            self._idle.append(process)
        if "error" in how:
            raise BadInput(how["error"])
        return how, inputs

    async def _started(self) -> Process:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "milp_planner.serve.reader", stdin=PIPE, stdout=PIPE,
            start_new_session=True,
            env={
                **os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
                "OPENBLAS_NUM_THREADS": "1",  # only one thread survives a fork
            },
        )  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(self._first)
        return process

    async def close(self) -> None:
        """End all processes."""
        for process in self._idle:
            _end(process)
            await process.wait()


async def _exchanged(process: Process, body: bytes) -> tuple[dict[str, Any], bytes]:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(b"%d\n" % len(body) + body)
    await process.stdin.drain()
    first, second = map(int, (await process.stdout.readline()).split())
    how: dict[str, Any] = json.loads(await process.stdout.readexactly(first))
    return how, await process.stdout.readexactly(second)


def _end(process: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.kill()


def main() -> None:
    """Answer requests until stdin closes."""
    os.nice(10)  # the service answers first
    stdin = sys.stdin.buffer
    first = json.loads(stdin.readline())
    catalog, limits = Catalog(**first["catalog"]), Limits(**first["limits"])
    while line := stdin.readline():
        _fork(stdin.read(int(line)), catalog, limits, sys.stdout.buffer)


def _fork(body: bytes, catalog: Catalog, limits: Limits, out: BinaryIO) -> None:
    """Answer one request in a process of its own; if the system ends it, say so."""
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            out.write(_answer(body, catalog, limits))
            out.flush()
            code = 0
        except BaseException:  # a bug: the service says that it failed
            traceback.print_exc()
        finally:
            os._exit(code)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        out.write(_refusal(TOO_MUCH))
        out.flush()
    elif status:
        sys.exit(os.waitstatus_to_exitcode(status))


def _answer(body: bytes, catalog: Catalog, limits: Limits) -> bytes:
    """The whole answer to a request, made within the limits."""
    if held := memory_of("self", 0):
        _limit(resource.RLIMIT_AS, held + limits.reading_memory)
    _limit(resource.RLIMIT_CPU, limits.reading_seconds)
    try:
        how, inputs = (json.dumps(part).encode() for part in read_request(body, catalog, limits))
        answer = b"%d %d\n" % (len(how), len(inputs)) + how + inputs
    except BadInput as error:
        return _refusal(str(error))
    except MemoryError:
        return _refusal(TOO_MUCH)
    _limit(resource.RLIMIT_CPU, resource.RLIM_INFINITY)  # an answer is written to its end
    return answer


def _refusal(message: str) -> bytes:
    said = json.dumps({"error": message}).encode()
    return b"%d 0\n" % len(said) + said


def _limit(kind: int, most: int) -> None:
    """Set a limit that can be lifted again."""
    resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))


if __name__ == "__main__":
    main()
