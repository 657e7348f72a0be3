"""The reporter: TorchRec's statistics as always, then bound, gap and slowest rank of each SKU."""

from __future__ import annotations

import logging

import pytest
from torchrec.distributed.planner.dry_run import DryRunOrchestrator
from torchrec.distributed.planner.executor import DefaultPlannerExecutor
from torchrec.distributed.planner.reporter import PlanReporter
from torchrec.distributed.planner.stats import EmbeddingStats
from torchrec.distributed.planner.types import PlannerVariant

from milp_planner.integrations.torchrec.service import MilpPlannerProvider, MilpPlanReporter

from .requests import QUICK, SKUS, context, request


def sweep(reporter: MilpPlanReporter, variant: PlannerVariant) -> dict[str, object]:
    """A dry run over all SKUs with a reporter."""
    asked = request(variant, skus=list(SKUS))
    executor = DefaultPlannerExecutor(MilpPlannerProvider(SKUS, settings=QUICK))
    return dict(DryRunOrchestrator(executor, reporter).plan(asked, context(asked)))


def test_a_report_for_every_plan(caplog: pytest.LogCaptureFixture) -> None:
    """SKUs with a plan have bound, gap and rank, the one without has no report."""
    reporter = MilpPlanReporter()
    assert isinstance(reporter, PlanReporter)
    with caplog.at_level(logging.INFO):
        results = sweep(reporter, PlannerVariant.LINEAR_PROGRAMMING)
    assert set(reporter.reports) == {"wide", "narrow"}
    for sku, report in reporter.reports.items():
        result = results[sku]
        assert report.milliseconds == pytest.approx(result.max_rank_perf, rel=1e-6)  # type: ignore[attr-defined]
        assert report.request_hash == result.request_hash  # type: ignore[attr-defined]
        assert report.bound is not None and report.bound <= report.milliseconds
        assert report.gap == 0 and report.status == "optimal"
        assert report.held_up_by is not None
        assert report.held_up_by.milliseconds == pytest.approx(report.milliseconds)
    assert "--- Planner Statistics ---" in caplog.text
    assert "holds it up" in caplog.text


def test_torchrecs_own_planner_has_no_bound() -> None:
    """With TorchRec's variant its sinks work as before, and nothing is claimed."""
    reporter = MilpPlanReporter(console=False)
    sweep(reporter, PlannerVariant.OSS)
    assert reporter.reports == {}


def test_console_sink_is_torchrecs() -> None:
    """TorchRec's console statistics are kept, or left out if asked for."""
    ctx = context(request())
    loud, quiet = MilpPlanReporter().build_stats(ctx, "a"), MilpPlanReporter(False)
    assert isinstance(loud[0], EmbeddingStats)
    assert len(quiet.build_stats(ctx, "a")) == 1
