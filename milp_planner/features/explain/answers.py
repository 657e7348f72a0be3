"""All questions about a plan by name, for the command line and the report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from formulations import Instance, Placement, UnsupportedInstance
from formulations.result.outcome import StoppedBy, found
from milp_planner.drawing.page import Shown
from milp_planner.errors import BadInput
from milp_planner.features.explain.budget import Budget
from milp_planner.features.explain.memory import (
    FrontierInfo,
    StaircaseInfo,
    capacity_of,
    grid_frontier,
    staircase,
    tiers_of,
)
from milp_planner.features.explain.moves import DiffInfo, MovesInfo, diff, moves
from milp_planner.features.explain.perturb import options_of
from milp_planner.features.explain.replan import ReplanInfo, replan
from milp_planner.features.explain.robust import WEIGHTED, WORST, RobustInfo, onto, robust
from milp_planner.features.explain.sensitivity import SensitivityInfo, sensitivity
from milp_planner.features.explain.smallest import (
    LeastInfo,
    MachinesInfo,
    fewest_machines,
    least_memory,
)
from milp_planner.features.explain.why import WhyInfo, why
from milp_planner.features.plan.ranks import SlowestInfo, slowest_of
from milp_planner.features.plan.shortage import ShortageInfo, shortage_of, with_diagnosis
from milp_planner.inputs import Cluster, Model
from milp_planner.plans.compile import compile_for
from milp_planner.plans.placement import Plan, decode
from milp_planner.today.rows import TodaySource

if TYPE_CHECKING:
    from rich.console import RenderableType

QUESTIONS = (
    "why", "staircase", "frontier", "smallest", "replan", "moves", "diff", "robust",
    "sensitivity", "why-not",
)  # fmt: skip
#: Heuristics whose plans stand on the frontier.
SHOWN = ("dp", "greedy", "uniform")


@dataclass(frozen=True)
class Asked:
    """What the questions are asked with."""

    tables: tuple[str, ...] = ()
    """Of *why*; empty: all."""
    alternatives: int = 3
    """Of *why*, for each table."""
    extras: tuple[int, ...] = ()
    """Of the staircase, in bytes."""
    grid: int = 4
    """Of the frontier: equal steps of each tier."""
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
    """Of *moves*: the plan run today, as :func:`milp_planner.audit` takes it."""
    against: Plan | None = None
    """Of *diff*: the second plan."""
    scenarios: tuple[tuple[Model | None, Cluster | None], ...] = ()
    """Of *robust*, besides the plan's own; None: the plan's."""
    weights: tuple[int, ...] = ()
    """Of *robust*, the plan's own scenario first; empty: 1 each."""
    worst: bool = False
    """Of *robust*: against the worst scenario instead of their sum."""
    spread: float = 0.2
    """Of *sensitivity*: relative, of what the profile gives none for."""
    draws: int = 20
    """Of *sensitivity*: of all prices at once."""
    common: bool = False
    """Of *sensitivity*: also one plan for all draws."""


@dataclass(frozen=True, repr=False)
class Answers(Shown):
    """An answer to each question asked; None to those that were not.

    ``replanned`` and ``common`` are the plans that came with *replan*, and with *robust* or
    *sensitivity*, ``better`` a better plan that turned up in *why*, ``steps`` the plans on the way
    of *moves*.
    """

    slowest: SlowestInfo | None = None
    why: WhyInfo | None = None
    staircase: tuple[StaircaseInfo, ...] | None = None
    frontier: FrontierInfo | None = None
    smallest: tuple[LeastInfo, ...] | None = None
    machines: MachinesInfo | None = None
    replan: ReplanInfo | None = None
    replanned: Plan | None = None
    better: Plan | None = None
    moves: MovesInfo | None = None
    steps: Iterator[Plan] | None = None
    diff: DiffInfo | None = None
    robust: RobustInfo | None = None
    sensitivity: SensitivityInfo | None = None
    common: Plan | None = None
    why_not: ShortageInfo | None = None

    def drawing(self) -> RenderableType:
        """Every answer there is, one after another."""
        from milp_planner.features.explain.draw import draw_answers

        return draw_answers(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain values of the answers there are."""
        found: dict[str, Any] = {}
        for name in ("slowest", "why", "frontier", "machines", "replan", "moves", "diff", "robust",
                     "sensitivity", "why_not"):  # fmt: skip
            value = getattr(self, name)
            if value is not None:
                found[name] = value.to_dict()
        for name in ("staircase", "smallest"):
            values = getattr(self, name)
            if values is not None:
                found[name] = [value.to_dict() for value in values]
        return found


def answer(plan: Plan, questions: Sequence[str], asked: Asked, budget: Budget) -> Answers:
    """Ask several questions about a plan, sharing the time equally.

    Parameters
    ----------
    plan : Plan
    questions : sequence of str
        Names in ``QUESTIONS``; empty: *why* and the staircase, or *why-not* without a plan.
    asked : Asked
    budget : Budget

    Raises
    ------
    BadInput
        For a question that cannot be asked of this plan.
    """
    names = list(dict.fromkeys(questions)) or _default_questions(plan)
    if plan.outcome.placement is None:
        for name in names:
            if name not in ("why-not", "smallest"):
                raise BadInput(f"explain {name}: the plan places nothing; ask why-not or smallest")
    if "moves" in names and asked.today is None:
        raise BadInput("explain moves: needs the plan run today (--today PLAN)")
    if "diff" in names and asked.against is None:
        raise BadInput("explain diff: needs the second plan (--against PLAN)")
    if "robust" in names and not asked.scenarios:
        raise BadInput("explain robust: needs another scenario (--scenario MODEL@CLUSTER)")
    count = len(asked.scenarios) + 1
    if asked.weights and len(asked.weights) != count:
        raise BadInput(f"explain robust: {len(asked.weights)} weights for {count} scenarios; "
                       "needs one each, the plan's own first")  # fmt: skip
    found: dict[str, Any] = {}
    for index, name in enumerate(names):
        found |= _one(name, plan, asked, budget.part(1 / (len(names) - index)))
    return Answers(**found)


def _default_questions(plan: Plan) -> list[str]:
    """What is asked when nothing is: it depends on whether there is a plan."""
    return ["why-not"] if plan.outcome.placement is None else ["why", "staircase"]


def _one(name: str, plan: Plan, asked: Asked, budget: Budget) -> dict[str, Any]:
    instance, outcome = plan.instance, plan.outcome
    if name == "why":
        return _why(plan, asked, budget)
    if name == "staircase":
        tiers = _memory(plan)
        return {
            "staircase": tuple(
                staircase(instance, outcome, tier, asked.extras, budget.part(1 / (len(tiers) - i)))
                for i, tier in enumerate(tiers)
            )
        }
    if name == "frontier":
        return {"frontier": _frontier(plan, asked, budget)}
    if name == "smallest":
        return _smallest(plan, asked, budget)
    if name == "replan":
        info, best = replan(
            plan, asked.limits, budget, by=asked.by, model=asked.model, cluster=asked.cluster
        )
        return {"replan": info, "replanned": best}
    if name == "moves":
        assert asked.today is not None
        way, steps = moves(plan, asked.today)
        return {"moves": way, "steps": steps}
    if name == "diff":
        assert asked.against is not None
        return {"diff": diff(plan, asked.against)}
    if name == "robust":
        return _robust(plan, asked, budget)
    if name == "sensitivity":
        return _sensitivity(plan, asked, budget)
    return {"why_not": _why_not(plan, budget)}


def _why(plan: Plan, asked: Asked, budget: Budget) -> dict[str, Any]:
    info, better = why(plan.instance, plan.outcome, budget, asked.tables, asked.alternatives)
    found: dict[str, Any] = {"why": info}
    if not asked.tables and plan.instance.num_ranks > 1:
        found["slowest"] = slowest_of(plan)
    if better is not None:
        found["better"] = adopt(plan, plan.instance, better, budget.formulation)
    return found


def _memory(plan: Plan) -> list[str]:
    """Tiers of which there is any."""
    return [t for t in tiers_of(plan.instance) if capacity_of(plan.instance, t).any()]


def _frontier(plan: Plan, asked: Asked, budget: Budget) -> FrontierInfo:
    placement = plan.outcome.placement
    assert placement is not None
    plans = {"this plan": placement, **_heuristics(plan, budget)}
    tiers = _memory(plan)
    axes = {}
    for tier in tiers:
        top = int(capacity_of(plan.instance, tier).max())
        axes[tier] = [top * step // asked.grid for step in range(1, asked.grid + 1)]
    return grid_frontier(plan.instance, axes, budget, plans, plan.outcome.certificate)


def _heuristics(plan: Plan, budget: Budget) -> dict[str, Placement]:
    """Plans of the DP and the heuristics, as far as they cover the instance and find one."""
    asked: dict[str, tuple[str, dict[str, object]]] = {name: (name, {}) for name in SHOWN}
    if plan.instance.fusion_groups:
        asked["dp, fusion-aware"] = ("dp", {"fusion_aware": True})
    found = {}
    for label, (name, options) in asked.items():
        settings = replace(budget.part(0.1).settings, options=options)
        try:
            outcome = Budget(settings, name).solve(plan.instance)
        except UnsupportedInstance:
            continue
        if outcome.placement is not None:
            found[label] = outcome.placement
    return found


def _smallest(plan: Plan, asked: Asked, budget: Budget) -> dict[str, Any]:
    tiers = _memory(plan)
    parts = len(tiers) + 1
    least = tuple(
        least_memory(plan.instance, tier, budget.part(1 / (parts - i)), asked.target, grain=2**20)
        for i, tier in enumerate(tiers)
    )
    found: dict[str, Any] = {"smallest": least}
    links = plan.cluster.interconnect
    alike = len(set(plan.cluster.machines)) == 1
    if alike and links is not None and links.inter_machine is not None:
        kind = plan.instance.objective.value
        found["machines"] = fewest_machines(
            plan.model, plan.cluster, kind, budget, asked.target, asked.machines
        )
    return found


def _robust(plan: Plan, asked: Asked, budget: Budget) -> dict[str, Any]:
    """The plan's own model and cluster, then the others, by name."""
    kind = plan.instance.objective.value
    own = f"{plan.model.name}@{plan.cluster.name}"
    instances = {own: plan.instance}
    for model, cluster in asked.scenarios:
        compiled = compile_for(model or plan.model, cluster or plan.cluster, kind)
        name = f"{compiled.model.name}@{compiled.cluster.name}"
        while name in instances:
            name += "'"
        instances[name] = compiled.instance
    weights = dict(zip(instances, asked.weights, strict=False))
    assert plan.outcome.placement is not None
    info, combined, placement = robust(
        instances, budget, weights, _aim(asked), starts=[plan.outcome.placement]
    )
    found: dict[str, Any] = {"robust": info}
    if placement is not None:
        there = onto(plan.instance, combined, placement)
        found["common"] = adopt(plan, plan.instance, there, budget.formulation)
    return found


def _sensitivity(plan: Plan, asked: Asked, budget: Budget) -> dict[str, Any]:
    common = _aim(asked) if asked.common else None
    info, best = sensitivity(plan, budget, assumed=asked.spread, draws=asked.draws, common=common)
    found: dict[str, Any] = {"sensitivity": info}
    if best is not None:
        found["common"] = adopt(plan, *best, budget.formulation)
    return found


def _aim(asked: Asked) -> str:
    return WORST if asked.worst else WEIGHTED


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


def adopt(plan: Plan, instance: Instance, placement: Placement, formulation: str) -> Plan:
    """The plan with another placement, on an Instance of the same options.

    It was made for more than this Instance, so only the plan's own bound is claimed, and that only
    where the Instance is the plan's own.

    Raises
    ------
    BadInput
        When the plan's options are not those that this version prices.
    """
    own = instance is plan.instance
    outcome = found(
        instance, formulation, placement, StoppedBy.EXHAUSTED,
        plan.outcome.bound if own else None, plan.outcome.bound_source if own else None,
    )  # fmt: skip
    return decode(options_of(plan), instance, outcome)
