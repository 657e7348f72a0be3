"""Rebalancer as a peer: what our scripts do around its solver."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks.rebalancer.place import placed
from formulations import Settings, solve, write_instance
from tests.formulations.examples import two_modes


def test_a_peer_that_fails_is_no_answer(tmp_path: Path) -> None:
    """A Python whose Rebalancer cannot be imported: an error that says so, and no "none" of its."""
    (tmp_path / "rebalancer.py").write_text("raise ImportError('not here')")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    instance, file = two_modes(), tmp_path / "instance.json"
    write_instance(instance, file)
    plan = solve(instance, "greedy", Settings(time_limit=5.0))
    with pytest.raises(RuntimeError, match=r"peer\.py failed on instance\.json:[^$]*not here"):
        placed(file, instance, plan, [str(python)])


def test_a_resource_that_nothing_uses_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards say that they use none of it; the start still takes the emptier rank for each."""
    stub = ModuleType("rebalancer")
    monkeypatch.setattr(stub, "ProblemSolver", None, raising=False)
    monkeypatch.setitem(sys.modules, "rebalancer", stub)
    monkeypatch.delitem(sys.modules, "benchmarks.rebalancer.peer", raising=False)
    peer = importlib.import_module("benchmarks.rebalancer.peer")
    loads = [{"cost": cost, "hbm": 1, "ddr": 0} for cost in (5, 3)]
    blocks = [peer.Block(str(n), [load], [[[0, 1]]], False) for n, load in enumerate(loads)]
    resources = [{"name": name, "scope": "rank", "capacity": 9} for name in ("hbm", "ddr")]
    room = peer.room_of({"ranks": 2, "resources": resources}, blocks)
    assert room == {"cost": [4.0, 4.0], "hbm": [9, 9]}
    peer.greedy(blocks, room)
    assert [block.ranks for block in blocks] == [[0], [1]]
