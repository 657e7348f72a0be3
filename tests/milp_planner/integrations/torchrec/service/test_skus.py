"""One model on several SKUs, and where the SKUs' hardware comes from.

The reporter: TorchRec's statistics as always, then bound, gap and slowest rank of each SKU.
"""

import json
import logging
from dataclasses import replace
from typing import Any

import pytest
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner.dry_run import DryRunOrchestrator
from torchrec.distributed.planner.enumerators import EmbeddingEnumerator
from torchrec.distributed.planner.executor import DefaultPlannerExecutor
from torchrec.distributed.planner.reporter import PlanReporter
from torchrec.distributed.planner.stats import EmbeddingStats
from torchrec.distributed.planner.types import PlannerErrorType, PlannerVariant

from milp_planner.errors import BadInput
from milp_planner.inputs.cluster import Cluster
from milp_planner.integrations.torchrec.service import (
    MilpPlannerProvider,
    MilpPlanReporter,
    dry_run,
    hardware_of,
)
from scenarios.catalog import find_cluster

from ..models import META, QUICK, bag_sharders, bags, topology
from .requests import GIB, ROOMY, SKUS, context, inputs, request


def test_a_row_for_every_sku() -> None:
    """Two fit, one provably does not; figures are the reporter's, the exit code the worst."""
    found = dry_run(inputs(), SKUS, settings=QUICK)
    rows = {row.sku: row for row in found.rows}
    assert [row.fits for row in found.rows] == [True, True, False]
    assert found.exit_code == 1 and rows["wide"].exit_code == 0
    assert rows["wide"].report is not None and rows["tiny"].report is None
    assert rows["narrow"].hbm_capacity == 60 * 2**20
    assert 0 < rows["narrow"].hbm_bytes <= 60 * 2**20
    assert "short by" in (rows["tiny"].reason or "")
    assert not rows["tiny"].error


def test_a_row_about_every_run() -> None:
    """TorchRec's columns and ours, where a plan was found and where there is none."""
    given = inputs(module=bags([(1_000_000, 128)]), sharders=bag_sharders())
    skus = {name: SKUS[name] for name in ("wide", "tiny")}
    wide, tiny = dry_run(given, skus, settings=replace(QUICK, seed=7)).runs
    assert wide.success and wide.planner_error_type is None
    assert wide.critical_path_ms == pytest.approx(
        (wide.comms_critical_path_ms or 0) + (wide.comp_critical_path_ms or 0)
    )
    assert wide.max_rank_perf == pytest.approx(wide.objective_ms, rel=1e-5)
    assert wide.perf_imbalance_ratio == pytest.approx(
        (wide.max_rank_perf or 0) / (wide.mean_rank_perf or 1)
    )
    assert wide.certified_gap is not None and wide.bound_ms is not None
    assert json.loads(wide.resolved_hw_config or "")["hbm_cap_bytes"] == GIB
    assert (tiny.success, tiny.planner_error_type) == (False, "insufficient_storage")
    assert "short by" in (tiny.planner_failure_reason or "") and tiny.gap is None
    for row in (wide, tiny):
        assert row.seed == 7 and row.request_hash == wide.request_hash
        assert row.total_sparse_param_bytes == 512_000_000


def test_the_hash_of_a_model_is_torchrecs() -> None:
    """One table t of 1,000,000 x 128 with feature f has a hash that was computed by hand from the
    rule; another size has another."""

    def key(rows: int) -> str | None:
        table = EmbeddingBagConfig(
            name="t", num_embeddings=rows, embedding_dim=128, feature_names=["f"]
        )
        module = EmbeddingBagCollection(tables=[table], device=META)
        given = inputs(module=module, sharders=[EmbeddingBagCollectionSharder()])
        return dry_run(given, ROOMY, settings=QUICK).runs[0].model_arch_hash

    assert key(1_000_000) == "9da421e4eca5329d" != key(1_000_001)


def test_multiples_and_module_terms() -> None:
    """The dense multiple and the flag reach the request; a flag without a base is refused."""
    given = inputs(module=bags([(100, 64)]), storage_reservation=None)
    found = dry_run(
        given, ROOMY, base_bytes=2**20, parameter_multiplier=3.0, reserve_module_terms=False,
        settings=QUICK,
    )  # fmt: skip
    config = found.request.planner_config
    assert (config.parameter_multiplier, config.reserve_module_terms) == (3.0, False)
    with pytest.raises(BadInput, match="with a home SKU or base bytes"):
        dry_run(given, SKUS, reserve_module_terms=False)
    with pytest.raises(BadInput, match="finite non-negative"):
        dry_run(given, SKUS, parameter_multiplier=-1.0)


def test_ranks_and_pods_of_the_topology_unless_told() -> None:
    """World size, hosts and pods come from the topology; options replace the sizes."""
    small = bags([(100, 64)])
    pods = inputs(module=small, topology=topology(8, 2, pod_size=2))
    asked = dry_run(pods, ROOMY, settings=QUICK).request
    assert (asked.world_size, asked.local_world_size, asked.pod_size) == (8, 2, 2)
    given = inputs(module=small)
    asked = dry_run(given, ROOMY, world_size=2, local_world_size=1, settings=QUICK).request
    assert (asked.world_size, asked.local_world_size, asked.pod_size) == (2, 1, None)
    with pytest.raises(BadInput, match="divisible"):
        dry_run(given, ROOMY, world_size=5, local_world_size=2, settings=QUICK)


def test_a_mistake_is_no_verdict() -> None:
    """A failure for another reason than memory is an error and no verdict on whether it fits."""
    found = dry_run(inputs(), SKUS, settings=QUICK, ddr="host")
    assert {row.fits for row in found.rows} == {None}
    assert all(row.error and "rank, machine" in (row.reason or "") for row in found.rows)
    assert found.exit_code == 2


def test_an_enumerator_belongs_to_one_topology() -> None:
    """It prices with the bandwidths that it was made for, so it is refused."""
    with pytest.raises(BadInput, match="found an enumerator"):
        dry_run(inputs(enumerator=EmbeddingEnumerator(topology(4, 2), 64)), SKUS)


CLUSTER = {
    "name": "c", "profile": "h100", "machines": 2, "ranks_per_machine": 4, "hbm": "80GiB",
    "ddr": "1TiB", "interconnect": {"intra_machine": "450GB/s", "inter_machine": "50GB/s"},
}  # fmt: skip


def test_hardware_of_a_cluster() -> None:
    """Capacities per rank, DDR in equal shares, bandwidths in bytes per millisecond; without a
    network, the one inside a machine stands for both, unused; ranks that differ are refused."""
    found = hardware_of(Cluster.from_dict(CLUSTER))
    assert found.hbm_cap_bytes == 80 * GIB and found.ddr_cap_bytes == 256 * GIB
    assert found.intra_host_bw == pytest.approx(450e6)
    assert found.inter_host_bw == pytest.approx(50e6)
    assert found.hbm_mem_bw == pytest.approx(3.35e9, rel=0.05)
    alone = {**CLUSTER, "machines": 1, "interconnect": {"intra_machine": "450GB/s"}}
    found = hardware_of(Cluster.from_dict(alone))
    assert found.inter_host_bw == found.intra_host_bw
    with pytest.raises(BadInput, match="allowed as a SKU: equal ones"):
        hardware_of(find_cluster("mixed-h100"))


def sweep(reporter: MilpPlanReporter, variant: PlannerVariant) -> tuple[dict[str, Any], Any]:
    """The results of a dry run over all SKUs with a reporter, and its session."""
    asked = request(variant, skus=list(SKUS))
    ctx = context(asked)
    executor = DefaultPlannerExecutor(MilpPlannerProvider(SKUS, settings=QUICK))
    return dict(DryRunOrchestrator(executor, reporter).plan(asked, ctx)), ctx


def test_a_report_for_every_plan(caplog: pytest.LogCaptureFixture) -> None:
    """One plan per SKU; SKUs with a plan have bound, gap and rank, the one too small fails with the
    proof and has no report."""
    reporter = MilpPlanReporter()
    assert isinstance(reporter, PlanReporter)
    with caplog.at_level(logging.INFO):
        results, ctx = sweep(reporter, PlannerVariant.LINEAR_PROGRAMMING)
    assert [r.success for r in results.values()] == [True, True, False]
    assert results["wide"].max_rank_perf < results["narrow"].max_rank_perf
    assert results["tiny"].planner_error_type == PlannerErrorType.INSUFFICIENT_STORAGE
    assert "No plan exists" in results["tiny"].planner_failure_reason
    boards = {sku: board for (sku, _, _), board in ctx.topology_cache.items()}
    assert boards["narrow"].devices[0].storage.hbm == 60 * 2**20
    assert boards["wide"].hbm_mem_bw == 8e9
    assert set(reporter.reports) == {"wide", "narrow"}
    for sku, report in reporter.reports.items():
        result = results[sku]
        assert report.milliseconds == pytest.approx(result.max_rank_perf, rel=1e-6)
        assert report.request_hash == result.request_hash
        assert report.bound is not None and report.bound <= report.milliseconds
        assert report.gap == 0 and report.status == "optimal"
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
