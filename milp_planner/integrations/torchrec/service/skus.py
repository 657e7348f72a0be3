"""One model on several SKUs: TorchRec's dry run with this project's provider in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from torchrec.distributed.planner.dry_run import DryRunOrchestrator, DryRunRequest, DryRunResult
from torchrec.distributed.planner.executor import DefaultPlannerExecutor
from torchrec.distributed.planner.model_arch import model_arch_hash, total_sparse_param_bytes
from torchrec.distributed.planner.types import (
    HardwareConfig,
    PlannerConfig,
    PlannerErrorType,
    PlannerSessionContext,
    PlannerVariant,
    StorageReservationPolicy,
    TrainingFramework,
)

from formulations import Settings
from milp_planner.errors import BadInput
from milp_planner.integrations.torchrec.reference import TorchRecInputs
from milp_planner.integrations.torchrec.service.provider import MilpPlannerProvider
from milp_planner.integrations.torchrec.service.reports import MilpPlanReporter, PlanReport
from milp_planner.integrations.torchrec.service.reservation import MilpPlannerConfig
from milp_planner.plans.run_rows import RunRow

OK, FALLS_SHORT, BAD_INPUT, NO_PLAN = 0, 1, 2, 3
_SAME = (
    "planner_failure_reason", "request_id", "request_hash", "critical_path_ms",
    "comms_critical_path_ms", "comp_critical_path_ms", "max_rank_perf", "mean_rank_perf",
    "perf_imbalance_ratio", "solve_time_ms",
)  # fmt: skip
"""Fields of TorchRec's result that a row has as they are."""


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
    runs: tuple[RunRow, ...]
    """The same with all that is known, for a file of runs."""

    @property
    def exit_code(self) -> int:
        """1 if a SKU falls short; otherwise the worst code of undecided SKUs."""
        codes = {row.exit_code for row in self.rows}
        return next((code for code in (FALLS_SHORT, BAD_INPUT, NO_PLAN) if code in codes), OK)


def dry_run(  # noqa: PLR0913 (what TorchRec's request holds)
    inputs: TorchRecInputs,
    hardware: Mapping[str, HardwareConfig],
    *,
    world_size: int | None = None,
    local_world_size: int | None = None,
    home_sku: str | None = None,
    base_bytes: int | None = None,
    parameter_multiplier: float | None = None,
    reserve_module_terms: bool = True,
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
    parameter_multiplier : float, optional
        Replaces the 6.
    reserve_module_terms : bool
        With a home SKU or base bytes: whether dense parameters and ids count as well.
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
    config = _config(inputs, home_sku, base_bytes, parameter_multiplier, reserve_module_terms)
    request = _request(inputs, list(hardware), world_size, local_world_size, config)
    ctx = PlannerSessionContext(request=request, results={})
    provider = MilpPlannerProvider(hardware, **planner)
    reporter = MilpPlanReporter(console=False)
    orchestrator = DryRunOrchestrator(DefaultPlannerExecutor(provider), reporter)
    results = orchestrator.plan(request, ctx)
    reports, seed = reporter.reports, (planner.get("settings") or Settings()).seed
    rows = [_row(result, reports.get(sku), ctx) for sku, result in results.items()]
    runs = [_run_row(result, reports.get(sku), ctx, seed) for sku, result in results.items()]
    return DryRun(request, results, tuple(rows), tuple(runs))


def _config(
    inputs: TorchRecInputs, home: str | None, base: int | None, multiple: float | None, terms: bool
) -> PlannerConfig:
    """This planner's variant, with the SKU-aware reservation if requested."""
    aware = home is not None or base is not None
    if not terms and not aware:
        raise BadInput(
            "dry run: found reserve_module_terms=False; allowed: with a home SKU or base bytes"
        )
    if (aware or multiple is not None) and inputs.storage_reservation is not None:
        raise BadInput(
            "dry run: found a storage_reservation and a home SKU, base bytes or a multiple of the "
            "dense parameters; allowed: either"
        )
    policy = StorageReservationPolicy.SKU_AWARE if aware else StorageReservationPolicy.UNSET
    try:
        return MilpPlannerConfig(
            planner_variant=PlannerVariant.LINEAR_PROGRAMMING,
            storage_reservation_policy=policy,
            home_sku=home,
            model_base_bytes=base,
            parameter_multiplier=multiple,
            reserve_module_terms=terms,
        )
    except ValueError as error:
        raise BadInput(f"dry run: {error}") from None


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


def _run_row(
    result: DryRunResult, report: PlanReport | None, ctx: PlannerSessionContext, seed: int
) -> RunRow:
    """TorchRec's result for one SKU and what is known of its plan, as one row.

    An error that TorchRec does not name is ``other``, as in its own records.
    """
    arch, hardware = ctx.model_arch, ctx.hw_overrides_applied.get(result.sku)
    kind = result.planner_error_type or PlannerErrorType.OTHER
    told: dict[str, Any] = {name: getattr(result, name) for name in _SAME}
    if report is not None:
        same = ("objective", "status", "gap", "certified_gap", "work")
        told |= {name: getattr(report, name) for name in same}
        told |= {
            "objective_ms": report.milliseconds, "bound_ms": report.bound,
            "certified_bound_ms": report.certified_bound,
        }  # fmt: skip
    return RunRow(
        sku=result.sku,
        success=result.success,
        planner_error_type=None if result.success else kind.value,
        model_arch_hash=None if arch is None else model_arch_hash(arch),
        total_sparse_param_bytes=None if arch is None else total_sparse_param_bytes(arch),
        estimated_max_hbm_bytes=result.estimated_max_hbm_bytes if result.success else None,
        estimated_max_ddr_bytes=result.estimated_max_ddr_bytes if result.success else None,
        resolved_hw_config=None if hardware is None else json.dumps(asdict(hardware)),
        seed=seed,
        **told,
    )
