"""Requests are read in processes of their own: what they cost stays there."""

import asyncio
import json
import signal
import subprocess
import urllib.error
import urllib.request
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the extra serve is not installed")

from milp_planner.errors import BadInput
from milp_planner.serve import reader
from milp_planner.serve.asked import Catalog
from milp_planner.serve.limits import Limits, memory_of
from milp_planner.serve.reader import Readers
from tests.milp_planner.serve.served import CLUSTER, MODEL, command

HEAD = "name: m\nworkload: {batch_per_rank: 8}\n"
GOOD = {"model": MODEL, "cluster": CLUSTER}
MANY = "tables:\n" + "".join(f"- {{name: t{n}, rows: 9, dim: 8}}\n" for n in range(4_000))


def answers(limits: Limits, *requests: dict[str, Any]) -> list[str]:
    """What is said to each of some requests, read one after another; empty if it is accepted."""

    async def read() -> list[str]:
        readers, said = Readers(Catalog({}, {}), limits), []
        for request in requests:
            try:
                how, inputs = await readers.read(json.dumps(request).encode())
                assert how["time_limit"] == 30.0 and json.loads(inputs)["model"]["tables"]
                said.append("")
            except BadInput as error:
                said.append(str(error))
        await readers.close()
        return said

    return asyncio.run(read())


def test_too_much_work_ends_one_request() -> None:
    """Patterns that are compared with very many names, and tables that need too much memory; the
    next request is read as usual."""
    patterns = "".join(f"  '[t{n}]*': {{dim: 8}}\n" for n in range(20_000))
    slow = {"model": f"{HEAD}patterns:\n{patterns}{MANY}", "cluster": CLUSTER}
    large = {"model": HEAD + MANY, "cluster": CLUSTER}
    refused = "the request takes too much time or memory to read"
    assert answers(Limits(reading_seconds=1), slow, GOOD) == [refused, ""]
    assert answers(Limits(reading_memory=2**22), large, GOOD) == [refused, ""]
    assert answers(Limits(), large) == [""]


def test_an_answer_too_large_to_put_together_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory may run out after everything was read."""

    class Large(bytes):
        def __radd__(self, other: bytes) -> bytes:
            raise MemoryError

    class Inputs(str):
        def encode(self, *_: str) -> bytes:
            return Large(b"{}")

    monkeypatch.setattr(reader, "read_request", lambda *_: ({}, {}))
    monkeypatch.setattr(reader, "_limit", lambda *_: None)
    monkeypatch.setattr(json, "dumps", lambda said: Inputs() if said == {} else f"{said}")
    answer = reader._answer(b"", Catalog({}, {}), Limits())
    assert reader.TOO_MUCH.encode() in answer


def test_a_wrong_request_is_said() -> None:
    """In the words of the file's own mistakes."""
    wrong = {**GOOD, "model": HEAD + "tables: [{}, {}]\n"}
    assert answers(Limits(), wrong, GOOD) == [
        "model:3: tables[0].name: is missing (and 5 more problems)", ""
    ]  # fmt: skip


HOSTILE = {
    "names": HEAD + "tables:\n"
    + "".join(f"- {{names: {n}_0..{n}_99999, rows: 1, dim: 8}}\n" for n in range(30)),
    "ones": f"{HEAD}tables: [{'1,' * 1_500_000}1]\n",
    "empty tables": f"{HEAD}tables: [{'{},' * 1_300_000}{{}}]\n",
}  # fmt: skip


@pytest.mark.slow
def test_the_service_does_not_grow() -> None:
    """Bodies that become large when they are read leave the service as small as it was."""
    with command() as (address, process):
        before = memory_of(process.pid, 1)
        for text in HOSTILE.values():
            assert _refused(address, {"model": text, "cluster": CLUSTER})
        assert memory_of(process.pid, 1) - before < 64 * 2**20


def _refused(address: str, request: dict[str, Any]) -> str:
    """The sentence with which a request is refused."""
    asked = urllib.request.Request(
        address + "v1/jobs", json.dumps(request).encode(), {"Content-Type": "application/json"}
    )
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(asked, timeout=120)
    assert caught.value.code == 422
    return str(json.load(caught.value)["error"])


def test_it_ends_on_ctrl_c_and_its_readers_with_it() -> None:
    """The address that it prints answers, SIGINT ends it, and no process is left."""
    with command() as (address, process):
        assert _refused(address, {})
        shown = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True
        )
        children = shown.stdout.split()
        assert len(children) == 1
        process.send_signal(signal.SIGINT)
        assert process.wait(30) in (0, 130)
    gone = subprocess.run(["ps", "-o", "pid=", "-p", children[0]], capture_output=True, text=True)
    assert not gone.stdout.strip()
