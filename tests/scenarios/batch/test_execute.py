"""One scenario solved: its record has the solve's result, and a failure is a record, too."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from formulations import Block, InstanceBuilder, Placement, Shard, Where, solve
from formulations.errors import UnsupportedInstance
from formulations.result.outcome import Outcome, Status, StoppedBy
from milp_planner.features.plan import call as planning
from milp_planner.plans.compile import compile_for
from scenarios.batch import execute as module
from scenarios.batch.execute import execute, headroom
from scenarios.batch.scenario import Scenario, expand
from tests.scenarios.batch.small import suite

EXACT = next(s for s in expand(suite()) if s.asked.formulation == "cpsat")


def _execute(scenario: Scenario) -> dict[str, object]:
    record = execute(scenario, scenario.key())
    json.dumps(record, allow_nan=False)
    return record


def test_the_record_is_the_outcome() -> None:
    """It has the same Instance, status, objective and bound as a solve by hand."""
    record = _execute(EXACT)
    instance = compile_for(*EXACT.inputs(), EXACT.asked.objective).instance
    outcome = solve(instance, "cpsat", EXACT.settings())
    assert record["error"] is None and record["status"] == "optimal"
    assert record["instance"] == instance.fingerprint
    assert (record["objective"], record["bound"]) == (outcome.objective, outcome.bound)
    assert record["axes"] == {"hbm": 2**25, "ranks_per_machine": 2}
    assert record["settings"]["workers"] == 1  # type: ignore[index]


def test_a_failure_is_a_record() -> None:
    """Missing inputs are reported, with the traceback for debugging."""
    bad = replace(EXACT, cluster="1xa10", axes=(("machines", 2),))
    record = _execute(bad)
    assert record["status"] == "failed"
    assert record["error"]["type"] == "BadInput"  # type: ignore[index]
    assert "interconnect" in record["error"]["message"]  # type: ignore[index]


def test_another_key_is_refused() -> None:
    """A machine with other files or versions must not answer under this key."""
    record = execute(EXACT, "0" * 64)
    assert (record["status"], record["key"]) == ("failed", "0" * 64)


def test_a_formulation_that_does_not_cover_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal is not a failure, since trying again would not change it."""

    def refuse(*_: object) -> None:
        raise UnsupportedInstance("three memories")

    monkeypatch.setattr(planning, "solve", refuse)
    monkeypatch.setattr(module, "_warm_up", lambda _: None)
    record = _execute(EXACT)
    assert record["status"] == "not_covered"
    assert record["error"]["message"] == "three memories"  # type: ignore[index]


def test_headroom_by_hand() -> None:
    """The fullest place counts; a resource without capacity has no headroom."""
    builder = InstanceBuilder(
        [[0, 1]], ["p"], [("hbm", "rank", [100, 50]), ("ddr", "machine", 10), ("no", "rank", 0)]
    )
    for name, use in (("a", {"hbm": 30, "ddr": 1}), ("b", {"hbm": 30, "ddr": 2})):
        builder.add_table(name)
        builder.add_option("o", [Block(Where.ANY_RANK, [Shard(use=use, cost=[1])])])
    instance = builder.build()
    placed = Placement(np.array([0, 1]), [[np.array([0])], [np.array([1])]])
    outcome = Outcome(Status.FEASIBLE, StoppedBy.EXHAUSTED, "x", placement=placed)
    found = headroom(instance, outcome)
    assert found == pytest.approx({"hbm": 0.4, "ddr": 0.7})
    assert headroom(instance, outcome.with_(placement=None)) == {}
