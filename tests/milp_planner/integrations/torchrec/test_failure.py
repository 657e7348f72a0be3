"""What each tier lacks, by hand."""

from __future__ import annotations

from formulations import Settings
from milp_planner.integrations.torchrec.failure import shortfalls
from milp_planner.integrations.torchrec.problem import compile_problem

from .models import bare_option, topology

QUICK = Settings(time_limit=10.0, workers=2)


def test_packing_fails_although_the_sum_suffices() -> None:
    """Three shards of 6 on two ranks of 10 take 18 of 20 in total, but two must share a rank."""
    options = [bare_option(f"t{i}", [6]) for i in range(3)]
    hbm, ddr = shortfalls(compile_problem(options, topology(2, hbm=10)).instance, QUICK)
    assert (hbm.capacity, hbm.needed, hbm.short_by, hbm.short_per_place) == (20, 18, 0, 2)
    assert hbm.least is not None and hbm.least.least == 12
    assert ddr.short_by == 0
    assert hbm.lacks and not ddr.lacks
    assert "short by 0.000 GiB on a rank" in hbm.sentence()


def test_the_sum_is_short() -> None:
    """Even without a solve, the sum of the smallest options shows what is missing."""
    options = [
        bare_option("a", [6]),
        bare_option("a", [5, 5], "column_wise"),
        bare_option("b", [7]),
    ]
    hbm, _ = shortfalls(compile_problem(options, topology(1, hbm=8)).instance)
    assert (hbm.capacity, hbm.needed, hbm.short_by) == (8, 13, 5)
    assert hbm.least is None and hbm.short_per_place is None


def test_one_tier_can_stand_in_for_the_other() -> None:
    """For a table in HBM or in DDR, more of either tier is enough, and both are named."""
    fast, slow = bare_option("a", [6]), bare_option("a", [0])
    slow.compute_kernel = "fused_uvm"
    slow.shards[0].storage.ddr = 9  # type: ignore[union-attr]
    instance = compile_problem([fast, slow], topology(1, hbm=4, ddr=5)).instance
    found = shortfalls(instance, QUICK)
    assert [s.short_per_place for s in found] == [2, 4]
    assert [s.lacks for s in found] == [True, True]


def test_more_of_one_tier_alone_may_not_help() -> None:
    """If DDR is short, too, the error says that more HBM does not help."""
    option = bare_option("a", [6])
    option.shards[0].storage.ddr = 9  # type: ignore[union-attr]
    found = shortfalls(compile_problem([option], topology(1, hbm=4, ddr=5)).instance, QUICK)
    assert all(s.least is not None and s.least.impossible for s in found)
    assert "alone does not help" in found[0].sentence()
    assert [s.lacks for s in found] == [True, True]
