"""MilpShardingPlanner: TorchRec accepts its plans and rates them alike; they have a bound."""

import logging
import pickle
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from torch import nn
from torchrec.distributed.planner.perf_models import NoopPerfModel, NoopStorageModel
from torchrec.distributed.planner.proposers import GreedyProposer
from torchrec.distributed.planner.types import (
    ParameterConstraints,
    PlannerError,
    PlannerErrorType,
    Storage,
)
from torchrec.distributed.types import CacheParams

from formulations import Settings, Status
from milp_planner.errors import BadInput
from milp_planner.integrations.torchrec import Lift, MilpShardingPlanner, NoPlan
from milp_planner.integrations.torchrec.stash import solve_balanced

from .models import (
    GIB,
    Case,
    FixedEnumerator,
    Mixed,
    bags,
    bare_option,
    planned_for,
    planner_for,
    random_case,
    sequences,
    stock_for,
    topology,
)
from .torchrec_checks import assert_torchrec_accepts

FUZZ = range(100, 116)
WHOLE = ParameterConstraints(sharding_types=["table_wise"], compute_kernels=["fused"])


@pytest.mark.parametrize("seed", FUZZ)
def test_fuzz_against_torchrec(seed: int) -> None:
    """Random models: accepted by TorchRec's checks, rated alike to 1e-6, never worse than its own.

    The models mix pooled, weighted and unpooled collections in several modules, column splits,
    constraints, and tables that may only be data parallel. If we say that no plan exists,
    TorchRec's default planner finds none either.
    """
    case = random_case(seed)
    planner, stock = planner_for(case), stock_for(case)
    try:
        plan = planner.plan(case.module, case.sharders)
    except NoPlan as error:
        assert error.outcome is not None and error.outcome.status == Status.INFEASIBLE
        with pytest.raises(PlannerError):
            stock.plan(case.module, case.sharders)
        return
    outcome, best = planner.outcome, planner.best_plan
    assert_torchrec_accepts(best, case.reserved())
    rating = NoopPerfModel(case.topology).rate(best)
    assert outcome.objective == pytest.approx(rating * 1e9, rel=1e-6)
    assert planner.rating == pytest.approx(rating)
    for option in best:
        assert plan.plan[option.path][option.name].ranks == [s.rank for s in option.shards]
    try:
        stock.plan(case.module, case.sharders)
    except PlannerError:
        return
    theirs = NoopPerfModel(case.topology).rate(stock._best_plan)
    assert rating <= theirs * (1 + 1e-6)
    assert outcome.bound is not None and outcome.bound <= theirs * 1e9 * (1 + 1e-6)


def test_the_fuzz_covers_what_users_have() -> None:
    """Every sharding type and kernel, weighted and unpooled features, several modules, codecs."""
    cases = [random_case(seed) for seed in FUZZ]
    options = [
        option
        for case in cases
        for option in planner_for(case)._enumerator.enumerate(case.module, case.sharders)
    ]
    kinds = {option.sharding_type for option in options}
    assert kinds == {
        "data_parallel", "table_wise", "column_wise", "row_wise", "table_row_wise",
        "table_column_wise", "grid_shard",
    }  # fmt: skip
    assert {"dense", "fused", "fused_uvm", "fused_uvm_caching"} <= {
        o.compute_kernel for o in options
    }
    assert {o.is_weighted for o in options} >= {True, False}
    assert {o.is_pooled for o in options} == {True, False}
    assert any(len(case.module.sparse) > 1 for case in cases)
    limits = [limit for case in cases for limit in (case.constraints or {}).values()]
    assert any(limit.sharding_types == ["data_parallel"] for limit in limits)
    assert any(limit.min_partition for limit in limits)
    assert any(limit.cache_params for limit in limits)
    assert any(case.sharders[0].fused_params for case in cases)
    assert any(case.sharders[0].qcomm_codecs_registry for case in cases)
    assert any(case.topology._custom_topology_data for case in cases)


def test_smallest_case_that_stock_partitioners_fail() -> None:
    """Sizes [4, 4, 6, 6, 4] on two ranks of 12.6 fit as {6, 6} and {4, 4, 4}."""
    options = [bare_option(f"t{i}", [size]) for i, size in enumerate((40, 40, 60, 60, 40))]
    case = Case(nn.Module(), topology(2, hbm=126), reserve=0.0)
    planner = planner_for(case, enumerator=FixedEnumerator(options))
    with pytest.raises(PlannerError):
        stock_for(case, enumerator=FixedEnumerator(options)).plan(case.module, [])
    planner.plan(case.module, [])
    sides = [{o.name for o in planner.best_plan if o.shards[0].rank == rank} for rank in (0, 1)]
    assert sorted(sides, key=len) == [{"t2", "t3"}, {"t0", "t1", "t4"}]


def test_infeasible_is_torchrecs_error_with_our_shortfall() -> None:
    """Too little HBM everywhere: the insufficient_storage error says how much is missing."""
    limits = dict.fromkeys(("t0", "t1", "t2"), WHOLE)
    case = Case(bags([(1_000_000, 64)] * 3), topology(2, hbm=GIB // 4, ddr=0), limits, 16, 0.0)
    with pytest.raises(PlannerError) as caught:
        planner_for(case).plan(case.module, case.sharders)
    error = caught.value
    assert isinstance(error, NoPlan)
    assert error.error_type == PlannerErrorType.INSUFFICIENT_STORAGE
    assert "certified infeasible" in str(error) and "short by" in str(error)
    hbm = error.shortfalls[0]
    shard = 1_000_000 * 64 * 4
    assert hbm.tier == "hbm" and hbm.capacity == GIB // 2
    assert 3 * shard <= hbm.needed < 3.1 * shard
    assert hbm.short_by == hbm.needed - hbm.capacity
    # Two of the three tables must share a rank.
    assert hbm.least is not None and hbm.least.proved
    assert 2 * shard <= (hbm.least.least or 0) < 2.1 * shard


def test_error_survives_pickling() -> None:
    """Failures travel between processes with type, shortfall and message."""
    error = NoPlan("no", PlannerErrorType.STRICT_CONSTRAINTS)
    back = pickle.loads(pickle.dumps(error))
    assert (str(back), back.error_type) == ("no", PlannerErrorType.STRICT_CONSTRAINTS)


def test_pooled_ddr_finds_what_per_rank_ddr_forbids() -> None:
    """A table larger than one rank's DDR fits if the host's DDR is pooled."""
    limits = {"t0": replace(WHOLE, compute_kernels=["fused_uvm"])}
    board = topology(2, hbm=GIB // 8, ddr=200 * 2**20)
    case = Case(bags([(1_000_000, 64)]), board, limits, 16, 0.0)
    with pytest.raises(NoPlan):
        planner_for(case).plan(case.module, case.sharders)
    plan = planner_for(case, ddr="machine").plan(case.module, case.sharders)
    assert plan.plan[""]["t0"].compute_kernel == "fused_uvm"


def test_lifting_the_search_space_never_loses() -> None:
    """With more widths and load factors, the optimum is at most that of TorchRec's search space."""
    case = Case(bags([(300_000, 256), (200_000, 128)]), topology(4, 2, hbm=300 * 2**20), None, 512)
    plain, lifted = planned_for(case), planned_for(case, lift=Lift("all", [0.1, 0.3, 0.6]))
    assert plain.outcome.status == lifted.outcome.status == Status.OPTIMAL
    assert (lifted.outcome.objective or 0) < (plain.outcome.objective or 0)


@pytest.mark.parametrize("lifted", [False, True])
def test_tables_that_share_a_cache_have_one_load_factor(lifted: bool) -> None:
    """FBGEMM's cache of a kernel has their mean: of three tables on two ranks the large one would
    be alone, but of the other two one has another factor, or could have."""
    factors = (0.3, 0.3, None if lifted else 0.5)
    cached = replace(WHOLE, compute_kernels=["fused_uvm_caching"])
    limits = {
        f"t{i}": replace(cached, cache_params=CacheParams(load_factor=factor))
        for i, factor in enumerate(factors)
    }
    tables = bags([(60_000, 1024), (300_000, 128), (300_000, 128)])
    case = Case(tables, topology(2, hbm=135_000_000), limits, 64, reserve=0.0)
    lift = Lift(load_factors=[0.5]) if lifted else None

    def mixed(fusion: str) -> bool:
        planner = planner_for(case, fusion=fusion, lift=lift)
        found: Any = planner.plan(case.module, case.sharders).plan[""]
        own = {(t.ranks[0], t.cache_params.load_factor) for t in found.values()}
        return len(own) > len({rank for rank, _ in own})

    assert mixed("free") and not mixed("honoured")


def test_second_plan_on_the_same_object() -> None:
    """A planner can be used again, also for another model."""
    case = Case(bags([(1000, 64)]), topology(2))
    planner = planner_for(case)
    first = planner.plan(case.module, case.sharders)
    other = Mixed({"a": bags([(2000, 64)], "x"), "b": sequences([(500, 32)])})
    second = planner.plan(other, case.sharders)
    assert list(first.plan[""]) == ["t0"]
    assert sorted(second.plan) == ["sparse.a", "sparse.b"]


def test_nothing_to_shard() -> None:
    """A model without embedding tables gets an empty plan, as in TorchRec."""
    case = Case(nn.Linear(2, 2), topology(2))
    assert planner_for(case).plan(case.module, case.sharders).plan == {}


def test_prints_torchrecs_statistics_and_ours(caplog: pytest.LogCaptureFixture) -> None:
    """TorchRec's table as usual, then what is certified, objective, bound and gap."""
    case = Case(bags([(1000, 64)]), topology(2))
    with caplog.at_level(logging.INFO):
        planner_for(case, stats=None).plan(case.module, case.sharders)
    assert "--- Planner Statistics ---" in caplog.text
    assert "milp-planner: certified optimal (auto" in caplog.text
    assert " ms, gap 0.0000%" in caplog.text and "; bound" not in caplog.text


def test_callbacks_see_the_plan() -> None:
    """Callbacks get TorchRec's options with ranks and may change the plan."""
    case = Case(bags([(1000, 64)]), topology(2))
    note = Mock(side_effect=lambda options: options)
    planner_for(case, callbacks=[note]).plan(case.module, case.sharders)
    [option] = note.call_args.args[0]
    assert option.name == "t0" and option.shards[0].rank is not None


class StoredPlan:
    """A plan loader that holds a plan from an earlier planner."""

    def __init__(self, planner: MilpShardingPlanner, context: str | None) -> None:
        self.options, self.context = planner.best_plan, context

    def plan_context_hash(self) -> str | None:
        return self.context

    def load(self) -> dict[int, object]:
        return {option.storage_hash(): option for option in self.options}


def test_stored_plan_is_returned_unsolved() -> None:
    """A plan loader's plan is used unchanged if its context matches, and refused otherwise."""
    case = Case(bags([(1000, 64), (3000, 32)]), topology(2))
    first = planner_for(case)
    expected = first.plan(case.module, case.sharders)
    stored = StoredPlan(first, first.hash_planner_context_inputs_str())
    again = planner_for(case, plan_loader=stored)
    assert str(again.plan(case.module, case.sharders)) == str(expected)
    assert again.outcome is None
    stale = planner_for(case, plan_loader=StoredPlan(first, "another"))
    with pytest.raises(PlannerError, match="another context"):
        stale.plan(case.module, case.sharders)


def large(gib: int) -> Case:
    """A table of 76.3 GB on two ranks with this HBM, whole or not at all."""
    board = topology(2, hbm=gib * GIB, ddr=4096 * GIB)
    return Case(bags([(149_000_000, 128)]), board, {"t0": WHOLE})


def test_a_stored_plan_that_does_not_fit_is_refused() -> None:
    """TorchRec's context knows memory to 100 GiB: it cannot tell 141 from 80 GiB, but the plan does
    not fit."""
    roomy, tight = planner_for(large(141)), planner_for(large(80))
    roomy.plan(large(141).module, large(141).sharders)
    case = large(80)
    tight.prepare(case.module, case.sharders)
    context = tight.hash_planner_context_inputs_str()
    assert context == roomy.hash_planner_context_inputs_str()
    loaded = planner_for(case, plan_loader=StoredPlan(roomy, context))
    with pytest.raises(PlannerError, match=r"stored plan does not fit this cluster: hbm of rank"):
        loaded.plan(case.module, case.sharders)


def test_the_same_question_is_answered_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache gives the same plan without a solve; other capacities are another question."""
    case = Case(bags([(1000, 64), (3000, 32)]), topology(2))
    first = planner_for(case, cache=tmp_path)
    expected = first.plan(case.module, case.sharders)
    unsolved = Mock(side_effect=AssertionError("solved again"))
    monkeypatch.setattr("milp_planner.integrations.torchrec.stash.solve", unsolved)
    again = planner_for(case, cache=tmp_path)
    assert str(again.plan(case.module, case.sharders)) == str(expected)
    assert again.outcome is not None and again.outcome.status == Status.OPTIMAL
    for other in (Case(case.module, topology(2, hbm=9 * GIB)),
                  Case(bags([(1000, 64), (3001, 32)]), topology(2))):  # fmt: skip
        with pytest.raises(AssertionError, match="solved again"):
            planner_for(other, cache=tmp_path).plan(other.module, other.sharders)


def test_parts_it_cannot_honour_are_refused() -> None:
    """A proposer, a partitioner or another performance model would be ignored, so it is an
    error."""
    board = topology(2)
    with pytest.raises(BadInput, match="takes no proposer"):
        MilpShardingPlanner(board, proposer=GreedyProposer())
    with pytest.raises(BadInput, match="NoopPerfModel"):
        MilpShardingPlanner(board, performance_model=NoopStorageModel(board))
    with pytest.raises(BadInput, match="rank, machine"):
        MilpShardingPlanner(board, ddr="host")  # type: ignore[arg-type]


def test_timeout_is_the_time_limit() -> None:
    """TorchRec's ``timeout_seconds`` limits the solve."""
    case = Case(bags([(1000, 64)]), topology(2))
    planner = planned_for(case, timeout_seconds=3, settings=Settings(polish=False))
    assert planner.outcome is not None and planner.outcome.settings["time_limit"] == 3.0


def test_key_value_shards_sit_on_different_ranks() -> None:
    """A rank has one key-value store per table, so its column shards never share a rank."""
    option = bare_option("kv", [1, 1], "column_wise")
    option.compute_kernel = "key_value"
    for shard in option.shards:
        shard.storage = Storage(hbm=1, ddr=0, ssd=5)
    case = Case(nn.Module(), topology(2, ssd_cap=100), reserve=0.0)
    planner = planner_for(case, enumerator=FixedEnumerator([option]))
    planner.plan(case.module, [])
    assert planner.problem.instance.block(0).distinct
    assert [r.name for r in planner.problem.instance.resources] == ["hbm", "ddr", "ssd"]


def test_the_timeout_holds_for_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """TorchRec's enumeration counts too, and the outcome says where the seconds went."""
    case, left = random_case(FUZZ[0]), list[float]()
    planner = planner_for(case, settings=None, timeout_seconds=20)
    prepare = planner.prepare

    def slow(*inputs: Any) -> Any:
        time.sleep(0.4)
        return prepare(*inputs)

    def solved(instance: Any, formulation: str, settings: Settings, stash: Any) -> Any:
        left.append(settings.timed.left())
        return solve_balanced(instance, formulation, replace(settings, workers=1), stash)

    monkeypatch.setattr(planner, "prepare", slow)
    monkeypatch.setattr("milp_planner.integrations.torchrec.planner.solve_balanced", solved)
    planner.plan(case.module, case.sharders)
    assert left[0] <= 19.6 and planner.outcome is not None
    stages = planner.outcome.detail["stages"]
    assert isinstance(stages, dict) and stages["enumeration"] >= 0.4
