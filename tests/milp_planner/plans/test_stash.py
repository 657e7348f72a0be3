"""Plans with stashed tables: auto proves what brute force finds; shown, exported, read back."""

import json
from typing import Any

import numpy as np
import pytest

from formulations import Instance, Settings, solve
from formulations.capacity.budget import Budget
from formulations.evidence.verify import verify
from milp_planner import plan
from milp_planner.errors import BadInput
from milp_planner.features.explain.axes import with_more
from milp_planner.features.explain.frontier import frontier
from milp_planner.inputs import Cluster, Model
from milp_planner.integrations.exports import torchrec
from milp_planner.plans.compile import compile_instance
from milp_planner.plans.ledger import ledger_of
from milp_planner.plans.placement import Plan
from milp_planner.pricing import price
from tests.formulations.brute_force import brute_force
from tests.milp_planner.pricing.build import cluster, model

ROWS = (400_000, 300_000, 150_000)


def inputs(mebibytes: int, window: float | None, stash: str = "allow") -> tuple[Model, Cluster]:
    """Three tables of 98, 73 and 37 MiB on two ranks that keep 100 MiB for the dense part."""
    workload: dict[str, Any] = {} if window is None else {"stash_window_ms": window}
    tables = [
        {"rows": rows, "optimizer": "sgd",
         "constraints": {"modes": ["HBM_ONLY", "HOST_ONLY"], "stash": stash}}
        for rows in ROWS
    ]  # fmt: skip
    held = {"hbm_percent": 0, "kjt_multiple": 0, "min_headroom": 0, "activations": "100MiB"}
    return (
        model(*tables, **workload),
        cluster(1, 2, hbm=f"{mebibytes}MiB", ddr="2GiB", reservations=held),
    )


def instance(mebibytes: int, window: float | None) -> Instance:
    """The instance of these inputs."""
    return compile_instance(price(*inputs(mebibytes, window)))


@pytest.mark.parametrize("mebibytes", [100, 125, 150, 180, 400])
@pytest.mark.parametrize("window", [1.0, 2.5, 20.0])
def test_auto_proves_the_optimum(mebibytes: int, window: float) -> None:
    """It agrees with brute force, is certified, and verifies."""
    problem = instance(mebibytes, window)
    truth = brute_force(problem)
    outcome = solve(problem, "auto", Settings(time_limit=20))
    assert outcome.objective == truth.objective
    assert outcome.status.value == ("infeasible" if truth.objective is None else "optimal")
    assert outcome.certified_bound == truth.objective
    assert outcome.certificate is not None
    assert verify(problem, outcome).ok


def test_a_stash_pays_and_its_window_counts() -> None:
    """At 180 MiB the tables fit HBM only if some are stashed. A longer window never makes a plan
    worse; one of 20 ms makes it better than none; one of 1 ms is too short for that."""
    found = [brute_force(instance(180, w)).objective for w in (None, 1.0, 2.5, 20.0)]
    none, short, middle, long = (np.inf if each is None else each for each in found)
    assert none >= short >= middle >= long
    assert none > long
    assert short > long


@pytest.fixture(scope="module")
def stashed() -> Plan:
    """The plan with all three tables stashed and a window of 60 ms."""
    return plan(*inputs(180, 60.0, "always"), time_limit=10)


def test_the_ledger_of_a_plan(stashed: Plan) -> None:
    """The exchange has the weights, the dense part does not; the shown bytes are those that the
    instance charges."""
    assert all(table.stash and table.option.endswith("/stash") for table in stashed.tables)
    ledger = ledger_of(stashed)
    assert ledger is not None
    for place in ledger.hbm:
        rows = place.entries.get("stashed", 0)
        assert place.moment == "forward_send" or not rows
        assert place.moments["dense_part"] >= 100 * 2**20
    total = sum(rows * 64 * 4 for rows in ROWS)
    at = [r.name for r in stashed.instance.resources].index("stash")
    assert sum(shard.use["stash"] for t in shards_of(stashed) for shard in t) == total
    assert stashed.instance.resources[at].capacity[0] == int(60 * 2**35 / 1000)
    assert sum(place.entries["host_tables"] for place in ledger.ddr) == 2 * total


@pytest.fixture(scope="module")
def free() -> Plan:
    """A plan that may stash, with a window of 20 ms."""
    return plan(*inputs(180, 20.0), time_limit=10)


@pytest.fixture(scope="module")
def plain() -> Plan:
    """A plan without a window."""
    return plan(*inputs(400, None), time_limit=10)


def shards_of(made: Plan) -> list[Any]:
    """Shards of every table."""
    return [made.shards(table.name) for table in made.tables]


def test_export_and_back(stashed: Plan, plain: Plan) -> None:
    """The export lists the stashed tables and says what to do with them; reading it pins them."""
    text = torchrec.write(stashed)
    assert json.loads(text)["stash_weights"] == ["t0", "t1", "t2"]
    assert any("set_stashed_tables" in note for note in torchrec.notes(stashed))
    pins = torchrec.read(text, stashed.model)
    assert [pin.stash for pin in pins.values()] == [True] * 3
    assert "stash_weights" not in json.loads(torchrec.write(plain))
    assert torchrec.read(torchrec.write(plain), plain.model)["t0"].stash is None


def test_the_curve_of_stash_against_time(free: Plan, plain: Plan) -> None:
    """Every point of the frontier over the largest stashed bytes of a rank is the optimum that
    brute force finds at that limit, certified and verified."""
    budget = Budget(Settings(time_limit=60))
    found = frontier(free, "stash", [0, 40 * 2**20, 80 * 2**20], budget, enough=0.0)[0]
    here = int(20 * 2**35 / 1000)
    assert [point.budget for point in found.points] == sorted([0, 40 * 2**20, 80 * 2**20, here])
    for point in found.points:
        limited = with_more(free.instance, "stash", point.budget - here)
        assert point.usable == point.budget
        assert point.objective == point.certified == brute_force(limited).objective
        assert point.verified
    objectives = [point.objective for point in found.points]
    assert objectives[0] != objectives[-1]
    with pytest.raises(BadInput, match="frontier over 'stash'"):
        frontier(plain, "stash", 3, budget)


def test_the_points_of_the_curve_surround_the_plan(free: Plan) -> None:
    """Without a list they are whole MiB around what the plan stashes, its own limit among them."""
    found = frontier(free, "stash", 4, Budget(Settings(time_limit=30)))[0]
    assert found.here in [point.budget for point in found.points]
    assert len(found.points) == 4 and found.scope == "rank"
