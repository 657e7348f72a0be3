"""Which memories and which ranks are drawn."""

from __future__ import annotations

import re
from dataclasses import replace

from milp_planner.features.plan.memory import KINDS, MemoryInfo, TierMemory, memory_svg
from milp_planner.features.plan.ranks import ranks_of
from milp_planner.pricing.entries import RANK_ENTRIES, SHARD_ENTRIES
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
    """Besides the busiest rank, there is one for each barrier that the busiest rank does not
    set."""
    info = ranks_of(example(), placement())
    rows = list(info.rows)
    rows[1] = replace(rows[1], critical=(False, True))
    rows[2] = replace(rows[2], critical=(True, False))
    assert [r.rank for r in replace(info, rows=tuple(rows)).busiest(1)] == [1, 2]
    assert [r.rank for r in info.busiest(1)] == [2]


def test_figures_stand_right_of_the_bars() -> None:
    """Room for long amounts is taken from the bars and not from the limit's line."""
    tier = TierMemory("ddr", "machine", ("CACHING",), ((5294 * 2**30 // 10,),), (543 * 2**30,))
    svg = memory_svg(MemoryInfo((tier,), ((0,),)), tier, "ps").render()
    limit = re.search(r'<polyline points="([\d.]+),[^"]+" class="limit"', svg)
    label = re.search(r'<text x="([\d.]+)"[^>]+>(529.4 GiB of 543.0 GiB)<', svg)
    assert limit and label
    assert float(label[1]) - 6.6 * len(label[2]) >= float(limit[1]) + 10


def test_every_entry_of_the_embeddings_has_a_colour() -> None:
    """No entry of shards or the exchange is drawn as being outside the embeddings."""
    assert {entry.name for entry in (*SHARD_ENTRIES, *RANK_ENTRIES)} <= set(KINDS)
