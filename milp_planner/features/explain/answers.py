"""All questions about a plan, by name, for the command line and the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from formulations.capacity.budget import Budget
from formulations.result.outcome import StoppedBy, found
from formulations.result.placement import Placement
from milp_planner.drawing.page import Shown
from milp_planner.errors import BadInput
from milp_planner.features.explain import draw
from milp_planner.features.explain.axes import MACHINES, memories_of, several_machines
from milp_planner.features.explain.cheapest import (
    CheapestInfo,
    cheapest_of,
    draw_cheapest,
    most_for,
)
from milp_planner.features.explain.frontier import (
    FrontierInfo,
    frontier,
    least_of,
)
from milp_planner.features.explain.frontier_draw import draw_frontier, draw_least
from milp_planner.features.explain.sensitivity import SensitivityInfo, sensitivity
from milp_planner.features.explain.slowest import SlowestInfo, draw_slowest, slowest_of
from milp_planner.features.explain.why import WhyInfo, why
from milp_planner.features.moves.limits import ReplanInfo, draw_replan, replan
from milp_planner.features.moves.way import MovesInfo, draw_moves, moves
from milp_planner.features.plan.held import HeldInfo, draw_held, held_info
from milp_planner.features.plan.shortage import (
    ShortageInfo,
    draw_shortage,
    shortage_of,
    with_diagnosis,
)
from milp_planner.plans.placement import Plan, placed_tables
from milp_planner.request.questions import Asked

QUESTIONS = ("why", "frontier", "smallest", "replan", "moves", "sensitivity", "why-not")


@dataclass(frozen=True, repr=False)
class Answers(Shown):
    """The answer to each question asked; None for the others.

    ``replanned`` is the plan of *replan*'s largest limit, ``better`` a better plan found by the
    way, and ``steps`` are the plans between the moves of *moves*.
    """

    held: HeldInfo | None = None
    slowest: SlowestInfo | None = None
    why: WhyInfo | None = None
    frontier: tuple[FrontierInfo, ...] | None = None
    smallest: tuple[FrontierInfo, ...] | None = None
    cheapest: CheapestInfo | None = None
    replan: ReplanInfo | None = None
    replanned: Plan | None = None
    better: Plan | None = None
    moves: MovesInfo | None = None
    steps: Sequence[Plan] | None = None
    sensitivity: SensitivityInfo | None = None
    why_not: ShortageInfo | None = None
    unasked: tuple[str, ...] = ()
    """Questions that were not answered because the caller stopped early."""

    def drawing(self) -> RenderableType:
        """All answers, one after another."""
        return draw_answers(self)

    def to_dict(self) -> dict[str, Any]:
        """The answers as plain values, without the plans that were found."""
        given = {name: getattr(self, name) for name in ANSWERS}
        return {
            name: [each.to_dict() for each in value]
            if isinstance(value, tuple)
            else value.to_dict()
            for name, value in given.items()
            if value is not None
        }


ANSWERS = tuple(
    each.name
    for each in fields(Answers)
    if each.name not in ("replanned", "better", "steps", "unasked")
)
"""Fields stored in files; plans that were found are not stored."""


def answer(
    plan: Plan, questions: Sequence[str], asked: Asked, budget: Budget,
    on_answer: Callable[[Answers], None] | None = None,
) -> Answers:  # fmt: skip
    """Answer several questions about a plan, sharing the time equally.

    Without ``questions``, it answers *why* and *frontier*, or *why-not* if there is no plan. When
    the settings' ``stop`` is set, the current question returns what it has and the rest are
    skipped. ``on_answer`` is called after each question with all answers so far. BadInput for a
    question that does not apply to this plan.
    """
    placed = plan.outcome.placement is not None
    names = list(dict.fromkeys(questions)) or (["why", "frontier"] if placed else ["why-not"])
    for name in names:
        if not placed and name not in ("why-not", "smallest", "frontier"):
            able = "ask why-not, smallest or frontier"
            raise BadInput(f"explain {name}: the plan places nothing; {able}")
    if "moves" in names and asked.start is None:
        raise BadInput("explain moves: needs the plan run today (--start PLAN)")
    answers: dict[str, Any] = {}
    for index, name in enumerate(names):
        if budget.settings.stop.is_set():
            answers["unasked"] = tuple(names[index:])
            break
        fresh = _one(name, plan, asked, budget.part(1 / (len(names) - index)))
        if _worse(fresh.get("better"), answers.get("better")):
            del fresh["better"]
        answers |= fresh
        if on_answer is not None:
            on_answer(Answers(**answers, unasked=tuple(names[index + 1 :])))
    return Answers(**answers)


def _worse(fresh: Plan | None, known: Plan | None) -> bool:
    """Whether a newly found plan is no better than one found before."""
    if fresh is None or known is None:
        return False
    return (fresh.outcome.objective or 0) >= (known.outcome.objective or 0)


def _one(name: str, plan: Plan, asked: Asked, budget: Budget) -> dict[str, Any]:
    if name == "why":
        return _why(plan, asked, budget)
    if name == "frontier":
        return _frontier(plan, asked, budget)
    if name == "smallest":
        if asked.clusters:
            return {"cheapest": cheapest_of(plan, asked.clusters, asked.target, budget)}
        return {"smallest": _smallest(plan, asked, budget)}
    if name == "replan":
        info, best = replan(
            plan, asked.limits, budget, by=asked.by, model=asked.model, cluster=asked.cluster,
            start=asked.start,
        )  # fmt: skip
        return {"replan": info, "replanned": best}
    if name == "moves":
        assert asked.start is not None
        way, steps = moves(plan, asked.start)
        return {"moves": way, "steps": steps}
    if name == "sensitivity":
        return {"sensitivity": sensitivity(plan, budget, asked.spread, asked.draws)}
    return {"why_not": _why_not(plan, budget)}


def _why(plan: Plan, asked: Asked, budget: Budget) -> dict[str, Any]:
    info, better = why(plan.instance, plan.outcome, budget, asked.tables, asked.alternatives)
    answers: dict[str, Any] = {"why": info}
    if not asked.tables:
        answers["held"] = held_info(plan)
    if not asked.tables and plan.instance.num_ranks > 1:
        answers["slowest"] = slowest_of(plan)
    return answers | _better(plan, better, budget)


def _better(plan: Plan, better: Placement | None, budget: Budget) -> dict[str, Any]:
    if better is None:
        return {}
    bound, source = plan.outcome.bound, plan.outcome.bound_source
    outcome = found(plan.instance, budget.formulation, better, StoppedBy.EXHAUSTED, bound, source)
    tables = placed_tables(plan.model, plan.cluster, plan.instance, better)
    return {"better": replace(plan, outcome=outcome, tables=tables)}


def _frontier(plan: Plan, asked: Asked, budget: Budget) -> dict[str, Any]:
    """One frontier per kind of budget; a plan found in one starts the next."""
    infos, found = list[FrontierInfo](), dict[str, Any]()
    for index, over in enumerate(asked.over):
        part = budget.part(1 / (len(asked.over) - index))
        info, better = frontier(found.get("better", plan), over, asked.budgets, part, asked.enough)
        infos.append(replace(info, now=plan.outcome.objective))
        found |= _better(plan, better, budget)
    return {"frontier": tuple(infos)} | found


def _smallest(plan: Plan, asked: Asked, budget: Budget) -> tuple[FrontierInfo, ...]:
    """The least of every memory that has a capacity, and of machines where there is a choice."""
    resources = plan.instance.resources
    axes = [n for n, at in memories_of(plan.instance).items() if resources[at[0]].capacity.any()]
    axes += [MACHINES] if several_machines(plan) is None else []
    samples = plan.model.workload.batch_per_rank * plan.cluster.num_ranks
    target = most_for(asked.target, samples)
    return tuple(
        least_of(plan, name, budget.part(1 / (len(axes) - index)), target, asked.machines)
        for index, name in enumerate(axes)
    )


def _why_not(plan: Plan, budget: Budget) -> ShortageInfo | None:
    known = shortage_of(plan.outcome.detail)
    if known is not None:
        return known
    if plan.outcome.status.value != "infeasible":
        raise BadInput(
            f"explain why-not: the plan is {plan.outcome.status.value}, not proved infeasible"
        )
    return shortage_of(with_diagnosis(plan.instance, plan.outcome, budget.settings).detail)


def draw_answers(answers: Answers, everything: bool = False) -> RenderableType:
    """All answers, one after another."""
    drawn: dict[str, Callable[[Any], RenderableType]] = {
        "held": draw_held,
        "slowest": draw_slowest,
        "why": lambda info: draw.draw_why(info, everything),
        "frontier": draw_frontier,
        "smallest": draw_least,
        "cheapest": draw_cheapest,
        "replan": draw_replan,
        "moves": lambda info: draw_moves(info, everything),
        "sensitivity": draw.draw_sensitivity,
        "why_not": draw_shortage,
    }
    parts: list[RenderableType] = []
    for name, picture in drawn.items():
        value = getattr(answers, name)
        values = value if isinstance(value, tuple) else (value,)
        parts += [picture(each) for each in values if each is not None]
    if answers.unasked:
        parts.append(Text(f"interrupted before: {', '.join(answers.unasked)}", style="bold yellow"))
    spaced = [item for part in parts for item in (part, Text(""))]
    return Group(*spaced[:-1])
