"""Tables with ``stash_weights``: where they count, that flags change plans, and the balance."""

import math
from typing import Any

import pytest
from torch import nn
from torchrec.distributed.planner.types import ParameterConstraints, Shard, ShardingOption, Storage

from formulations.settings import STASHED
from milp_planner.errors import BadInput
from milp_planner.features.plan.cache import PlanCache
from milp_planner.integrations.torchrec import MilpShardingPlanner, NoPlan, Stash
from milp_planner.integrations.torchrec.rating import PICOSECONDS
from milp_planner.integrations.torchrec.stash import stashed_bytes

from .models import (
    META,
    Case,
    FixedEnumerator,
    bags,
    bare_option,
    planned_for,
    planner_for,
    topology,
)

ROW = 2**20
"""Bytes of a row of the tables here."""


def flagged(name: str, rows: int, flag: bool = True, perf: float = 0.0) -> ShardingOption:
    """A whole table of rows of 1 MiB, all in HBM, stashed if flagged."""
    option = bare_option(name, [rows * ROW], perf=perf)
    option.shards[0].size = [rows, ROW // 4]
    option._tensor = option._tensor.new_empty(rows, ROW // 4, device=META)
    option.stash_weights = flag
    return option


def planned(
    options: list[ShardingOption], hbm: int, stash: Stash, **more: object
) -> MilpShardingPlanner:
    """A planner that has planned these tables on two ranks with this HBM, in MiB."""
    case = Case(nn.Module(), topology(2, hbm=hbm * ROW), reserve=0.0)
    made = planner_for(case, enumerator=FixedEnumerator(options), stash=stash, **more)
    made.plan(case.module, [])
    return made


def stash_of(made: MilpShardingPlanner) -> list[int]:
    """Stashed MiB of both ranks."""
    found = [0, 0]
    for option in made.best_plan:
        for shard in option.shards:
            found[shard.rank] += stashed_bytes(option, shard) // ROW
    return sorted(found)


@pytest.mark.parametrize("objective", ["busiest_rank", "critical_path"])
def test_the_balance_is_exact(objective: str) -> None:
    """5, 4, 3, 3 and 3 on two ranks, placements equally fast: 9, certified; largest first: 10."""
    options = [flagged(f"t{i}", rows) for i, rows in enumerate([5, 4, 3, 3, 3])]
    made = planned(options, 100, Stash(balance=True), objective=objective)
    assert stash_of(made) == [9, 9]
    (goal,) = made.outcome.goals
    assert (goal.goal, goal.value, goal.bound, goal.met) == (STASHED, 9 * ROW, 9 * ROW, True)


def test_flags_change_the_plan() -> None:
    """Which tables are flagged decides which tables are spread, at the same time and HBM."""
    first, second = (
        planned([flagged(f"t{i}", 4, flag=i in flags) for i in range(4)], 100, Stash(balance=True))
        for flags in ((0, 1), (0, 2))
    )
    together = [
        {o.name for o in made.best_plan if o.shards[0].rank == 0} for made in (first, second)
    ]
    assert len(together[0] & {"t0", "t1"}) == 1
    assert len(together[1] & {"t0", "t2"}) == 1
    assert stash_of(first) == stash_of(second) == [4, 4]


def test_weights_leave_hbm_only_if_asked() -> None:
    """Two tables of 6 MiB on ranks of 5 fit only if their weights count in DDR and are flagged."""
    options = [flagged("a", 6), flagged("b", 6)]
    with pytest.raises(NoPlan):
        planned(options, 5, Stash())
    made = planned(options, 5, Stash(weights_in="ddr"))
    assert [o.shards[0].storage for o in made.best_plan] == [Storage(hbm=0, ddr=6 * ROW)] * 2
    assert options[0].shards[0].storage == Storage(hbm=6 * ROW, ddr=0)
    with pytest.raises(NoPlan):
        planned([flagged("a", 6, flag=False)], 5, Stash(weights_in="ddr"))


def test_without_flags_nothing_changes() -> None:
    """The instance of unflagged tables, also of TorchRec 1.8's, has no such resource."""
    plain = bare_option("a", [ROW])
    if hasattr(plain, "stash_weights"):
        del plain.stash_weights
    made = planned([plain, flagged("b", 1, flag=False)], 5, Stash("ddr", balance=True))
    assert [r.name for r in made.problem.instance.resources] == ["hbm", "ddr"]
    assert not [goal for goal in made.outcome.goals if goal.goal == STASHED]


@pytest.mark.parametrize(("percent", "largest"), [(0, 8), (49, 8), (50, 6)])
def test_time_that_may_be_given_up(percent: float, largest: int) -> None:
    """The fastest plan separates the slow table from the two others; at 50% more time one of these
    joins it."""
    options = [flagged("a", 2, perf=10), flagged("b", 4, perf=5), flagged("c", 4, perf=5)]
    made = planned(options, 100, Stash(balance=True, perf_percent=percent, hbm_percent=100))
    assert stash_of(made)[1] == largest
    assert made.outcome is not None and made.outcome.bound == 10 * PICOSECONDS
    assert made.outcome.before_goals == (10 * PICOSECONDS if largest == 6 else None)
    assert made.outcome.goals[0].bound == largest * ROW


@pytest.mark.parametrize(("percent", "largest"), [(0, 8), (24, 8), (25, 4)])
def test_memory_that_may_be_given_up(percent: float, largest: int) -> None:
    """Ranks are even at 8 MiB only if the stashed tables share one; apart, the fuller has 10."""
    options = [flagged("a", 4), flagged("b", 4)]
    options += [flagged("c", 6, flag=False), flagged("d", 2, flag=False)]
    made = planned(options, 100, Stash(balance=True, hbm_percent=percent))
    assert stash_of(made)[1] == largest


def test_what_is_stashed() -> None:
    """Weights in HBM of a fused kernel: neither cached nor replicated tables."""
    option = flagged("a", 3)
    shard: Shard = option.shards[0]
    assert stashed_bytes(option, shard) == 3 * ROW
    option.compute_kernel = "fused_uvm_caching"
    assert stashed_bytes(option, shard) == 0
    option.compute_kernel, option.sharding_type = "fused", "data_parallel"
    assert stashed_bytes(option, shard) == 0


def test_the_balance_is_part_of_the_question(tmp_path: object) -> None:
    """A plan stored without a balance is no answer with it, and is found with its goal."""
    options = [flagged(f"t{i}", rows) for i, rows in enumerate([5, 4, 3, 3, 3])]
    cache = PlanCache(str(tmp_path))
    planned(options, 100, Stash(), cache=cache)
    first = planned(options, 100, Stash(balance=True), cache=cache)
    again = planned(options, 100, Stash(balance=True), cache=cache)
    assert stash_of(first) == stash_of(again) == [9, 9]
    assert again.outcome.goals == first.outcome.goals != ()


def test_torchrecs_enumerator_passes_flags_on() -> None:
    """From TorchRec 1.9 a table's configuration is enough: its weights are balanced."""
    if not hasattr(bare_option("a", [1]), "stash_weights"):
        pytest.skip("TorchRec before 1.9 has no stash_weights")
    module = bags([(1000, 64)] * 4)
    for config in module.embedding_bag_configs()[:2]:
        config.stash_weights = True
    whole = ParameterConstraints(sharding_types=["table_wise"], compute_kernels=["fused"])
    case = Case(module, topology(2), {f"t{i}": whole for i in range(4)}, reserve=0.0)
    made = planned_for(case, stash=Stash(balance=True))
    first, second = (o.shards[0].rank for o in made.best_plan if o.name in ("t0", "t1"))
    assert first != second
    assert made.outcome is not None and made.outcome.goals[0].bound == 1000 * 64 * 4


@pytest.mark.parametrize(
    ("field", "value"),
    [("weights_in", "host"), ("perf_percent", -1.0), ("hbm_percent", math.inf)],
)
def test_refusals(field: str, value: Any) -> None:
    """Other places and percentages are refused in a sentence."""
    with pytest.raises(BadInput, match=field):
        Stash(**{field: value})
