"""Everything a report shows of one plan, as values."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from formulations import Outcome
from formulations.settings import TracePoint
from milp_planner.features.explain.answers import Answers
from milp_planner.features.plan.memory import MemoryInfo, memory_of
from milp_planner.features.plan.modes import ModesInfo, modes_of
from milp_planner.features.plan.ranks import RanksInfo, ranks_of
from milp_planner.features.plan.shortage import ShortageInfo, shortage_of
from milp_planner.features.plan.tables import TablesInfo, tables_of
from milp_planner.features.plan.verdict import VerdictInfo, verdict_of
from milp_planner.plans.placement import Plan


@dataclass(frozen=True)
class ReportInfo:
    """One plan; parts that need a placement are None without one.

    Attributes
    ----------
    model, cluster, profile : str
        Names.
    num_ranks : int
    verdict : VerdictInfo
    tables, ranks, memory, modes
    shortage : ShortageInfo or None
        Of an infeasible plan.
    trace : tuple of TracePoint
        The best plan and bound known over time, ending with what the solve returned.
    answers : Answers
        Explanations asked for.
    fingerprint : str
        Of the Instance.
    """

    model: str
    cluster: str
    profile: str
    num_ranks: int
    verdict: VerdictInfo
    tables: TablesInfo | None
    ranks: RanksInfo | None
    memory: MemoryInfo | None
    modes: ModesInfo | None
    shortage: ShortageInfo | None
    trace: tuple[TracePoint, ...]
    answers: Answers
    fingerprint: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        parts = ("verdict", "tables", "ranks", "memory", "modes", "shortage")
        values = {name: getattr(self, name) for name in parts}
        return {
            "model": self.model,
            "cluster": self.cluster,
            "profile": self.profile,
            "num_ranks": self.num_ranks,
            "fingerprint": self.fingerprint,
            **{name: None if v is None else v.to_dict() for name, v in values.items()},
            "trace": [asdict(point) for point in self.trace],
            "answers": self.answers.to_dict(),
        }


def report_of(plan: Plan, answers: Answers | None = None) -> ReportInfo:
    """Collect the figures of a plan."""
    instance, placement = plan.instance, plan.outcome.placement
    tables = None if placement is None else tables_of(instance, placement)
    return ReportInfo(
        model=plan.model.name,
        cluster=plan.cluster.name,
        profile=plan.profile.name,
        num_ranks=instance.num_ranks,
        verdict=verdict_of(instance, plan.outcome),
        tables=tables,
        ranks=None if placement is None else ranks_of(instance, placement),
        memory=None if placement is None else memory_of(instance, placement),
        modes=None if tables is None else modes_of(tables),
        shortage=shortage_of(plan.outcome.detail),
        trace=_trace(plan.outcome),
        answers=answers or Answers(),
        fingerprint=instance.fingerprint,
    )


def _trace(outcome: Outcome) -> tuple[TracePoint, ...]:
    """The best known at every moment: a method that starts afresh reports less than that."""
    last = TracePoint(outcome.seconds, outcome.objective, outcome.bound, outcome.formulation)
    found: list[TracePoint] = []
    objective = bound = None
    for point in (*outcome.trace, last):
        objective = min((v for v in (objective, point.objective) if v is not None), default=None)
        bound = max((v for v in (bound, point.bound) if v is not None), default=None)
        if objective is not None or bound is not None:
            found.append(replace(point, objective=objective, bound=bound))
    return tuple(found)
