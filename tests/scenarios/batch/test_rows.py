"""Records of a batch as rows about runs."""

from __future__ import annotations

import pytest

from scenarios.batch.rows import run_rows
from tests.scenarios.batch.small import record


def test_a_plan_and_its_quality() -> None:
    """Costs in picoseconds become milliseconds; the mean is over ranks, gaps are of both bounds."""
    costs = {"total": 8 * 10**9, "busiest_rank": 4 * 10**9, "step_time": 5 * 10**9}
    given = record(
        "a", objectives=costs, objective=5 * 10**9, bound=4 * 10**9, certified_bound=10**9, ranks=4,
        seconds=2.0, seed=9,
    )  # fmt: skip
    row = run_rows([given])[0]
    assert (row.success, row.planner_error_type) == (True, None)
    assert (row.critical_path_ms, row.max_rank_perf, row.mean_rank_perf) == (5.0, 4.0, 2.0)
    assert (row.perf_imbalance_ratio, row.solve_time_ms, row.seed) == (2.0, 2000.0, 9)
    assert row.gap == pytest.approx(0.2) and row.certified_gap == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("status", "kind"),
    [("infeasible", "strict_constraints"), ("unknown", "other"), ("failed", "other")],
)
def test_what_failed_has_torchrecs_name(status: str, kind: str) -> None:
    """Without a plan there are no figures, but the kind of failure and the reason."""
    error = {"type": "LostProcess", "message": "ended"} if status == "failed" else None
    given = record("a", status=status, error=error, note="too small")
    given = {**given, "objective": None, "objectives": {}, "bound": None, "gap": None}
    row = run_rows([given])[0]
    assert (row.success, row.planner_error_type, row.max_rank_perf) == (False, kind, None)
    assert row.planner_failure_reason == ("LostProcess: ended" if error else "too small")
