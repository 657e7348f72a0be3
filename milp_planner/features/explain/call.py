"""``explain``: answer questions about a plan; store and read the answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from formulations import Settings
from formulations.capacity.budget import Budget
from formulations.instance import strict_json
from formulations.instance.restrictions import restrictions
from milp_planner.errors import BadInput
from milp_planner.features.explain.answers import ANSWERS, QUESTIONS, Answers, answer
from milp_planner.inputs.problems import choice
from milp_planner.plans.placement import Plan
from milp_planner.plans.plan_file import read_document
from milp_planner.request.questions import GONE, Asked


def explain(
    plan: Plan,
    *questions: str,
    asked: Asked | None = None,
    settings: Settings | None = None,
    **keywords: Any,
) -> Answers:
    """Why each option was chosen, what memory is worth, what to move, and more.

    Parameters
    ----------
    plan : Plan
    questions : str
        Names from :data:`milp_planner.features.explain.answers.QUESTIONS`; ``why`` if none is
        given.
    asked : Asked, optional
        Parameters of the questions, such as the tables of *why* or the limits of *replan*.
    settings : Settings, optional
        Limits where nothing else states another.
    **keywords
        Fields of :class:`milp_planner.request.questions.Asked`, as in ``asked``: parameters, and
        limits for all questions together.

    Raises
    ------
    BadInput
        For an unknown question, or one that this plan cannot answer.
    """
    for question in questions:
        if question in GONE:
            raise BadInput(GONE[question])
        if question not in QUESTIONS:
            raise BadInput(f"unknown question {question!r}; {choice(question, QUESTIONS)}")
    request = Asked.of({**(asked.given if asked else {}), **keywords})
    budget = Budget(request.settings(settings), request.formulation)
    return answer(plan, questions or ("why",), request, budget)


def answers_to_dict(plan: Plan, answers: Answers) -> dict[str, Any]:
    """The answers by name, with ``plan`` (which plan they are about) and its ``restrictions``."""
    restricted = list(restrictions(plan.instance))
    return {"plan": _asked_about(plan), "restrictions": restricted, **answers.to_dict()}


def read_answers(paths: Sequence[Path], plan: Plan) -> Answers:
    """Read the answers stored in some files.

    Parameters
    ----------
    paths : sequence of Path
        Each written by ``explain --json``.
    plan : Plan
        The plan that all answers must be about.

    Raises
    ------
    BadInput, InstanceError
        When a file holds no answers, answers about another plan, or an answer that an earlier file
        gave.
    """
    found: dict[str, Any] = {}
    origin: dict[str, Path] = {}
    for path in paths:
        document = read_document(path)
        strict_json.check_numbers(document, str(path))
        if "staircase" in document or "machines" in document:
            raise BadInput(f"{path}: of an earlier version; explain --ask frontier,smallest again")
        if "plan" not in document or document.keys().isdisjoint(_TYPES):
            raise BadInput(f"{path}: holds no answers; needs what explain --json prints")
        if document["plan"] != _asked_about(plan):
            raise BadInput(f"{path}: answers about another plan")
        for name in document.keys() & _TYPES.keys():
            if name in origin:
                raise BadInput(f"{path}: answers {name}, and so does {origin[name]}")
            found[name] = _read(path, name, document[name])
            origin[name] = path
    return Answers(**found)


def merged(given: Answers, fresh: Answers) -> Answers:
    """Both sets of answers; where both answer a question, the fresh answer wins."""
    names = [each.name for each in fields(Answers)]
    found = {name: getattr(fresh, name) for name in names if getattr(fresh, name) is not None}
    return replace(given, **found)


def _asked_about(plan: Plan) -> dict[str, Any]:
    return {"instance": plan.instance.fingerprint, "objective": plan.outcome.objective}


def _read(path: Path, name: str, value: Any) -> Any:
    try:
        return _TYPES[name].validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in (name, *first["loc"]))
        raise BadInput(f"{path}: {where}: {first['msg'][0].lower()}{first['msg'][1:]}") from None


#: The adapter that reads each answer.
_TYPES: dict[str, TypeAdapter[Any]] = {
    name: TypeAdapter(get_type_hints(Answers)[name]) for name in ANSWERS
}
