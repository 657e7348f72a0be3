"""Outcomes: recomputed objectives, derived statuses, and the JSON form.

The certificate's outline: what is read, and what is refused in a sentence.

What a certificate counts, in words.

The evidence behind a status, in words.
"""

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
    checker,
    solve,
)
from formulations.evidence.verify import verify
from formulations.result.certificate import Certificate, certificate_from_dict
from formulations.result.grounds import GROUNDS, grounds
from formulations.result.outcome import (
    Outcome,
    certified_gap,
    found,
    infeasible,
    nothing,
    standing,
    with_plan,
)
from formulations.result.outcome_file import outcome_from_dict, outcome_to_dict
from formulations.settings import TracePoint
from tests.corpus import mistakes
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


GOOD: dict[str, Any] = {"version": 3, "kind": "bound", "target": 1, "vectors": [], "nodes": [{}]}


@pytest.mark.parametrize(("changes", "sentence"), mistakes(__file__, "another outline is refused"))
def test_another_outline_is_refused(changes: dict[str, Any], sentence: str) -> None:
    """Versions 1 and 2 are refused with advice, other faults with what is allowed."""
    assert certificate_from_dict(GOOD).target == 1
    with pytest.raises(InstanceError, match=sentence):
        certificate_from_dict({**GOOD, **changes}, "plan.json")


def test_rows_and_cases_that_are_applied() -> None:
    """Rows of vectors that a node uses, with a multiplier, and the kinds of cases; no others."""
    vectors = (
        [{"row": "cost", "of": "p", "times": 1}, {"row": "capacity", "of": "hbm", "times": 0}],
        [{"row": "largest_use", "of": "hbm", "table": 0, "machine": 1, "times": 2}],
        [{"row": "fusion", "of": "g", "table": 0, "level": 1, "times": 1}],
    )
    nodes = ({"use": [0], "peak": ["p"], "cuts": [3]}, {"use": [1]}, {"pack": "p"})
    found = grounds(Certificate("bound", 5, vectors, nodes))
    kinds = ["peaks", "pattern", "machine", "capacity"]
    assert found == tuple(GROUNDS[kind] for kind in kinds)


def test_sums_of_costs_count_nothing_else() -> None:
    """Even ranks cost as much as the bound."""
    vectors = ([{"row": "cost", "of": "p", "times": 1}],)
    assert grounds(Certificate("bound", 5, vectors, ({"use": [0]},))) == ()


def test_every_kind_of_row_has_words() -> None:
    """That the checker knows, but for sums of costs."""
    kinds = {name for row in checker.ROW for name in row["row"]} - {"cost"}
    assert len(kinds) > 8
    for kind in kinds:
        vectors = ([{"row": kind, "times": 1}],)
        assert len(grounds(Certificate("bound", 5, vectors, ({"use": [0]},)))) == 1, kind


def outcome(status: Status, **values: object) -> Outcome:
    """An outcome with a plan of 200 unless said otherwise."""
    known: dict[str, object] = {"objective": 200, "bound_source": CPSAT}
    return Outcome(status, StoppedBy.PROOF, "auto").with_(**{**known, **values})


@pytest.mark.parametrize(
    ("status", "values", "words"),
    [
        (Status.OPTIMAL, {"certified_bound": 200}, "certified optimal"),
        (Status.OPTIMAL, {"certified_bound": 199}, "optimal by cpsat, certified to 0.50%"),
        (Status.OPTIMAL, {"objective": 30_001, "certified_bound": 30_000},
         "optimal by cpsat, certified to 0.01%"),
        (Status.OPTIMAL, {}, "optimal by cpsat, nothing certified"),
        (Status.OPTIMAL, {"certified_bound": -1}, "optimal by cpsat, hardly anything certified"),
        (Status.FEASIBLE, {"certified_bound": 150}, "feasible, certified to 25.00%"),
        (Status.FEASIBLE, {"objective": -200, "certified_bound": -201},
         "feasible, certified to 0.50%"),
        (Status.FEASIBLE, {"bound": 199, "before_goals": 199, "certified_bound": 199},
         "certified optimal but for 0.51% given up for goals"),
        (Status.FEASIBLE, {"objective": 10**6 + 56, "bound": 10**6, "before_goals": 10**6,
                           "certified_bound": 999_000},
         "optimal by cpsat but for 0.0056% given up for goals, certified to 0.11%"),
        (Status.FEASIBLE, {"bound": 198, "before_goals": 199, "certified_bound": 198},
         "feasible, certified to 1.00%"),
        (Status.FEASIBLE, {"bound": 199, "before_goals": 199,
                           "bound_source": BoundSource("highs", exact=False)},
         "feasible, nothing certified"),
        (Status.INFEASIBLE, {"objective": None}, "infeasible by cpsat"),
        (Status.INFEASIBLE, {"objective": None, "certificate": Certificate("bound", 1, (), ({},))},
         "infeasible by cpsat"),
        (Status.INFEASIBLE,
         {"objective": None, "certificate": Certificate("infeasible", None, (), ({},))},
         "certified infeasible"),
        (Status.UNKNOWN, {"objective": None}, "unknown"),
    ],
)  # fmt: skip
def test_words(status: Status, values: dict[str, object], words: str) -> None:
    """Certified first; a share is rounded up, so that it is never understated."""
    assert standing(outcome(status, **values)) == words


def test_certified_gap() -> None:
    """The gap to the certified bound, whatever the solver says; None where nothing is certified."""
    assert certified_gap(outcome(Status.OPTIMAL, bound=200, certified_bound=150)) == 0.25
    assert certified_gap(outcome(Status.OPTIMAL, bound=200)) is None
