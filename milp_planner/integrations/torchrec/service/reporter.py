"""TorchRec's ``PlanReporter`` with what its statistics do not know: bound, gap, guilty rank."""

from __future__ import annotations

from dataclasses import dataclass

from torchrec.distributed.planner.reporter import DefaultPlanReporter
from torchrec.distributed.planner.stats import NoopEmbeddingStats
from torchrec.distributed.planner.types import PlannerSessionContext, Stats

from formulations import Outcome
from milp_planner.integrations.torchrec.rating import RatingName, milliseconds
from milp_planner.integrations.torchrec.summary import Guilty


@dataclass(frozen=True)
class PlanReport:
    """How good the plan of one SKU is.

    Attributes
    ----------
    sku, request_id, request_hash : str
        As in TorchRec's result.
    objective : {"busiest_rank", "critical_path"}
    status : str
        ``optimal`` or ``feasible``.
    milliseconds : float
    bound : float or None
        Milliseconds that no plan can beat.
    gap : float or None
    held_up_by : Guilty or None
    """

    sku: str
    request_id: str
    request_hash: str
    objective: RatingName
    status: str
    milliseconds: float
    bound: float | None
    gap: float | None
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
        Of plans that this project's planner made; other planners know no bound.
    """

    def __init__(self, console: bool = True) -> None:
        self._console = console
        self.reports: dict[str, PlanReport] = {}

    def build_stats(self, ctx: PlannerSessionContext, sku: str) -> list[Stats]:
        """Sinks for the SKU planned next."""
        own = super().build_stats(ctx, sku) if self._console else []
        return [*own, BoundStats(self.reports, ctx, sku)]


class BoundStats(NoopEmbeddingStats):
    """Keeps what :class:`~milp_planner.integrations.torchrec.MilpShardingPlanner` tells it."""

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
            bound=None if outcome.bound is None else milliseconds(outcome.bound),
            gap=outcome.gap,
            held_up_by=held_up_by,
        )
