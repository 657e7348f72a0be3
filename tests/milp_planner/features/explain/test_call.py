"""The answers that ``explain --json`` writes are read back."""

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from formulations import BoundSource, InstanceError
from formulations.capacity.budget import Budget
from formulations.result.outcome import StoppedBy, found
from milp_planner.errors import BadInput
from milp_planner.features.explain.answers import Answers, answer
from milp_planner.features.explain.call import answers_to_dict, explain, read_answers
from milp_planner.features.explain.why import why
from milp_planner.plans.placement import Plan
from milp_planner.request.questions import Asked
from tests.formulations.examples import ANY, at, built, placed
from tests.milp_planner.features import plans
from tests.milp_planner.features.plan.test_ranks import drawn

PLAN = plans.small()
Two = tuple[Answers, Answers]


def _answers(*questions: str) -> Answers:
    asked = Asked(budgets=3, limits=(0, 1))
    return answer(PLAN, questions, asked, Budget(plans.LIMITS, "cpsat"))


def _written(path: Path, answers: Answers, plan: Plan = PLAN) -> Path:
    path.write_text(json.dumps(answers_to_dict(plan, answers)), "utf-8")
    return path


@pytest.fixture(scope="module")
def two() -> Two:
    """Answers to every question that a plan can be asked, in two parts."""
    return _answers("why", "frontier"), _answers("smallest", "replan")


def test_what_is_read_equals_what_was_answered(two: Two, tmp_path: Path) -> None:
    """Several files together give the same answers, value for value."""
    paths = [_written(tmp_path / f"{i}.json", each) for i, each in enumerate(two)]
    found = read_answers(paths, PLAN)
    assert found == replace(two[0], smallest=two[1].smallest, replan=two[1].replan)
    assert read_answers([], PLAN) == Answers()


def _refused(path: Path, document: Any) -> str:
    path.write_text(json.dumps(document), "utf-8")
    with pytest.raises(BadInput) as caught:
        read_answers([path], PLAN)
    return str(caught.value)


def test_other_files_are_refused_in_a_sentence(two: Two, tmp_path: Path) -> None:
    """A file without answers, another plan's, a damaged one, and a question answered twice."""
    path = tmp_path / "a.json"
    good = answers_to_dict(PLAN, two[0])
    assert "holds no answers" in _refused(path, {"why": good["why"]})
    assert "holds no answers" in _refused(path, {"plan": good["plan"]})
    other = {**good, "plan": {**good["plan"], "objective": 1}}
    assert "another plan" in _refused(path, other)
    points = [{**good["frontier"][0], "points": 5}]
    assert "frontier.0.points: " in _refused(path, {**good, "frontier": points})
    assert "of an earlier version" in _refused(path, {**good, "staircase": []})
    path.write_text(json.dumps({**good, "why": {"objective": 10**400, "slope": 1e300}}), "utf-8")
    with pytest.raises(InstanceError, match="out of range"):
        read_answers([path], PLAN)
    twice = [_written(tmp_path / f"{i}.json", two[0]) for i in range(2)]
    with pytest.raises(BadInput, match="and so does"):
        read_answers(twice, PLAN)


def test_what_was_answered_before_a_stop_is_kept() -> None:
    """The current question is answered as far as it got; the questions after it are only named."""
    limits = replace(plans.LIMITS, stop=threading.Event())
    told: list[Answers] = []

    def stop(answers: Answers) -> None:
        told.append(answers)
        limits.stop.set()

    names = ("why", "frontier", "smallest")
    answers = answer(PLAN, names, Asked(), Budget(limits, "cpsat"), stop)
    assert answers.why is not None and answers.frontier is None
    assert answers.unasked == ("frontier", "smallest")
    assert told[0].why == answers.why and told[0].unasked == ("frontier", "smallest")
    assert "interrupted before: frontier, smallest" in drawn(answers.drawing())
    assert list(answers.to_dict()) == list(replace(answers, unasked=()).to_dict())


def test_nothing_is_solved_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """An alternative that equals a proved optimum needs no solve of its own."""
    instance = built([dict.fromkeys("ab", at(ANY, 7, hbm=5))], hbm=9)
    proof = BoundSource("cpsat", True)
    outcome = found(instance, "cpsat", placed([0], [0]), StoppedBy.PROOF, 7, proof)
    budget = Budget(plans.LIMITS, "cpsat")
    monkeypatch.setattr(Budget, "solve", None)
    info, _ = why(instance, outcome, budget)
    (other,) = info.tables[0].alternatives
    assert (other.status, other.cost, other.bound) == ("optimal", 7, 7)


def test_least_memory_says_what_the_device_needs() -> None:
    """It is stated as for an infeasible plan: after reservations, and as the value for the file."""
    answers = _answers("smallest")
    assert answers.smallest is not None
    least = next(each.least for each in answers.smallest if each.over == "hbm")
    assert (
        least is not None
        and least.least is not None
        and least.memory is not None
        and least.memory >= least.least
    )
    text = drawn(answers.drawing())
    assert "after reservations" in text and "reservations included" in text


def test_what_is_gone_says_what_replaced_it() -> None:
    """A question and its parameter, in one sentence each."""
    with pytest.raises(BadInput, match="staircase is gone: frontier answers it"):
        explain(PLAN, "staircase")
    with pytest.raises(BadInput, match="extras is gone: budgets"):
        Asked(extras=(1,))
