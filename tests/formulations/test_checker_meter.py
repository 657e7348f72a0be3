"""The checker counts steps before it takes them: small certificates that ask for much."""

from __future__ import annotations

import json
import sys
import tracemalloc
from types import FrameType
from typing import Any

import pytest

from formulations import checker
from tests.formulations.by_hand import TWO, Document, block, bound, instance, option, shard

PHASES = {"phases": ["compute", "exchange"]}
#: Steps that the forged certificates may take here, lines of the checker for each of them and for
#: each byte of the certificate, and bytes of memory.
STEPS, LINES, MEMORY = 20_000, 40, 16 * 2**20


def two(*shards: Document, count: int | None = None, tables: int = 2) -> Document:
    """Equal tables of one block on any of two ranks, in two phases."""
    one = option("o", block("any_rank", *shards, **({} if count is None else {"count": count})))
    return instance([[one]] * tables, "step_time", **TWO, **PHASES)


def peaks(weights: list[list[int]], **more: Any) -> Document:
    """A row of peaks of both phases."""
    row = {"row": "peaks", "first": ["compute"], "second": ["exchange"], "step": 1, "most": 4,
           "each": 1, "times": 1}  # fmt: skip
    return row | {"weights": weights} | more


def pattern(weights: list[list[int]], **more: Any) -> Document:
    """A pattern of the step time."""
    return {"row": "pattern", "of": "step_time", "most": 4, "times": 1, "weights": weights} | more


def proof(target: int, *rows: Document, times: int = 1, **node: Any) -> Document:
    """A certificate with one node that uses one vector, again and again."""
    node = {"use": [0] * times, **node}
    return bound(target) | {"vectors": [list(rows)], "nodes": [node]}


MANY = [shard([0, 0], repeat=1, move_bytes=n) for n in range(3000)]
FORGED = {
    "steps of peaks": (two(shard([2 * 10**7] * 2)), proof(8 * 10**7, peaks([[0, 0, 0, 1]]))),
    "weights of peaks": (
        two(shard([9, 9])), proof(10**9, peaks([[0, 0, 0, 1]], most=2**20 - 1, step=10**5)),
    ),
    "entries of peaks": (
        two(*MANY, count=len(MANY)), proof(9, peaks([[0, 0, i, 1] for i in range(len(MANY))])),
    ),
    "shards of peaks": (
        two(shard([0, 0]), count=2**40), proof(9, peaks([[0, 0, 0, 1]], most=2**20 - 1)),
    ),
    "peaks again": (two(shard([1, 1])), proof(4, peaks([[0, 0, 0, 1]]), times=20_000)),
    "weights of patterns": (
        two(shard([9, 9])), proof(9, *[pattern([], most=2**20 - 1) for _ in range(100)]),
    ),
    "long numbers": (
        two(shard([9, 9])), proof(10**4000, pattern([[0, 0, 0, 1]], most=2**20 - 1)),
    ),
    "shards of patterns": (two(shard([0, 0]), count=2**40), proof(9, pattern([[0, 0, 0, 1]]))),
    "tables of patterns": (
        two(shard([0, 0]), tables=2000), proof(9, *[pattern([]) for _ in range(50)]),
    ),
    "long multipliers": (
        two(shard([0, 0]), tables=2000),
        proof(9, {"row": "cost", "of": "compute", "times": 10**4000}, times=20),
    ),
    "largest shards": (
        two(shard([0, 0]), tables=2000),
        proof(9, *[{"row": "largest_cost", "of": "compute", "times": 1, "table": t}
                   for t in range(2000)]),
    ),
    "cuts": (
        two(shard([1, 1])),
        bound(4) | {"vectors": [], "nodes": [
            {"peak": ["compute"], "cuts": list(range(9000))}, *[{}] * 9001]},
    ),
    "shards of packing": (two(shard([1, 0]), count=2**40), proof(9, times=0, pack="step_time")),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_nothing_is_done_uncounted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a certificate asks for beyond the limit is neither computed nor kept."""
    document, certificate = FORGED[name]
    read = checker.Instance(document)
    monkeypatch.setattr(checker, "MOST_STEPS", STEPS)
    monkeypatch.setattr(checker, "STEPS_PER_OPTION", 0)
    lines = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace if frame.f_code.co_filename == checker.__file__ else None

    before = sys.gettrace()
    tracemalloc.start()
    sys.settrace(trace)
    try:
        with pytest.raises(checker.NotChecked):
            checker.Proof(read, certificate).open_case()
    finally:
        sys.settrace(before)
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert memory < MEMORY
    assert lines < LINES * (STEPS + len(json.dumps(certificate)))
