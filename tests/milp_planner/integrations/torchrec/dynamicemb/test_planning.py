"""Both kinds of table in one Instance: brute force, the DP where it is exact, the runtime."""

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from torchrec.distributed.planner import planners
from torchrec.distributed.planner.types import ParameterConstraints, ShardingOption

from formulations import Settings, Status, solve
from formulations.instance import Objective
from milp_planner.errors import BadInput
from milp_planner.integrations.torchrec import MilpShardingPlanner, NoPlan
from milp_planner.integrations.torchrec.dynamicemb import (
    DynamicEmbEnumerator,
    decisions,
    with_dynamicemb,
    write_options,
)
from milp_planner.integrations.torchrec.dynamicemb.enumerator import (
    rows_of,
    torcheasyrec_efficiency,
)
from milp_planner.integrations.torchrec.dynamicemb.marks import fusion, is_dynamic, label
from milp_planner.pricing.storage import runtime_value_bytes

from .. import models
from ..models import Case
from .standins import (
    DynamicEmbParameterSharding,
    DynamicEmbTableOptions,
    TorchEasyRecEnumerator,
    dynamic,
    mixed_case,
    runtime_share,
)

SIZES = {
    30: None, 60: ["HYBRID", "HBM_ONLY"], 90: ["HBM_ONLY"] * 2, 120: ["HYBRID"] * 2,
    300: ["HBM_ONLY"] * 2,
}  # fmt: skip
"""MiB of HBM per rank, from too little to plenty, and the modes of the dynamicemb tables."""
HALVES = (Fraction(1, 2), Fraction(1))
PLAIN = ParameterConstraints(sharding_types=["table_wise"], compute_kernels=["fused", "fused_uvm"])


def planner_for(case: Case, enumerator: Any = None, **more: Any) -> MilpShardingPlanner:
    """Our planner with dynamicemb's options at ratios of one half."""
    enumerator = enumerator or DynamicEmbEnumerator(
        case.topology, case.batch_size, case.constraints, ratios=HALVES
    )
    return models.planner_for(case, enumerator=enumerator, **more)


def small(hbm: int, ddr: int = 2**33, hosts: tuple[int, int] = (1, 2)) -> Case:
    """Two dynamicemb tables that fuse, and an ordinary one."""
    return mixed_case(
        {"plain": (300_000, 64), "a": (400_000, 64), "b": (200_000, 64)},
        {"plain": PLAIN, "a": dynamic(), "b": dynamic()},
        hbm,
        ddr,
        hosts,
    )


def placements(option: ShardingOption, ranks: int) -> Iterator[list[int]]:
    """Places of an option: any rank (table-wise), or every rank."""
    if option.sharding_type == "table_wise":
        yield from ([rank] for rank in range(ranks))
    else:
        yield list(range(ranks))


def brute_force(
    space: list[ShardingOption], case: Case, honoured: bool, by_machine: bool
) -> float | None:
    """The least busiest rank (ms) over all options and places; None if nothing fits."""
    board, best = case.topology, None
    ranks, host = board.world_size, board.local_world_size
    tables = [list(g) for _, g in itertools.groupby(space, key=lambda option: option.name)]
    for choice in itertools.product(*tables):
        levels: dict[str, int] = {}
        fused = [fusion(o) for o in choice if is_dynamic(o)]
        if honoured and any(levels.setdefault(group, level) != level for group, level in fused):
            continue
        for assignment in itertools.product(*(placements(o, ranks) for o in choice)):
            hbm, ddr, time = [0] * ranks, [0] * ranks, [0.0] * ranks
            for option, placed in zip(choice, assignment, strict=True):
                for shard, rank in zip(option.shards, placed, strict=True):
                    hbm[rank] += shard.storage.hbm
                    ddr[rank] += shard.storage.ddr
                    time[rank] += shard.perf.total
            if by_machine:
                ddr = [sum(ddr[i : i + host]) / host for i in range(0, ranks, host)]
            caps = board.devices[0].storage
            fits = max(hbm) <= caps.hbm and max(ddr) <= caps.ddr
            if fits and (best is None or max(time) < best):
                best = max(time)
    return best


@pytest.mark.parametrize("megabytes", SIZES)
@pytest.mark.parametrize("fused", ["honoured", "free"])
def test_brute_force(megabytes: int, fused: str) -> None:
    """Mode, ratio and rank of all tables together, with HBM from too little to plenty."""
    case = small(megabytes * 2**20, ddr=70 * 2**20)
    planner = planner_for(case, ddr="machine", fusion=fused)
    space = planner._enumerator.enumerate(case.module, case.sharders)
    space.sort(key=lambda option: option.name)
    wanted = brute_force(space, case, fused == "honoured", by_machine=True)
    assert (wanted is None) == (SIZES[megabytes] is None)
    if wanted is None:
        with pytest.raises(NoPlan, match="certified infeasible"):
            planner.plan(case.module, case.sharders)
        return
    planner.plan(case.module, case.sharders)
    assert planner.outcome is not None and planner.outcome.status == Status.OPTIMAL
    assert planner.rating == pytest.approx(wanted, rel=1e-6)
    assert [d.mode for _, d in sorted(decisions(planner.best_plan).items())] == SIZES[megabytes]


EXACT = {
    (15, 34): "HYBRID/0.1 HBM_ONLY HYBRID/0.1",
    (18, 34): "HYBRID/0.2 HBM_ONLY CACHING/0.1",
    (35, 20): "HBM_ONLY CACHING/0.1 CACHING/0.4",
    (1024, 8192): "HBM_ONLY HBM_ONLY HBM_ONLY",
}
"""MiB of HBM and DDR per rank, and the best options of the three tables."""


@pytest.mark.parametrize("megabytes", EXACT)
def test_equals_the_dp_where_it_is_exact(megabytes: tuple[int, int]) -> None:
    """Where the DP proves its plan, ours is the same, table by table.

    Ratios are free there, since the DP knows no fusion; row-wise shards load all ranks alike, so
    the DP's sum and the busiest rank have the same minimum.
    """
    case = mixed_case(
        {"a": (400_000, 64), "b": (200_000, 32), "c": (90_000, 128)},
        {name: dynamic() for name in "abc"},
        hbm=megabytes[0] * 2**20,
        ddr=megabytes[1] * 2**20,
        hosts=(2, 2),
    )
    enumerator = DynamicEmbEnumerator(
        case.topology,
        case.batch_size,
        case.constraints,
        storage="torcheasyrec",
        effective=torcheasyrec_efficiency,
    )
    planner = planner_for(case, enumerator, ddr="machine", fusion="free")
    problem = planner.prepare(case.module, case.sharders)
    assert problem is not None and problem.instance.objective == Objective.BUSIEST_RANK
    whole = Settings(time_limit=60, workers=1)
    theirs, ours = (solve(problem.instance, name, whole) for name in ("dp", "cpsat"))
    assert theirs.status == ours.status == Status.OPTIMAL
    assert ours.objective == theirs.objective
    for outcome in (theirs, ours):
        labels = [label(problem.choices[int(o)]) for o in outcome.placement.options]
        assert [said.removeprefix("row_wise/") for said in labels] == EXACT[megabytes].split()


@pytest.mark.parametrize("megabytes", [120, 300])
def test_the_runtime_gives_what_was_planned(megabytes: int) -> None:
    """The runtime gives fused tables one share of HBM, which is each table's planned ratio."""
    case = small(megabytes * 2**20)
    planner = planner_for(case)
    plan = planner.plan(case.module, case.sharders)
    full = with_dynamicemb(plan, planner.best_plan, DynamicEmbParameterSharding)
    chosen = decisions(planner.best_plan)
    assert set(chosen) == {"a", "b"}
    groups: dict[bool, list[tuple[DynamicEmbTableOptions, int]]] = {}
    for name in chosen:
        entry: Any = full.plan[""][name]
        assert type(entry) is DynamicEmbParameterSharding
        assert entry.compute_kernel == "customized_kernel" and entry.ranks == [0, 1]
        options = entry.dynamicemb_options
        assert options.global_hbm_for_values == 2 * options.local_hbm_for_values
        assert options.dim == 64 and options.max_capacity % 128 == 0
        row = runtime_value_bytes(64, 4, "rowwise_adagrad")
        groups.setdefault(options.caching, []).append((options, row))
    for caching, tables in groups.items():
        planned = {d.ratio for d in chosen.values() if d.caching == caching}
        assert planned == {runtime_share(tables)}
    assert full.plan[""]["plain"] is plan.plan[""]["plain"]
    assert not isinstance(plan.plan[""]["a"], DynamicEmbParameterSharding), "the plan is kept"


def test_options_of_the_constraints_are_set() -> None:
    """caching and global_hbm_for_values are set where dynamicemb's own planner reads them."""
    case = small(120 * 2**20)
    planner = planner_for(case)
    planner.plan(case.module, case.sharders)
    chosen = decisions(planner.best_plan)
    write_options(case.constraints, chosen)
    for name, decision in chosen.items():
        options: Any = case.constraints[name].dynamicemb_options  # type: ignore[attr-defined]
        assert options.caching == decision.caching
        assert options.global_hbm_for_values == decision.global_hbm_for_values
    with pytest.raises(BadInput, match="'a': found no constraint"):
        write_options({"a": ParameterConstraints()}, chosen)


def test_torcheasyrecs_own_options_are_planned() -> None:
    """Options marked and priced by another enumerator join the Instance unchanged."""
    case = small(100 * 2**20)
    options = {"a": DynamicEmbTableOptions(), "b": DynamicEmbTableOptions()}
    enumerator = TorchEasyRecEnumerator(
        case.topology, case.batch_size, {"plain": PLAIN}, dynamic=options
    )
    planner = planner_for(case, enumerator, ddr="machine")
    planner.plan(case.module, case.sharders)
    instance = planner.problem.instance
    names = [instance.option_names[o] for o in instance.options_of(instance.table_names.index("a"))]
    assert names[:2] == ["row_wise/HYBRID/0.1", "row_wise/HYBRID/0.2"]
    assert len(names) == 20 and "row_wise/HBM_ONLY/caching" in names
    assert planner.outcome.status == Status.OPTIMAL
    best = {option.name: option for option in planner.best_plan}
    by_flag: dict[bool, set[float]] = {}
    for name in options:
        chosen: Any = best[name]
        by_flag.setdefault(chosen.dynamicemb_options.caching, set()).add(
            chosen.cache_params.load_factor
        )
    assert all(len(factors) == 1 for factors in by_flag.values())
    again = planner.problem.placement_of(planner.best_plan)
    assert (again.options == planner.outcome.placement.options).all()


def test_a_patched_to_sharding_plan_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """TorchEasyRec replaces a function in TorchRec's module; the planner calls the replacement."""
    theirs, seen = planners.to_sharding_plan, []

    def patched(options: list[ShardingOption], board: Any) -> Any:
        seen.extend(option.name for option in options)
        return theirs(options, board)

    monkeypatch.setattr(planners, "to_sharding_plan", patched)
    case = small(300 * 2**20)
    planner_for(case).plan(case.module, case.sharders)
    assert sorted(seen) == ["a", "b", "plain"]


def test_rows_of_the_fullest_shard() -> None:
    """The first shard of a row-wise table is the fullest, with element size and optimizer."""
    case = small(300 * 2**20)
    planner = planner_for(case)
    space = planner._enumerator.enumerate(case.module, case.sharders)
    [held] = {rows_of(option) for option in space if option.name == "a"}
    assert (held.rows, held.dim, held.element_bytes) == (200_000, 64, 4)
    assert held.optimizer == "rowwise_adagrad"
