"""Outcomes: recomputed objectives, derived statuses, and the JSON form."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from formulations import (
    BoundSource,
    InstanceError,
    InternalError,
    Placement,
    Status,
    StoppedBy,
    solve,
)
from formulations.evidence.verify import verify
from formulations.result.outcome import found, infeasible, nothing, with_plan
from formulations.result.outcome_file import outcome_from_dict, outcome_to_dict
from formulations.settings import TracePoint
from tests.formulations.examples import two_modes

MIXED = Placement(np.asarray([0, 3]), [[np.asarray([0])], [np.asarray([0])]])
DEARER = Placement(np.asarray([1, 2]), [[np.asarray([0])], [np.asarray([0])]])
BOTH_HYBRID = Placement(np.asarray([0, 2]), [[np.asarray([0])], [np.asarray([0])]])
CPSAT = BoundSource("cpsat", exact=True)


def test_status_follows_the_bound() -> None:
    """A bound equal to the recomputed objective is a proof; a lower one is not."""
    best = found(two_modes(), "x", MIXED, StoppedBy.TIME_LIMIT, 12, CPSAT)
    assert (best.status, best.stopped_by, best.objective, best.gap) == (
        Status.OPTIMAL, StoppedBy.PROOF, 12, 0.0,
    )  # fmt: skip
    some = found(two_modes(), "x", MIXED, StoppedBy.TIME_LIMIT, 9, CPSAT)
    assert (some.status, some.stopped_by, some.gap) == (
        Status.FEASIBLE, StoppedBy.TIME_LIMIT, 0.25,
    )  # fmt: skip
    assert found(two_modes(), "x", MIXED, StoppedBy.EXHAUSTED).gap is None


def test_another_plan_is_in_the_trace_if_it_is_the_cheapest() -> None:
    """One that costs more than the best so far is not, and an outcome without a trace gets none."""
    point = TracePoint(1.0, 18, 9, "auto")
    first = found(two_modes(), "x", DEARER, StoppedBy.TIME_LIMIT, 9, CPSAT)
    first = first.with_(trace=(point,), seconds=1.5)
    better = with_plan(two_modes(), first, MIXED, 18)
    assert better.trace == (point, TracePoint(1.5, 12, 9, "x"))
    assert with_plan(two_modes(), better, DEARER, 18).trace == better.trace
    assert with_plan(two_modes(), first.with_(trace=()), MIXED, 18).trace == ()
    greedy = solve(two_modes(), "greedy").with_(trace=(point,), seconds=1.5)
    assert verify(two_modes(), with_plan(two_modes(), greedy, MIXED, 18)).ok


def test_rejected_plans_are_internal_errors() -> None:
    """A plan the check rejects never becomes an Outcome, and the sentence asks for a report."""
    with pytest.raises(InternalError, match=r"16 used, 12 there.*report"):
        found(two_modes(), "x", BOTH_HYBRID, StoppedBy.PROOF, 18, CPSAT)


def test_a_bound_above_the_objective() -> None:
    """In integers such a bound is kept for ``solve`` to judge; in floating point it is clipped."""
    told = found(two_modes(), "x", MIXED, StoppedBy.TIME_LIMIT, 13, CPSAT)
    assert (told.status, told.bound) == (Status.FEASIBLE, 13)
    clipped = found(two_modes(), "x", MIXED, StoppedBy.PROOF, 13, BoundSource("highs", False))
    assert clipped.bound == 12


@pytest.mark.parametrize(
    "outcome",
    [
        found(two_modes(), "x", MIXED, StoppedBy.TIME_LIMIT, 9, CPSAT, note="n", seconds=1.5),
        found(two_modes(), "x", MIXED, StoppedBy.EXHAUSTED),
        nothing("dp", StoppedBy.EXHAUSTED, "nothing accepted"),
        infeasible("cpsat", CPSAT),
    ],
)
def test_round_trip(outcome: Any) -> None:
    """Every kind of Outcome survives JSON."""
    document = json.loads(json.dumps(outcome_to_dict(two_modes(), outcome)))
    again = outcome_to_dict(two_modes(), outcome_from_dict(two_modes(), document))
    assert again == document


def test_unknown_is_none_not_zero() -> None:
    """What is not known is null in JSON."""
    document = outcome_to_dict(two_modes(), nothing("dp", StoppedBy.EXHAUSTED))
    for key in ("objective", "bound", "gap", "certified_bound", "tables", "certificate"):
        assert document[key] is None
    assert set(document["objectives"].values()) == {None}


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("status", "great", "allowed: optimal"),
        ("objective", 1.5, "must be an integer"),
        ("gap", 0.1, "its own objective and bound give 0.25"),
        ("tables", {}, "'a' is missing"),
        ("tables", {"a": {}, "b": {}, "c": {}}, "unknown table 'c'"),
        ("tables", {"a": {"option": "HYBRD", "ranks": [[0]]}, "b": {}}, "did you mean 'HYBRID'"),
        ("bound_source", "cpsat", "an object is needed"),
        ("objectve", 1, "did you mean 'objective'"),
        ("objective", 10**400, "out of range"),
        ("seconds", "abc", "seconds must be seconds from 0"),
        ("seconds", [], "seconds must be seconds from 0"),
        ("seconds", -1, "seconds must be seconds from 0"),
        ("gap", True, "gap is True"),
        ("objectives", {"total": "1"}, "total must be an integer"),
        ("objectives", {"cost": 1}, "unknown field 'cost'"),
        ("trace", [["x"]], r"trace\[0\] must be \[seconds, objective, bound, source\]"),
        ("trace", ["1e5"], r"trace\[0\] must be a list"),
        ("trace", [["NaN", 1, 1, "x"]], r"trace\[0\] must be seconds"),
        ("trace", [[0.1, "10GB", None, "x"]], r"trace\[0\] must be an integer"),
        ("trace", [[0.1, 12, 10**400, "x"]], "out of range"),
        ("trace", [[0.1, 12, 9, None]], r"trace\[0\] must be text"),
        ("bound_source", {"method": "\x1b[2Kme", "exact": True}, "control character U\\+001B"),
        ("instance", "0" * 64, "answers another instance"),
        ("objective_kind", "total", "minimises total, the instance asks for step_time"),
        ("objective_kind", "cost", "objective_kind is 'cost', allowed: total"),
    ],
)
def test_malformed_documents(key: str, value: Any, says: str) -> None:
    """A malformed outcome file is refused in one sentence."""
    outcome = found(two_modes(), "x", MIXED, StoppedBy.TIME_LIMIT, 9, CPSAT)
    document = outcome_to_dict(two_modes(), outcome) | {key: value}
    with pytest.raises(InstanceError, match=says):
        outcome_from_dict(two_modes(), document)
