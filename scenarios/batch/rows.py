"""Records of a batch as rows about planner runs, beside those of TorchRec's dry runs."""

from __future__ import annotations

from collections.abc import Iterable

from formulations.result.outcome import gap_between
from milp_planner.plans.run_rows import RunRow
from scenarios.batch.execute import FAILED
from scenarios.batch.store import Record

_PS_PER_MS = 1e9
_KINDS = {"infeasible": "strict_constraints", FAILED: "other"}
"""TorchRec's name of the error of a status; a solve that found nothing in its limit is other."""


def run_rows(records: Iterable[Record]) -> list[RunRow]:
    """One row for each record; its times are our prices, the critical path is ``step_time``."""
    return [_row(record) for record in records]


def _row(record: Record) -> RunRow:
    costs, error = record.get("objectives") or {}, record.get("error")
    found = record.get("objective") is not None
    busiest, total = costs.get("busiest_rank"), costs.get("total")
    mean = None if total is None else total / record["ranks"]
    reason = record.get("note") or None if error is None else f"{error['type']}: {error['message']}"
    bound, certified = record.get("bound"), record.get("certified_bound")
    seconds = record.get("seconds")
    return RunRow(
        sku=record["cluster"],
        success=found,
        planner_error_type=None if found else _KINDS.get(record["status"], "other"),
        planner_failure_reason=None if found else reason,
        request_hash=record["key"],
        critical_path_ms=_ms(costs.get("step_time")),
        max_rank_perf=_ms(busiest),
        mean_rank_perf=_ms(mean),
        perf_imbalance_ratio=busiest / mean if busiest and mean else None,
        solve_time_ms=None if seconds is None else 1000 * seconds,
        model=record["model"],
        objective=record["objective_kind"],
        status=record["status"],
        objective_ms=_ms(record.get("objective")),
        bound_ms=_ms(bound),
        certified_bound_ms=_ms(certified),
        gap=gap_between(record.get("objective"), bound),
        certified_gap=gap_between(record.get("objective"), certified),
        seed=record["seed"],
        version=record["versions"]["milp-planner"],
    )


def _ms(picoseconds: float | None) -> float | None:
    return None if picoseconds is None else picoseconds / _PS_PER_MS
