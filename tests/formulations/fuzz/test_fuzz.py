"""Random instances, the same every time: no formulation claims anything false or crashes.
``benchmarks/fuzz/run.py`` does the same for as long as you let it.

The default formulation against enumeration, on every kind of instance.
"""

import json
import os
from itertools import product
from pathlib import Path

import pytest

from benchmarks.fuzz.run import main
from formulations.instance import Objective, Scope, Where
from formulations.registry import FORMULATIONS
from formulations.result.outcome import Status
from formulations.settings import Settings
from formulations.solve import solve
from tests.formulations.brute_force import brute_force
from tests.formulations.fuzz.contest import CONTESTANTS, MODERATE, play
from tests.formulations.fuzz.cross import CELLS, draw
from tests.formulations.fuzz.generate import COSTS, EDGE, generate, largest
from tests.formulations.fuzz.judge import wrongs


def test_every_formulation_plays() -> None:
    """Every registered formulation is among the contestants, so a new one is judged too."""
    assert {c.formulation for c in CONTESTANTS.values()} == set(FORMULATIONS)


@pytest.mark.parametrize("start", range(0, 40, 8))
def test_nothing_false_is_said(start: int) -> None:
    """Enumeration contradicts no formulation's status, plan, bounds, certificate or trace. Where
    numbers stay below 2^40 ``cpsat`` decides, and so does the second opinion, by either solver."""
    moderate = 0
    for number in range(start, start + 8):
        results = play(number, list(CONTESTANTS), seconds=20)
        for result in results:
            assert result.wrong == (), (number, result)
        if largest(generate(number)) < MODERATE:
            said = {r.answer for r in results if r.name in ("cpsat", "mip", "mip by CBC")}
            assert said in ({"optimal"}, {"infeasible"}), number
            moderate += 1
    assert moderate > 1


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("EXPLORE"), reason="hours; EXPLORE=1 runs it")
@pytest.mark.parametrize("start", range(0, 5000, 500))
def test_nothing_false_is_said_of_five_thousand(start: int) -> None:
    """The same on 5,000 instances: no crash, and ``mip`` decides what ``cpsat`` decides."""
    for number in range(start, start + 500):
        for result in play(number, list(CONTESTANTS), seconds=20):
            assert result.wrong == (), (number, result)


def test_a_certificate_may_price_nothing() -> None:
    """Its cases are all impossible, by the bytes that may move; the goals are sought all the same.
    ``plan`` takes it as multipliers to begin with, too."""
    instance = generate(2558)
    outcome = solve(instance, "cpsat", Settings(time_limit=20, workers=1))
    assert outcome.status == Status.OPTIMAL and outcome.certificate is not None
    again = solve(instance, "scale", Settings(time_limit=20, workers=1, prices=outcome.certificate))
    assert again.objective == outcome.objective


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


def test_the_runner_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two runs add up to twelve instances in one file, which then refuses other settings."""

    def run(*arguments: str) -> None:
        monkeypatch.setattr("sys.argv", ["run.py", "-o", str(tmp_path / "s.json"), *arguments])
        main()

    for count in ("5", "12"):
        run("--count", count, "--formulations", "greedy", "uniform")
    summary = json.loads((tmp_path / "s.json").read_text())
    assert summary["next"] == 12 and summary["wrong"] == []
    assert {n: sum(a.values()) for n, a in summary["answers"].items()} == {
        "greedy": 12, "uniform": 12,
    }  # fmt: skip
    with pytest.raises(SystemExit, match="other settings"):
        run("--formulations", "dp")


#: Instances of each of the 972 cells, and a limit in units of work that none of them reaches.
DRAWS, WORK = 3, 20.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "objective"), list(product(Where, Objective)), ids=lambda kind: kind.name.lower()
)
def test_auto_decides_every_kind_of_instance(where: Where, objective: Objective) -> None:
    """By counted work, ``auto`` proves the optimum or infeasibility, and claims nothing false."""
    cells = [c for c in CELLS if (c.where, c.objective) == (where, objective)]
    assert len(cells) == 54
    feasible = 0
    for cell, number in product(cells, range(DRAWS)):
        instance = draw(cell, number)
        truth = brute_force(instance).objective
        settings = Settings(time_limit=None, work_limit=WORK, workers=1, seed=number)
        outcome = solve(instance, "auto", settings)
        assert wrongs(instance, truth, outcome) == [], (cell, number)
        decided = Status.INFEASIBLE if truth is None else Status.OPTIMAL
        assert outcome.status == decided, (cell, number)
        feasible += truth is not None
    assert feasible > len(cells) * DRAWS // 3
