"""The answers that ``explain --json`` writes are read back."""

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from formulations import BoundSource, InstanceError
from formulations.capacity.budget import Budget
from formulations.result.outcome import StoppedBy, found
from milp_planner.errors import BadInput
from milp_planner.features.explain.answers import Answers, answer
from milp_planner.features.explain.call import answers_to_dict, explain, read_answers
from milp_planner.features.explain.why import why
from milp_planner.request.questions import Asked
from tests.formulations.examples import ANY, at, built, placed
from tests.milp_planner.features import plans
from tests.milp_planner.features.plan.test_ranks import drawn


def _written(path: Path, answers: Answers) -> Path:
    path.write_text(json.dumps(answers_to_dict(plans.small(), answers)), "utf-8")
    return path


def _two() -> tuple[Answers, Answers]:
    """Answers to every question that a plan can be asked, in two parts."""
    known = plans.answers()
    first = {name: getattr(known, name) for name in ("held", "slowest", "why", "frontier")}
    second = {name: getattr(known, name) for name in ("smallest", "replan", "sensitivity")}
    return Answers(**first), Answers(**second)


def test_what_is_read_equals_what_was_answered(tmp_path: Path) -> None:
    """Several files together give the same answers, value for value."""
    paths = [_written(tmp_path / f"{i}.json", each) for i, each in enumerate(_two())]
    known = replace(plans.answers(), replanned=None, better=None)
    assert read_answers(paths, plans.small()) == known
    assert read_answers([], plans.small()) == Answers()


def test_other_files_are_refused_in_a_sentence(tmp_path: Path) -> None:
    """A file without answers, another plan's, a damaged one, and a question answered twice."""
    path, first = tmp_path / "a.json", _two()[0]
    good = answers_to_dict(plans.small(), first)
    for document, said in (
        ({"why": good["why"]}, "holds no answers"),
        ({"plan": good["plan"]}, "holds no answers"),
        ({**good, "plan": {**good["plan"], "objective": 1}}, "another plan"),
        ({**good, "frontier": [{**good["frontier"][0], "points": 5}]}, r"frontier\.0\.points: "),
        ({**good, "staircase": []}, "of an earlier version"),
    ):
        path.write_text(json.dumps(document), "utf-8")
        with pytest.raises(BadInput, match=said):
            read_answers([path], plans.small())
    path.write_text(json.dumps({**good, "why": {"objective": 10**400, "slope": 1e300}}), "utf-8")
    with pytest.raises(InstanceError, match="out of range"):
        read_answers([path], plans.small())
    twice = [_written(tmp_path / f"{i}.json", first) for i in range(2)]
    with pytest.raises(BadInput, match="and so does"):
        read_answers(twice, plans.small())


def test_what_was_answered_before_a_stop_is_kept() -> None:
    """The current question is answered as far as it got; the questions after it are only named."""
    limits = replace(plans.LIMITS, stop=threading.Event())
    told: list[Answers] = []

    def stop(answers: Answers) -> None:
        told.append(answers)
        limits.stop.set()

    names = ("why", "frontier", "smallest")
    answers = answer(plans.small(), names, Asked(tables=["users"]), Budget(limits, "cpsat"), stop)
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


def test_what_is_gone_says_what_replaced_it() -> None:
    """A question and its parameter, in one sentence each."""
    with pytest.raises(BadInput, match="staircase is gone: frontier answers it"):
        explain(plans.small(), "staircase")
    with pytest.raises(BadInput, match="extras is gone: budgets"):
        Asked(extras=(1,))
