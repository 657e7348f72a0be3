"""How good the plans of TorchRec's planning service are, SKU by SKU."""

from __future__ import annotations

from dataclasses import dataclass

from torchrec.distributed.planner.reporter import DefaultPlanReporter
from torchrec.distributed.planner.stats import NoopEmbeddingStats
from torchrec.distributed.planner.types import PlannerSessionContext, Stats

from formulations import Outcome
from formulations.result.outcome import certified_gap
from milp_planner.integrations.torchrec.rating import Guilty, RatingName, milliseconds


@dataclass(frozen=True)
class PlanReport:
    """How good the plan of one SKU is."""

    sku: str
    request_id: str
    request_hash: str
    """As in TorchRec's result."""
    objective: RatingName
    status: str
    """``optimal`` or ``feasible``."""
    milliseconds: float
    bound: float | None
    """Milliseconds that no plan can beat."""
    certified_bound: float | None
    """Milliseconds that no plan can beat, as ``verify`` re-derives them."""
    gap: float | None
    certified_gap: float | None
    work: float | None
    """Units of work until plan or bound last improved; None if the solve measured time."""
    held_up_by: Guilty | None


class MilpPlanReporter(DefaultPlanReporter):
    """Builds TorchRec's own sinks, and one that keeps a :class:`PlanReport` by SKU.

    Parameters
    ----------
    console : bool
        Whether TorchRec's statistics are logged as well.

    Attributes
    ----------
    reports : dict of str to PlanReport
        Reports on this project's plans; other planners have no bound.
    """

    def __init__(self, console: bool = True) -> None:
        self._console = console
        self.reports: dict[str, PlanReport] = {}

    def build_stats(self, ctx: PlannerSessionContext, sku: str) -> list[Stats]:
        """Sinks for the next SKU."""
        own = super().build_stats(ctx, sku) if self._console else []
        return [*own, BoundStats(self.reports, ctx, sku)]


class BoundStats(NoopEmbeddingStats):
    """Stores the outcome of :class:`~milp_planner.integrations.torchrec.MilpShardingPlanner`."""

    def __init__(
        self, reports: dict[str, PlanReport], ctx: PlannerSessionContext, sku: str
    ) -> None:
        self._reports, self._ctx, self._sku = reports, ctx, sku

    def log_outcome(
        self, outcome: Outcome, objective: RatingName, held_up_by: Guilty | None
    ) -> None:
        """Called by the planner after ``log``, with the Outcome of the solve."""
        request = self._ctx.request
        assert outcome.objective is not None, "a plan has an objective"
        self._reports[self._sku] = PlanReport(
            sku=self._sku,
            request_id=request.request_id,
            request_hash=request.request_hash,
            objective=objective,
            status=outcome.status.value,
            milliseconds=milliseconds(outcome.objective),
            bound=_milliseconds(outcome.bound),
            certified_bound=_milliseconds(outcome.certified_bound),
            gap=outcome.gap,
            certified_gap=certified_gap(outcome),
            work=_work(outcome),
            held_up_by=held_up_by,
        )


def _milliseconds(bound: int | None) -> float | None:
    return None if bound is None else milliseconds(bound)


def _work(outcome: Outcome) -> float | None:
    counted = outcome.settings.get("work_limit") is not None  # the trace is in units of work then
    return outcome.trace[-1].seconds if counted and outcome.trace else None
