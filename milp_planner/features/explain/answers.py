"""All questions about a plan by name, for the command line and the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from formulations.result.check import check
from formulations.result.outcome import StoppedBy, found
from formulations.result.placement import Placement
from milp_planner.drawing.page import Shown
from milp_planner.errors import BadInput
from milp_planner.features.explain.budget import Budget
from milp_planner.features.explain.frontier import ENOUGH, POINTS, FrontierInfo, frontier
from milp_planner.features.explain.memory import StaircaseInfo, first_of, staircase, tiers_of
from milp_planner.features.explain.moves import MovesInfo, moves
from milp_planner.features.explain.replan import ReplanInfo, replan
from milp_planner.features.explain.sensitivity import SensitivityInfo, sensitivity
from milp_planner.features.explain.smallest import (
    LeastInfo,
    MachinesInfo,
    fewest_machines,
    least_memory,
)
from milp_planner.features.explain.why import WhyInfo, why
from milp_planner.features.plan.held import HeldInfo, held_info
from milp_planner.features.plan.ranks import SlowestInfo, slowest_of
from milp_planner.features.plan.shortage import (
    ShortageInfo,
    memory_for,
    shortage_of,
    with_diagnosis,
)
from milp_planner.inputs import Cluster, Model
from milp_planner.plans.placement import Plan, placed_tables
from milp_planner.today.rows import TodaySource

if TYPE_CHECKING:
    from rich.console import RenderableType

QUESTIONS = (
    "why", "staircase", "frontier", "smallest", "replan", "moves", "sensitivity", "why-not",
)  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """What the questions are asked with."""

    tables: tuple[str, ...] = ()
    """Of *why*; empty: all."""
    alternatives: int = 3
    """Of *why*, for each table."""
    extras: tuple[int, ...] = ()
    """Of the staircase, in bytes."""
    over: tuple[str, ...] = ("hbm",)
    """Of the frontier: ``hbm``, ``ddr``, ``machines``."""
    budgets: tuple[int, ...] | int = POINTS
    """Of the frontier: bytes of a place or numbers of machines, or how many of them."""
    enough: float = ENOUGH
    """Of the frontier: certified gap at which a point is settled."""
    target: int | None = None
    """Of *smallest*, in picoseconds."""
    machines: int = 16
    """Of *smallest*: the most to try."""
    limits: tuple[int, ...] = (0, 1, 2, 4, 8)
    """Of *replan*."""
    by: str = "tables"
    """``tables`` or ``bytes``."""
    model: Model | None = None
    cluster: Cluster | None = None
    """Of *replan*: as they are now."""
    today: TodaySource | None = None
    """Of *moves* and *replan*: the plan run today, as :func:`milp_planner.audit` takes it."""
    spread: float = 0.2
    """Of *sensitivity*: relative, of what the profile gives none for."""
    draws: int = 20
    """Of *sensitivity*: of all prices at once."""


@dataclass(frozen=True, repr=False)
class Answers(Shown):
    """An answer to each question asked; None to those that were not.

    ``replanned`` is the plan that came with *replan*, ``better`` a better plan that turned up in
    *why*, ``steps`` the plans on the way of *moves*.
    """

    held: HeldInfo | None = None
    slowest: SlowestInfo | None = None
    why: WhyInfo | None = None
    staircase: tuple[StaircaseInfo, ...] | None = None
    frontier: tuple[FrontierInfo, ...] | None = None
    smallest: tuple[LeastInfo, ...] | None = None
    machines: MachinesInfo | None = None
    replan: ReplanInfo | None = None
    replanned: Plan | None = None
    better: Plan | None = None
    moves: MovesInfo | None = None
    steps: Sequence[Plan] | None = None
    sensitivity: SensitivityInfo | None = None
    why_not: ShortageInfo | None = None
    unasked: tuple[str, ...] = ()
    """Questions that were not asked because the caller stopped before."""

    def drawing(self) -> RenderableType:
        """Every answer there is, one after another."""
        from milp_planner.features.explain.draw import draw_answers

        return draw_answers(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain values of the answers there are; plans that were found are none."""
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
"""Fields that files hold, which plans that were found are no part of."""


def answer(
    plan: Plan, questions: Sequence[str], asked: Asked, budget: Budget,
    on_answer: Callable[[Answers], None] | None = None,
) -> Answers:  # fmt: skip
    """Ask several questions about a plan, sharing the time equally.

    None named: *why* and the staircase, or *why-not* without a plan. When the settings' stop is set
    the question at hand is answered as far as it got, and no other is asked. ``on_answer`` gets all
    answers so far after each. BadInput for a question that cannot be asked of this plan.
    """
    placed = plan.outcome.placement is not None
    names = list(dict.fromkeys(questions)) or (["why", "staircase"] if placed else ["why-not"])
    for name in names:
        if not placed and name not in ("why-not", "smallest", "frontier"):
            able = "ask why-not, smallest or frontier"
            raise BadInput(f"explain {name}: the plan places nothing; {able}")
    if "moves" in names and asked.today is None:
        raise BadInput("explain moves: needs the plan run today (--today PLAN)")
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
    """Whether a plan that turned up is no better than one that did before."""
    if fresh is None or known is None:
        return False
    return (fresh.outcome.objective or 0) >= (known.outcome.objective or 0)


def _one(name: str, plan: Plan, asked: Asked, budget: Budget) -> dict[str, Any]:
    if name == "why":
        return _why(plan, asked, budget)
    if name == "staircase":
        return _staircase(plan, asked, budget)
    if name == "frontier":
        return {"frontier": _frontier(plan, asked, budget)}
    if name == "smallest":
        return _smallest(plan, asked, budget)
    if name == "replan":
        info, best = replan(
            plan, asked.limits, budget, by=asked.by, model=asked.model, cluster=asked.cluster,
            today=asked.today,
        )  # fmt: skip
        return {"replan": info, "replanned": best}
    if name == "moves":
        assert asked.today is not None
        way, steps = moves(plan, asked.today)
        return {"moves": way, "steps": steps}
    if name == "sensitivity":
        wrong = sensitivity(plan, budget, assumed=asked.spread, draws=asked.draws)
        return {"sensitivity": wrong}
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
    """A better plan that turned up, as a plan."""
    if better is None:
        return {}
    bound, source = plan.outcome.bound, plan.outcome.bound_source
    outcome = found(plan.instance, budget.formulation, better, StoppedBy.EXHAUSTED, bound, source)
    tables = placed_tables(plan.model, plan.cluster, plan.instance, better)
    return {"better": replace(plan, outcome=outcome, tables=tables)}


def _staircase(plan: Plan, asked: Asked, budget: Budget) -> dict[str, Any]:
    """One of each tier; plans of one start the next."""
    tiers, outcome = _memory(plan), plan.outcome
    infos, best = [], None
    for index, tier in enumerate(tiers):
        part = budget.part(1 / (len(tiers) - index))
        info, better = staircase(plan.instance, outcome, tier, asked.extras, part)
        steps = [replace(s, device=_device(plan, tier, s.smallest)) for s in info.steps]
        infos.append(replace(info, steps=tuple(steps)))
        if better is not None:
            best = better
            value = check(plan.instance, better).objectives[plan.instance.objective.value]
            outcome = outcome.with_(placement=better, objective=value)
    now = plan.outcome.objective
    infos = [replace(info, now=now) for info in infos]
    return {"staircase": tuple(infos)} | _better(plan, best, budget)


def _frontier(plan: Plan, asked: Asked, budget: Budget) -> tuple[FrontierInfo, ...]:
    """One of each kind of budget."""
    return tuple(
        frontier(plan, over, asked.budgets, budget.part(1 / (len(asked.over) - i)), asked.enough)
        for i, over in enumerate(asked.over)
    )


def _device(plan: Plan, tier: str, usable: int | None) -> int | None:
    """Memory with reservations of which tables may use so much; None of other resources."""
    if usable is None or tier not in ("hbm", "ddr"):
        return None
    return memory_for(tier, usable, plan.model, plan.cluster)


def _memory(plan: Plan) -> list[str]:
    """Tiers of which there is any."""
    return [t for t in tiers_of(plan.instance) if first_of(plan.instance, t).capacity.any()]


def _smallest(plan: Plan, asked: Asked, budget: Budget) -> dict[str, Any]:
    tiers = _memory(plan)
    parts = len(tiers) + 1
    least = tuple(
        least_memory(plan.instance, tier, budget.part(1 / (parts - i)), asked.target, grain=2**20)
        for i, tier in enumerate(tiers)
    )
    least = tuple(replace(info, memory=_device(plan, info.tier, info.least)) for info in least)
    answers: dict[str, Any] = {"smallest": least}
    links = plan.cluster.interconnect
    alike = len(set(plan.cluster.machines)) == 1
    if alike and links is not None and links.inter_machine is not None:
        kind = plan.instance.objective.value
        answers["machines"] = fewest_machines(
            plan.model, plan.cluster, kind, budget, asked.target, asked.machines
        )
    return answers


def _why_not(plan: Plan, budget: Budget) -> ShortageInfo | None:
    """The diagnosis the plan carries, or a new one."""
    known = shortage_of(plan.outcome.detail)
    if known is not None:
        return known
    if plan.outcome.status.value != "infeasible":
        raise BadInput(
            f"explain why-not: the plan is {plan.outcome.status.value}, not proved infeasible"
        )
    return shortage_of(with_diagnosis(plan.instance, plan.outcome, budget.settings).detail)
