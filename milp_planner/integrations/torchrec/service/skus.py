"""One model on several SKUs: TorchRec's dry run with this project's provider in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torchrec.distributed.planner.dry_run import DryRunOrchestrator, DryRunRequest, DryRunResult
from torchrec.distributed.planner.executor import DefaultPlannerExecutor
from torchrec.distributed.planner.reporter import DefaultPlanReporter
from torchrec.distributed.planner.stats import NoopEmbeddingStats
from torchrec.distributed.planner.types import (
    HardwareConfig,
    PlannerConfig,
    PlannerErrorType,
    PlannerSessionContext,
    PlannerVariant,
    Stats,
    StorageReservationPolicy,
    TrainingFramework,
)

from formulations import Outcome
from milp_planner.errors import BadInput
from milp_planner.integrations.torchrec.rating import Guilty, RatingName, milliseconds
from milp_planner.integrations.torchrec.reference import TorchRecInputs
from milp_planner.integrations.torchrec.service.provider import MilpPlannerProvider


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
            bound=None if outcome.bound is None else milliseconds(outcome.bound),
            gap=outcome.gap,
            held_up_by=held_up_by,
        )


OK, FALLS_SHORT, BAD_INPUT, NO_PLAN = 0, 1, 2, 3


@dataclass(frozen=True)
class SkuRow:
    """Result of the dry run for one SKU."""

    sku: str
    fits: bool | None
    """None: an error, or neither a plan nor a proof that there is none."""
    reason: str | None
    """Why there is no plan."""
    error: bool
    """Whether planning failed for another reason than memory and constraints."""
    hbm_bytes: int
    hbm_capacity: int
    """Tables on the fullest rank, and a rank's HBM before reservations."""
    report: PlanReport | None
    """Step time, bound, gap and the rank that holds the plan up."""

    @property
    def exit_code(self) -> int:
        """Exit code of the command line."""
        if self.error:
            return BAD_INPUT
        return {True: OK, False: FALLS_SHORT, None: NO_PLAN}[self.fits]


@dataclass(frozen=True)
class DryRun:
    """TorchRec's results by SKU, and the rows made of them."""

    request: DryRunRequest
    results: Mapping[str, DryRunResult]
    """Mapping of SKU to DryRunResult."""
    rows: tuple[SkuRow, ...]
    """In the requested order."""

    @property
    def exit_code(self) -> int:
        """1 if a SKU falls short; otherwise the worst code of undecided SKUs."""
        codes = {row.exit_code for row in self.rows}
        return next((code for code in (FALLS_SHORT, BAD_INPUT, NO_PLAN) if code in codes), OK)


def dry_run(
    inputs: TorchRecInputs,
    hardware: Mapping[str, HardwareConfig],
    *,
    world_size: int | None = None,
    local_world_size: int | None = None,
    home_sku: str | None = None,
    base_bytes: int | None = None,
    **planner: Any,
) -> DryRun:
    """Plan a model on every SKU, without a GPU, through TorchRec's ``DryRunOrchestrator``.

    Parameters
    ----------
    inputs : TorchRecInputs
        Their topology gives ranks, ranks per host, pods and the device; the SKU gives the rest.
    world_size, local_world_size : int, optional
        These replace the topology's.
    home_sku : str, optional
        Every SKU reserves what this one would (``SKUAwareStorageReservation``): 15% of its HBM, 6
        times the dense parameters, 20 times the ids of a batch.
    base_bytes : int, optional
        These replace the first two.
    **planner
        As in :class:`MilpPlannerProvider`.

    Raises
    ------
    BadInput
        For an enumerator of the user's own (it is made for one topology), and sizes that TorchRec
        refuses.
    """
    if inputs.enumerator is not None:
        raise BadInput(
            "dry run: found an enumerator, which is made for one topology; allowed: none, so that "
            "every SKU gets its own"
        )
    config = _config(inputs, home_sku, base_bytes)
    request = _request(inputs, list(hardware), world_size, local_world_size, config)
    ctx = PlannerSessionContext(request=request, results={})
    provider = MilpPlannerProvider(hardware, **planner)
    reporter = MilpPlanReporter(console=False)
    orchestrator = DryRunOrchestrator(DefaultPlannerExecutor(provider), reporter)
    results = orchestrator.plan(request, ctx)
    rows = [_row(result, reporter.reports.get(sku), ctx) for sku, result in results.items()]
    return DryRun(request, results, tuple(rows))


def _config(inputs: TorchRecInputs, home: str | None, base: int | None) -> PlannerConfig:
    """This planner's variant, with the SKU-aware reservation if requested."""
    if home is None and base is None:
        return PlannerConfig(planner_variant=PlannerVariant.LINEAR_PROGRAMMING)
    if inputs.storage_reservation is not None:
        raise BadInput(
            "dry run: found a storage_reservation and a home SKU or base bytes; allowed: either"
        )
    return PlannerConfig(
        planner_variant=PlannerVariant.LINEAR_PROGRAMMING,
        storage_reservation_policy=StorageReservationPolicy.SKU_AWARE,
        home_sku=home,
        model_base_bytes=base,
    )


def _request(
    inputs: TorchRecInputs,
    skus: list[str],
    world: int | None,
    local: int | None,
    config: PlannerConfig,
) -> DryRunRequest:
    topology = inputs.topology
    hosts_a_pod = topology.intra_group_size // topology.local_world_size
    world = world or topology.world_size
    try:
        return DryRunRequest(
            model=inputs.module,
            sharders=inputs.all_sharders(),
            sku_list=skus,
            training_framework=TrainingFramework.APF,  # required by TorchRec, but unused
            world_size=world,
            local_world_size=local or min(world, topology.local_world_size),
            batch_size=inputs.batch_size or 512,
            pod_size=hosts_a_pod if hosts_a_pod > 1 else None,
            storage_reservation=inputs.storage_reservation,
            constraints=inputs.constraints,
            compute_device=topology.compute_device,
            planner_config=config,
        )
    except ValueError as error:
        raise BadInput(f"dry run: {error}") from None


def _row(result: DryRunResult, report: PlanReport | None, ctx: PlannerSessionContext) -> SkuRow:
    proved_short = (PlannerErrorType.INSUFFICIENT_STORAGE, PlannerErrorType.STRICT_CONSTRAINTS)
    fits: bool | None = True if result.success else None
    if result.planner_error_type in proved_short:
        fits = False
    # The executor times every call of a planner, even one that finds no plan.
    error = not result.success and result.solve_time_ms is None
    devices = [
        device.storage.hbm
        for (sku, _, _), topology in ctx.topology_cache.items()
        if sku == result.sku
        for device in topology.devices
    ]
    return SkuRow(
        sku=result.sku,
        fits=fits,
        reason=result.planner_failure_reason,
        error=error,
        hbm_bytes=result.estimated_max_hbm_bytes,
        hbm_capacity=max(devices, default=0),
        report=report,
    )
