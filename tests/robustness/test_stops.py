"""Kills, time limits and stops: no torn file, no untrue status, the best plan kept."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from formulations import Instance, Outcome, Settings, Status, registry, solve
from formulations.result.check import check
from formulations.result.outcome import StoppedBy
from milp_planner.inputs import Cluster
from milp_planner.plans.compile import compile_for
from milp_planner.plans.plan_file import read_plan
from scenarios.catalog import find_cluster
from scenarios.generator import generate

ARGUMENTS = ("plan", "kuairand-27k", "1xa10", "-f", "greedy")


def start(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """The command line in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "milp_planner", *arguments],
        cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def test_killed_while_planning(tmp_path: Path) -> None:
    """Whenever the process is killed, plan.json is the old file or a whole new one."""
    target = tmp_path / "plan.json"
    begun = time.monotonic()
    assert start(tmp_path, *ARGUMENTS).wait(timeout=120) == 0
    whole = time.monotonic() - begun
    old = target.read_bytes()
    draw = random.Random(0)
    for _ in range(4):
        running = start(tmp_path, *ARGUMENTS, "-o", "plan.json")
        time.sleep(draw.uniform(0.3, 1.1) * whole)
        running.kill()
        running.wait(timeout=30)
        assert target.read_bytes() == old or read_plan(target).outcome.placement is not None


def test_killed_while_writing(tmp_path: Path) -> None:
    """A process that does nothing but write is killed at random: never half a file."""
    target = tmp_path / "out.json"
    writer = """
import sys
from milp_planner.files import write_atomically
for n in range(10**6):
    write_atomically(sys.argv[1], (b"%07d" % (n % 10)) * 200_000)
"""
    draw = random.Random(1)
    seen = set()
    for _ in range(6):
        running = subprocess.Popen([sys.executable, "-c", writer, str(target)])
        try:
            deadline = time.monotonic() + 60
            while not target.exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            time.sleep(draw.uniform(0.0, 0.15))
        finally:
            running.kill()
            running.wait(timeout=30)
        content = target.read_bytes()
        assert len(content) == 1_400_000 and len(set(zip(*[iter(content)] * 7, strict=True))) == 1
        seen.add(content[:7])
        target.unlink()
    assert seen


@pytest.fixture(scope="module")
def hard() -> Instance:
    """Forty tables on eight ranks, memory scarce: not solved at once."""
    document = find_cluster("8xh100").to_dict()
    for rank in document["machines"][0]["ranks"]:
        rank["hbm"] = 4 * 2**30
    return compile_for(generate(40, seed=1), Cluster.from_dict(document), "step_time").instance


@pytest.fixture(scope="module")
def simple(hard: Instance) -> Outcome:
    """What greedy finds."""
    return solve(hard, "greedy", Settings(time_limit=30, workers=1))


def judge(instance: Instance, outcome: Outcome, limit: float) -> None:
    """The status says what is known and no more."""
    if outcome.placement is None:
        assert outcome.status in (Status.UNKNOWN, Status.INFEASIBLE)
        assert outcome.objective is None and outcome.gap is None
    else:
        verdict = check(instance, outcome.placement)
        assert verdict.feasible
        assert verdict.objectives[instance.objective.value] == outcome.objective
        assert (outcome.status == Status.OPTIMAL) == outcome.closed
        assert outcome.bound is None or outcome.bound <= (outcome.objective or 0)
    proved = outcome.status in (Status.OPTIMAL, Status.INFEASIBLE)
    assert (outcome.stopped_by == StoppedBy.PROOF) == proved
    if outcome.stopped_by == StoppedBy.TIME_LIMIT:
        assert outcome.seconds >= 0.5 * limit


@pytest.mark.parametrize("formulation", registry.FORMULATIONS)
@pytest.mark.parametrize("limit", [0.01, 0.3, 1.0])
def test_time_limits_are_told_truthfully(
    hard: Instance, simple: Outcome, formulation: str, limit: float
) -> None:
    """However short the time: a checked plan or none, and what stopped the search."""
    outcome = solve(hard, formulation, Settings(time_limit=limit, workers=1))
    judge(hard, outcome, limit)
    if outcome.bound is not None and simple.objective is not None:
        assert outcome.bound <= simple.objective  # a bound is one for every plan
    assert outcome.status != Status.INFEASIBLE or simple.placement is None


@pytest.mark.parametrize("formulation", registry.FORMULATIONS)
def test_stopped_before_it_begins(hard: Instance, formulation: str) -> None:
    """Told to stop, every method gives up building its model and claims nothing it has not."""
    settings = Settings(time_limit=600, workers=1)
    settings.stop.set()
    outcome = solve(hard, formulation, settings)
    judge(hard, outcome, 0.0)
    assert outcome.stopped_by == StoppedBy.INTERRUPTED


def test_stopped_while_the_model_is_built(hard: Instance, simple: Outcome) -> None:
    """The plan to start from is what remains of an exact model that was not finished."""
    assert simple.placement is not None
    settings = Settings(time_limit=600, workers=1, hint=simple.placement)
    settings.stop.set()
    outcome = solve(hard, "cpsat", settings)
    assert outcome.status == Status.FEASIBLE and outcome.bound is None
    assert outcome.stopped_by == StoppedBy.INTERRUPTED
