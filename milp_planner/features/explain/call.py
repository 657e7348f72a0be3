"""``explain``: questions about a plan, from Python."""

from __future__ import annotations

from dataclasses import replace

from formulations import Settings
from milp_planner.errors import BadInput
from milp_planner.features.explain.answers import QUESTIONS, Answers, Asked, answer
from milp_planner.features.explain.budget import Budget
from milp_planner.inputs.problems import choice
from milp_planner.plans.placement import Plan


def explain(
    plan: Plan,
    *questions: str,
    asked: Asked | None = None,
    formulation: str = "auto",
    time_limit: float = 60.0,
    settings: Settings | None = None,
) -> Answers:
    """Why each option was chosen, what memory is worth, what to move, and more.

    Parameters
    ----------
    plan : Plan
    questions : str
        Of :data:`milp_planner.features.explain.answers.QUESTIONS`; none: ``why``.
    asked : Asked, optional
        What the questions are asked with, such as the tables of *why* or the limits of *replan*.
    formulation : str
    time_limit : float
        Seconds for all questions together.
    settings : Settings, optional
        Other limits and wishes.

    Returns
    -------
    Answers

    Raises
    ------
    BadInput
        For an unknown question, or one that this plan cannot answer.
    """
    for question in questions:
        if question not in QUESTIONS:
            raise BadInput(f"unknown question {question!r}; {choice(question, QUESTIONS)}")
    limits = replace(settings or Settings(), time_limit=time_limit)
    return answer(plan, questions or ("why",), asked or Asked(), Budget(limits, formulation))
