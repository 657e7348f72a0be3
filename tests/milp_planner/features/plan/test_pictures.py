"""Which memories and which ranks are drawn."""

from __future__ import annotations

from dataclasses import replace

from milp_planner.features.plan.memory import MemoryInfo, TierMemory
from milp_planner.features.plan.ranks import ranks_of
from tests.milp_planner.features.example import example, placement


def _tier(shares: list[int], name: str = "hbm") -> TierMemory:
    used = tuple((share,) for share in shares)
    return TierMemory(name, "rank", ("CACHING",), used, (100,) * len(shares))


def test_of_one_memory_the_fullest_resource_is_shown() -> None:
    """``hbm:A`` and ``hbm:B`` limit the same HBM; a tier without capacity and use is left out."""
    empty = replace(_tier([0, 0], "ddr"), capacity=(0, 0))
    info = MemoryInfo((_tier([10, 40], "hbm:A"), _tier([20, 30], "hbm:B"), empty), ((0, 1),))
    assert [tier.resource for tier in info.shown] == ["hbm:A"]


def test_the_busiest_ranks_include_who_sets_a_barrier() -> None:
    """One rank asked for: the busiest, and beside it one for each barrier that it does not set."""
    info = ranks_of(example(), placement())
    rows = list(info.rows)
    rows[1] = replace(rows[1], critical=(False, True))
    rows[2] = replace(rows[2], critical=(True, False))
    assert [r.rank for r in replace(info, rows=tuple(rows)).busiest(1)] == [1, 2]
    assert [r.rank for r in info.busiest(1)] == [2]
