"""Both kinds of table in one Instance: brute force, the DP where it is exact, the runtime."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from torchrec.distributed.planner import planners
from torchrec.distributed.planner.types import ParameterConstraints, ShardingOption

from formulations import Settings, Status
from milp_planner.integrations.torchrec import MilpShardingPlanner, NoPlan
from milp_planner.integrations.torchrec.dynamicemb import fusion, is_dynamic, label

from .dynamicemb_standins import (
    TENTHS,
    DynamicEmbTableOptions,
    TorchEasyRecEnumerator,
    mixed_case,
)
from .models import Case

QUICK = Settings(time_limit=10.0, workers=1, polish=False)
SIZES = (30, 60, 90, 120, 300)
"""MiB of HBM a rank, from too little to plenty."""
HALVES = (0.5, 1.0)
PLAIN = ParameterConstraints(sharding_types=["table_wise"], compute_kernels=["fused", "fused_uvm"])


def options_of(
    case: Case, tables: dict[str, dict[str, Any]], factors: Sequence[float] = TENTHS
) -> TorchEasyRecEnumerator:
    """The enumerator of a case whose dynamicemb tables have these options."""
    dynamic = {name: DynamicEmbTableOptions(**fields) for name, fields in tables.items()}
    return TorchEasyRecEnumerator(
        case.topology, case.batch_size, case.constraints, dynamic=dynamic, factors=factors
    )


def planner_for(case: Case, enumerator: Any = None, **more: Any) -> MilpShardingPlanner:
    """Our planner with options of both dynamicemb tables at halves."""
    enumerator = enumerator or options_of(case, {name: {} for name in "ab"}, HALVES)
    return MilpShardingPlanner(
        topology=case.topology,
        batch_size=case.batch_size,
        enumerator=enumerator,
        storage_reservation=case.reservation,
        stats=[],
        settings=QUICK,
        **more,
    )


def small(hbm: int, ddr: int = 2**33, hosts: tuple[int, int] = (1, 2)) -> Case:
    """Two dynamicemb tables that fuse, and an ordinary one."""
    return mixed_case(
        {"plain": (300_000, 64), "a": (400_000, 64), "b": (200_000, 64)},
        {"plain": PLAIN},
        hbm,
        ddr,
        hosts,
    )


def placements(option: ShardingOption, ranks: int) -> Iterator[list[int]]:
    """Where an option may sit: anywhere (table-wise), or on every rank."""
    if option.sharding_type == "table_wise":
        yield from ([rank] for rank in range(ranks))
    else:
        yield list(range(ranks))


def brute_force(
    space: list[ShardingOption], case: Case, honoured: bool, by_machine: bool
) -> float | None:
    """The least busiest rank (ms) over every choice and place; None when nothing fits."""
    board, best = case.topology, None
    ranks, host = board.world_size, board.local_world_size
    tables = [list(g) for _, g in itertools.groupby(space, key=lambda option: option.name)]
    for choice in itertools.product(*tables):
        levels: dict[str, int] = {}
        fused = [fusion(o) for o in choice if is_dynamic(o)]
        if honoured and any(levels.setdefault(group, level) != level for group, level in fused):
            continue
        for seats in itertools.product(*(placements(o, ranks) for o in choice)):
            hbm, ddr, time = [0] * ranks, [0] * ranks, [0.0] * ranks
            for option, seat in zip(choice, seats, strict=True):
                for shard, rank in zip(option.shards, seat, strict=True):
                    assert shard.storage is not None and shard.perf is not None
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
    """Mode, ratio and rank of all tables together, with HBM from scarce to plenty."""
    case = small(megabytes * 2**20, ddr=70 * 2**20)
    planner = planner_for(case, ddr="machine", fusion=fused)
    space = planner._enumerator.enumerate(case.module, case.sharders)
    space.sort(key=lambda option: option.name)
    wanted = brute_force(space, case, fused == "honoured", by_machine=True)
    if wanted is None:
        with pytest.raises(NoPlan, match="certified infeasible"):
            planner.plan(case.module, case.sharders)
        return
    planner.plan(case.module, case.sharders)
    assert planner.outcome is not None and planner.outcome.status == Status.OPTIMAL
    assert planner.rating == pytest.approx(wanted, rel=1e-6)


def test_the_cases_are_not_all_alike() -> None:
    """Among them one without a plan, and several ways of placing the dynamicemb tables."""
    seen = set()
    for megabytes in SIZES:
        case = small(megabytes * 2**20, ddr=70 * 2**20)
        planner = planner_for(case, ddr="machine")
        try:
            planner.plan(case.module, case.sharders)
        except NoPlan:
            seen.add("none")
            continue
        seen.add(str([label(option) for option in planner.best_plan if is_dynamic(option)]))
    assert "none" in seen and len(seen) >= 3


def test_torcheasyrecs_own_options_are_planned() -> None:
    """Options that another enumerator marks and prices join the Instance as they are."""
    case = small(100 * 2**20)
    planner = planner_for(case, options_of(case, {"a": {}, "b": {}}), ddr="machine")
    planner.plan(case.module, case.sharders)
    assert planner.problem is not None and planner.outcome is not None
    instance = planner.problem.instance
    names = [instance.option_names[o] for o in instance.options_of(instance.table_names.index("a"))]
    assert names[:2] == ["row_wise/HYBRID/0.1", "row_wise/HYBRID/0.2"]
    assert len(names) == 20 and "row_wise/HBM_ONLY/caching" in names
    assert planner.outcome.status == Status.OPTIMAL
    best = {option.name: option for option in planner.best_plan}
    by_flag: dict[bool, set[float]] = {}
    for name in "ab":
        chosen: Any = best[name]
        by_flag.setdefault(chosen.dynamicemb_options.caching, set()).add(
            chosen.cache_params.load_factor
        )
    assert all(len(factors) == 1 for factors in by_flag.values())
    again = planner.problem.placement_of(planner.best_plan)
    assert planner.outcome.placement is not None
    assert (again.options == planner.outcome.placement.options).all()


def test_a_patched_to_sharding_plan_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """TorchEasyRec puts its own function into TorchRec's module; the planner calls that one."""
    theirs, seen = planners.to_sharding_plan, []

    def patched(options: list[ShardingOption], board: Any) -> Any:
        seen.extend(option.name for option in options)
        return theirs(options, board)

    monkeypatch.setattr(planners, "to_sharding_plan", patched)
    case = small(300 * 2**20)
    planner_for(case).plan(case.module, case.sharders)
    assert sorted(seen) == ["a", "b", "plain"]


def test_tables_fuse_by_their_grouped_key() -> None:
    """Same key, same group; another strategy, dim or the other flag is another."""
    shapes = {"a": (1000, 64), "b": (9000, 64), "lfu": (1000, 64), "wide": (1000, 128)}
    case = mixed_case(shapes, {}, hbm=2**30)
    tables: dict[str, dict[str, Any]] = {name: {} for name in shapes}
    tables["lfu"] = {"score_strategy": "LFU"}
    found: dict[str, list[tuple[str, int]]] = {}
    for option in options_of(case, tables).enumerate(case.module, case.sharders):
        found.setdefault(option.name, []).append(fusion(option))
    assert [group for group, _ in found["a"]] == [group for group, _ in found["b"]]
    assert len({groups[0][0] for groups in found.values()}) == 3
    assert found["a"][0][0] != found["a"][-1][0], "caching is part of the key"
    assert [level for _, level in found["a"][:10]] == [100_000 * tenth for tenth in range(1, 11)]
