"""Answers of ``explain --json``, read back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from formulations import InstanceError
from milp_planner.errors import BadInput
from milp_planner.features.explain.answers import Answers, Asked, answer
from milp_planner.features.explain.budget import Budget
from milp_planner.features.explain.call import answers_to_dict, read_answers
from milp_planner.plans.placement import Plan
from tests.milp_planner.features import plans

PLAN = plans.small()
Two = tuple[Answers, Answers]


def _answers(*questions: str) -> Answers:
    asked = Asked(extras=(2**28,), limits=(0, 1))
    return answer(PLAN, questions, asked, Budget(plans.LIMITS, "cpsat"))


def _written(path: Path, answers: Answers, plan: Plan = PLAN) -> Path:
    path.write_text(json.dumps(answers_to_dict(plan, answers)), "utf-8")
    return path


@pytest.fixture(scope="module")
def two() -> Two:
    """Every question that a plan can be asked, in two parts."""
    return _answers("why", "staircase"), _answers("smallest", "replan")


def test_what_is_read_equals_what_was_answered(two: Two, tmp_path: Path) -> None:
    """Several files add up, value for value."""
    paths = [_written(tmp_path / f"{i}.json", each) for i, each in enumerate(two)]
    found = read_answers(paths, PLAN)
    assert found == replace(two[0], smallest=two[1].smallest, machines=two[1].machines,
                            replan=two[1].replan)  # fmt: skip
    assert read_answers([], PLAN) == Answers()


def _refused(path: Path, document: Any) -> str:
    path.write_text(json.dumps(document), "utf-8")
    with pytest.raises(BadInput) as caught:
        read_answers([path], PLAN)
    return str(caught.value)


def test_other_files_are_refused_in_a_sentence(two: Two, tmp_path: Path) -> None:
    """No answers, another plan's, a damaged one, the same question twice."""
    path = tmp_path / "a.json"
    good = answers_to_dict(PLAN, two[0])
    assert "holds no answers" in _refused(path, {"why": good["why"]})
    assert "holds no answers" in _refused(path, {"plan": good["plan"]})
    other = {**good, "plan": {**good["plan"], "objective": 1}}
    assert "another plan" in _refused(path, other)
    steps = [{**good["staircase"][0], "steps": 5}]
    assert "staircase.0.steps: " in _refused(path, {**good, "staircase": steps})
    path.write_text(json.dumps({**good, "why": {"objective": 10**400, "slope": 1e300}}), "utf-8")
    with pytest.raises(InstanceError, match="out of range"):
        read_answers([path], PLAN)
    twice = [_written(tmp_path / f"{i}.json", two[0]) for i in range(2)]
    with pytest.raises(BadInput, match="and so does"):
        read_answers(twice, PLAN)
