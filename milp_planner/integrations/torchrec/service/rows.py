"""One row about every SKU of a dry run, on success and on failure."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from torchrec.distributed.planner.dry_run import DryRunResult
from torchrec.distributed.planner.model_arch import model_arch_hash, total_sparse_param_bytes
from torchrec.distributed.planner.types import PlannerErrorType, PlannerSessionContext

from milp_planner.integrations.torchrec.service.reports import PlanReport
from milp_planner.plans.run_rows import RunRow


def run_row(
    result: DryRunResult, report: PlanReport | None, ctx: PlannerSessionContext, seed: int
) -> RunRow:
    """TorchRec's result for one SKU and what is known of its plan, as one row.

    An error that TorchRec does not name is ``other``, as in its own records.
    """
    arch, hardware = ctx.model_arch, ctx.hw_overrides_applied.get(result.sku)
    kind = result.planner_error_type or PlannerErrorType.OTHER
    told: dict[str, Any] = {} if report is None else _quality(report)
    return RunRow(
        sku=result.sku,
        success=result.success,
        planner_error_type=None if result.success else kind.value,
        planner_failure_reason=result.planner_failure_reason,
        request_id=result.request_id,
        request_hash=result.request_hash,
        model_arch_hash=None if arch is None else model_arch_hash(arch),
        total_sparse_param_bytes=None if arch is None else total_sparse_param_bytes(arch),
        critical_path_ms=result.critical_path_ms,
        comms_critical_path_ms=result.comms_critical_path_ms,
        comp_critical_path_ms=result.comp_critical_path_ms,
        max_rank_perf=result.max_rank_perf,
        mean_rank_perf=result.mean_rank_perf,
        perf_imbalance_ratio=result.perf_imbalance_ratio,
        estimated_max_hbm_bytes=result.estimated_max_hbm_bytes if result.success else None,
        estimated_max_ddr_bytes=result.estimated_max_ddr_bytes if result.success else None,
        solve_time_ms=result.solve_time_ms,
        resolved_hw_config=None if hardware is None else json.dumps(asdict(hardware)),
        seed=seed,
        **told,
    )


def _quality(report: PlanReport) -> dict[str, Any]:
    return {
        "objective": report.objective,
        "status": report.status,
        "objective_ms": report.milliseconds,
        "bound_ms": report.bound,
        "certified_bound_ms": report.certified_bound,
        "gap": report.gap,
        "certified_gap": report.certified_gap,
        "work": report.work,
    }
