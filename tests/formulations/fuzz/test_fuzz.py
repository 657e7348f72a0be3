"""Random instances, the same every time: no formulation claims anything false or crashes.

``benchmarks/fuzz/run.py`` does the same for as long as you let it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from formulations.instance import Objective, Scope, Where
from formulations.registry import FORMULATIONS
from tests.formulations.fuzz.contest import CONTESTANTS, MODERATE, play
from tests.formulations.fuzz.generate import COSTS, EDGE, generate, largest

ROOT = Path(__file__).resolve().parents[3]


def test_every_formulation_plays() -> None:
    """Every registered formulation is among the contestants, so a new one is judged too."""
    assert {c.formulation for c in CONTESTANTS.values()} == set(FORMULATIONS)


@pytest.mark.parametrize("start", range(0, 40, 8))
def test_nothing_false_is_said(start: int) -> None:
    """Enumeration contradicts no formulation's status, plan, bounds, certificate or trace."""
    for number in range(start, start + 8):
        for result in play(number, list(CONTESTANTS), seconds=20):
            assert result.wrong == (), (number, result)


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("EXPLORE"), reason="hours; EXPLORE=1 runs it")
@pytest.mark.parametrize("start", range(0, 5000, 500))
def test_nothing_false_is_said_of_five_thousand(start: int) -> None:
    """The same on 5,000 instances: no crash, and ``mip`` decides what ``cpsat`` decides."""
    for number in range(start, start + 500):
        for result in play(number, list(CONTESTANTS), seconds=20):
            assert result.wrong == (), (number, result)


@pytest.mark.parametrize("name", ["mip", "mip by CBC"])
def test_mip_decides_what_cpsat_decides(name: str) -> None:
    """Where numbers stay below 2^40, the second opinion is a proof as well, by either solver."""
    drawn = [n for n in range(40) if largest(generate(n)) < MODERATE]
    assert len(drawn) > 15
    for number in drawn:
        cpsat, mip = play(number, ["cpsat", name], seconds=20)
        assert cpsat.answer in ("optimal", "infeasible")
        assert (mip.answer, mip.wrong) == (cpsat.answer, ()), number


def test_costs_near_the_largest_number() -> None:
    """Nothing false is said of costs near 2^53, which are rounded for CP-SAT."""
    for number in (9, 54, 115):
        for result in play(number, ["cpsat", "greedy"], seconds=5, costs=EDGE):
            assert result.wrong == (), (number, result)


def test_the_instances_show_everything() -> None:
    """Three hundred instances show all that the format allows; a number has one instance."""
    drawn = [generate(n) for n in range(300)]
    assert {i.source for i in drawn} == set(COSTS)
    assert {i.objective for i in drawn} == set(Objective)
    assert {w for i in drawn for w in i.block_where.tolist()} == set(Where)
    assert {r.scope for i in drawn for r in i.resources} == set(Scope)
    assert any(len({len(m) for m in i.machines}) > 1 for i in drawn)
    assert any((i.shard_cost < 0).any() for i in drawn)
    assert any((i.option_level < 0).any() for i in drawn)
    assert any(p.ranks for i in drawn for p in i.pins) and any(i.forbidden for i in drawn)
    assert any(i.current and i.max_moved_bytes is not None for i in drawn)
    assert max(int(i.shard_cost.max(initial=0)) for i in drawn) > 2**49
    assert generate(7).fingerprint == drawn[7].fingerprint


def test_the_runner_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """Two runs add up to twelve instances in one file, which then refuses other settings."""
    script = [sys.executable, str(ROOT / "benchmarks/fuzz/run.py"), "-o", str(tmp_path / "s.json")]
    for count in ("5", "12"):
        arguments = ["--count", count, "--formulations", "greedy", "uniform"]
        subprocess.run([*script, *arguments], check=True, capture_output=True)
    summary = json.loads((tmp_path / "s.json").read_text())
    assert summary["next"] == 12 and summary["wrong"] == []
    assert {n: sum(a.values()) for n, a in summary["answers"].items()} == {
        "greedy": 12, "uniform": 12,
    }  # fmt: skip
    other = subprocess.run([*script, "--formulations", "dp"], capture_output=True, text=True)
    assert other.returncode != 0 and "other settings" in other.stderr
