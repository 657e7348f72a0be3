"""MilpPlannerProvider in TorchRec's own orchestrators, unchanged.

Plans cached by request are used only if they are proved for the current question.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from torchrec.distributed.planner.api import ProductionPlannerOrchestrator
from torchrec.distributed.planner.dry_run import DryRunOrchestrator, SkuOverride, cli
from torchrec.distributed.planner.dry_run.protocols import CacheMetadata, PlanCache
from torchrec.distributed.planner.executor import DefaultPlannerExecutor
from torchrec.distributed.planner.planners import EmbeddingShardingPlanner
from torchrec.distributed.planner.provider import DefaultPlannerProvider, PlannerProvider
from torchrec.distributed.planner.types import (
    PlannerConfig,
    PlannerVariant,
    ProposerConfig,
)

from formulations.settings import STASHED
from milp_planner.errors import BadInput
from milp_planner.integrations.torchrec import MilpShardingPlanner, Stash
from milp_planner.integrations.torchrec.rating import OncePerSize
from milp_planner.integrations.torchrec.service import FolderPlans, MilpPlannerProvider, dry_run

from ..models import QUICK, bags, topology
from ..torchrec_checks import assert_torchrec_accepts
from .requests import GIB, LP, ROOMY, SHAPES, SKUS, context, inputs, request


def built(provider: MilpPlannerProvider, asked: Any) -> Any:
    """The planner that the provider builds for a request."""
    ctx = context(asked)
    return provider.build_planner(
        "x", topology=provider.build_topology("x", asked, ctx),
        storage_reservation=asked.storage_reservation, ctx=ctx,
    )  # fmt: skip


def produce(provider: MilpPlannerProvider, asked: Any) -> Any:
    """The result of TorchRec's production orchestrator for one SKU."""
    ctx = context(asked)
    flow = ProductionPlannerOrchestrator(DefaultPlannerExecutor(provider), "wide")
    return flow.plan(asked, ctx)["wide"]


def test_production_plan_is_ours() -> None:
    """The variant that TorchRec refuses gives a plan that it accepts and breaks down itself."""
    asked = request(hbm_gb=1.0, ddr_gb=4.0)
    with pytest.raises(NotImplementedError):
        ProductionPlannerOrchestrator(DefaultPlannerExecutor(), "wide").plan(asked, context(asked))
    made: list[MilpShardingPlanner] = []

    class Watched(MilpPlannerProvider):
        def build_planner(self, sku: str, **given: Any) -> Any:
            made.append(super().build_planner(sku, **given))  # type: ignore[arg-type]
            return made[-1]

    result = produce(Watched(settings=QUICK), asked)
    assert result.success and set(result.sharding_plan.plan[""]) == {
        f"t{i}" for i in range(len(SHAPES))
    }
    [planner] = made
    assert type(planner) is MilpShardingPlanner
    assert result.max_rank_perf == pytest.approx(planner.outcome.objective / 1e9, rel=1e-6)
    assert len(result.sharding_options) == len(SHAPES)
    assert 0 < result.estimated_max_hbm_bytes <= GIB
    reserved = asked.storage_reservation.reserve(
        planner._topology, asked.batch_size, asked.model, asked.sharders, None
    )
    assert_torchrec_accepts(planner.best_plan, reserved)


def test_never_worse_than_the_oss_variant() -> None:
    """For the same request, our variant's plan is not above TorchRec's."""
    ours, theirs = (
        produce(MilpPlannerProvider(settings=QUICK), request(variant, hbm_gb=0.06, ddr_gb=4.0))
        for variant in (LP, PlannerVariant.OSS)
    )
    assert ours.max_rank_perf <= theirs.max_rank_perf * (1 + 1e-6)


@pytest.mark.parametrize("variant", [PlannerVariant.OSS, PlannerVariant.UNSET])
def test_other_variants_are_left_to_torchrec(variant: PlannerVariant) -> None:
    """Open-source variants build TorchRec's planner; TorchRec still refuses Manifold."""
    provider = MilpPlannerProvider()
    assert isinstance(provider, PlannerProvider) and isinstance(provider, DefaultPlannerProvider)
    ctx = context(request(variant))
    provider.build_topology("any", ctx.request, ctx)
    assert ctx.hw_source["any"] == "request_caps"
    assert type(built(provider, request(variant))) is EmbeddingShardingPlanner
    with pytest.raises(NotImplementedError):
        built(provider, request(PlannerVariant.MANIFOLD))


def test_planner_gets_what_the_request_says() -> None:
    """Constraints, time limit, objective and TorchRec's own estimators reach the planner."""
    config = PlannerConfig(planner_variant=LP, timeout_seconds=7, pipeline_type="train_sparse_dist")
    provider = MilpPlannerProvider(objective="critical_path", ddr="machine")
    planner = built(provider, request(config=config))
    assert isinstance(planner, MilpShardingPlanner)
    assert planner._settings.time_limit == 7.0
    assert (planner._objective, planner._ddr) == ("critical_path", "machine")
    perf, storage = planner._enumerator._estimators
    assert isinstance(perf, OncePerSize)
    assert storage._pipeline_type.value == "train_sparse_dist"


def test_stashed_tables_are_balanced() -> None:
    """The balance of flagged tables reaches the planner, whose outcome reports it."""
    module = bags(SHAPES)
    for config in module.embedding_bag_configs()[:2]:
        config.stash_weights = True
    asked = request(model=module, hbm_gb=1.0, ddr_gb=4.0)
    planner = built(MilpPlannerProvider(settings=QUICK, stash=Stash(balance=True)), asked)
    planner.plan(asked.model, asked.sharders)
    assert isinstance(planner, MilpShardingPlanner) and planner.outcome is not None
    (goal,) = [goal for goal in planner.outcome.goals if goal.goal == STASHED]
    flagged = sum(rows * columns * 4 for rows, columns in SHAPES[:2])
    assert flagged / 4 <= goal.value <= flagged


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("proposer_type", "greedy"),
        ("partitioner_type", "greedy_perf"),
        ("performance_model", "storage"),
        ("bwd_compute_multiplier", 3.0),
        ("use_hardware_based_bandwidth", True),
        ("proposer_config", ProposerConfig(kind="greedy")),
    ],
)
def test_what_it_does_not_read_is_refused(field: str, value: object) -> None:
    """A configured proposer or partitioner would be ignored, so a sentence refuses it."""
    asked = request(config=PlannerConfig(planner_variant=LP, **{field: value}))  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=rf"does not read: {field}"):
        produce(MilpPlannerProvider(), asked)


def test_hardware_bandwidth_is_read_where_hardware_is_known() -> None:
    """A provider of known hardware already does what ``use_hardware_based_bandwidth`` asks."""
    asked = request(config=PlannerConfig(planner_variant=LP, use_hardware_based_bandwidth=True))
    assert produce(MilpPlannerProvider(SKUS, settings=QUICK), asked).success


def test_overrides_come_before_hardware_and_caps_before_both() -> None:
    """``per_sku_overrides`` and the request's ``hbm_gb`` are read, in TorchRec's units."""
    override = SkuOverride(hbm_gb=2.0, ddr_gb=3.0, intra_host_bw=10.0, inter_host_bw=1.0)
    asked = request(skus=["wide"], per_sku_overrides={"wide": override})
    for provider in (MilpPlannerProvider(SKUS), MilpPlannerProvider()):
        board = provider.build_topology("wide", asked, context(asked))
        assert board.devices[0].storage.hbm == 2 * GIB
        assert board.devices[0].storage.ddr == 3 * GIB
        assert board.intra_host_bw == pytest.approx(10 * GIB / 1000)
        assert board.inter_host_bw == pytest.approx(GIB / 1000)
    capped = request(skus=["wide"], per_sku_overrides={"wide": override}, hbm_gb=5.0)
    board = MilpPlannerProvider(SKUS).build_topology("wide", capped, context(capped))
    assert board.devices[0].storage.hbm == 5 * GIB


def test_pods_reach_the_topology() -> None:
    """``pod_size`` hosts form one group for machine-bound shards, with and without hardware."""
    asked = request(pod_size=2)
    for provider in (MilpPlannerProvider(SKUS), MilpPlannerProvider()):
        board = provider.build_topology("wide", asked, context(asked))
        assert board.intra_group_size == 4
    assert produce(MilpPlannerProvider(SKUS, settings=QUICK), asked).success


def test_unknown_sku_is_a_sentence() -> None:
    """An undescribed SKU is refused with the nearest name."""
    with pytest.raises(BadInput, match="did you mean wide"):
        asked = request()
        MilpPlannerProvider(SKUS).build_topology("wid", asked, context(asked))


def test_torchrecs_own_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    """TorchRec's dry-run CLI takes our variant if its orchestrator has ours."""
    flow = DryRunOrchestrator(DefaultPlannerExecutor(MilpPlannerProvider(settings=QUICK)))
    given = ["--sku-list", "A,B", "--world-size", "2", "--planner-variant", "linear_programming",
             "--num-tables", "3", "--num-embeddings", "1000"]  # fmt: skip
    assert cli.main(given, flow) == 0
    assert "[OK] A" in capsys.readouterr().out
    assert cli.main(given) == 1


NEAR = replace(QUICK, gap=0.5)


class InMemory:
    """A cache that is not ours."""

    def __init__(self) -> None:
        self.kept: dict[str, tuple[Any, CacheMetadata]] = {}

    def get(self, request_fingerprint: str) -> tuple[Any, CacheMetadata] | None:
        return self.kept.get(request_fingerprint)

    def put(self, request_fingerprint: str, plan: Any, metadata: CacheMetadata) -> None:
        self.kept[request_fingerprint] = plan, metadata


def solving(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Counts solves from here on."""
    from milp_planner.integrations.torchrec import stash

    counted = Mock(side_effect=stash.solve)
    monkeypatch.setattr(stash, "solve", counted)
    return counted


@pytest.mark.parametrize("kind", ["folder", "memory"])
def test_a_second_dry_run_solves_nothing(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From our folder or any other cache of the protocol come the same plan, status and bound."""
    plans: Any = FolderPlans(tmp_path) if kind == "folder" else InMemory()
    assert isinstance(plans, PlanCache)
    first = dry_run(inputs(), ROOMY, settings=NEAR, plans=plans)
    solves = solving(monkeypatch)
    again = dry_run(inputs(), ROOMY, settings=NEAR, plans=plans)
    assert solves.call_count == 0
    one, other = (found.results["wide"] for found in (first, again))
    assert str(one.sharding_plan) == str(other.sharding_plan)
    reports = [found.rows[0].report for found in (first, again)]
    assert reports[0].status == reports[1].status
    assert reports[0].bound == reports[1].bound
    stored = plans.get(other.request_fingerprint)
    assert stored is not None and str(stored[0]) == str(one.sharding_plan)
    assert (stored[1].sku, stored[1].world_size) == ("wide", 4)


def test_another_model_under_the_same_fingerprint_is_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """TorchRec's fingerprint ignores the model; the instance does not, and the log says so."""
    plans = FolderPlans(tmp_path)
    first = dry_run(inputs(), ROOMY, settings=NEAR, plans=plans)
    solves = solving(monkeypatch)
    larger = inputs(module=bags([(rows + 1, dim) for rows, dim in SHAPES]))
    again = dry_run(larger, ROOMY, settings=NEAR, plans=plans)
    one, other = (found.results["wide"].request_fingerprint for found in (first, again))
    assert one == other and solves.call_count == 1
    assert "is for another model, cluster or version" in caplog.text


def test_a_plan_without_a_proof_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan from another planner, or one that was changed, is planned anew and replaced."""
    plans = InMemory()
    dry_run(inputs(), ROOMY, settings=NEAR, plans=plans)
    ((key, (plan, metadata)),) = plans.kept.items()
    ((name, text),) = metadata.extra.items()
    solves = solving(monkeypatch)
    for count, extra in enumerate(({}, {name: text[:-8]}, {name: "no base64"}), 1):
        plans.put(key, plan, CacheMetadata("somebody", "wide", 4, extra))
        dry_run(inputs(), ROOMY, settings=NEAR, plans=plans)
        assert solves.call_count == count
        assert plans.kept[key][1].created_by == "milp-planner"


def test_an_empty_folder_knows_nothing(tmp_path: Path) -> None:
    """Neither does a folder whose file was cut off."""
    plans = FolderPlans(tmp_path)
    assert plans.get("anything") is None
    dry_run(inputs(topology=topology(4, 2)), ROOMY, settings=NEAR, plans=plans)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    found = dry_run(inputs(), ROOMY, settings=NEAR).results["wide"]
    assert plans.get(found.request_fingerprint) is None
