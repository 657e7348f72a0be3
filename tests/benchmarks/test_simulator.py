"""The table of simulated plans.

Rebalancer as a peer: what our scripts do around its solver.
"""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks.pages import stored, update
from benchmarks.rebalancer.place import placed
from benchmarks.simulator.table import HERE, PAGE, blocks, ends, plans_table
from formulations import Settings, solve, write_instance
from tests.formulations.examples import two_modes


def test_the_page_shows_the_newest_result() -> None:
    """The table is generated from the stored plans."""
    result = stored(HERE / "results", "*-plans.json")
    assert update(PAGE, blocks(result), check=True) == 0, (
        "run: python benchmarks/simulator/table.py"
    )


def test_seeds_that_differ_show_both_ends() -> None:
    """Both ends are shown if seeds differ, and one number if all agree."""
    assert ends({"predicted": 2.0, "simulated": [3.0, 1.0, 2.0]}) == "2.000 → 1.000 … 3.000"
    assert ends({"predicted": 2, "simulated": [2, 2.0001]}) == "2.000 → 2.000"


def test_a_plan_without_caches_has_dashes() -> None:
    """A plan's missing figures are dashes, not zeros."""
    case = {
        "model": "m", "cluster": "c", "skew": None, "hit": {"tables": 0},
        "hot": {"predicted": 1, "simulated": [1, 1]},
    }  # fmt: skip
    table = plans_table(
        {"date": "2026-01-02", "limit": 1, "batches": 2, "seeds": 2, "cases": [case]}
    )
    assert "| m, c | – | – | 1.000 → 1.000 |" in table.splitlines()


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
