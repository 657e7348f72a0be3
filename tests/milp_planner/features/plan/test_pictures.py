"""Pictures on a terminal: what they draw follows the figures, and they fit 80 columns."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console, RenderableType

from milp_planner.drawing.terminal import MODE_STYLE, stack
from milp_planner.features.plan.memory import MemoryInfo, TierMemory, draw_memory, memory_of
from milp_planner.features.plan.modes import ModeCell, ModesInfo, TableMode, draw_modes
from milp_planner.features.plan.ranks import ranks_of
from milp_planner.features.plan.timeline import draw_timeline
from milp_planner.features.report.info import draw_plan
from tests.milp_planner.features import plans
from tests.milp_planner.features.example import example, placement

WIDTH = 80


def drawn(picture: RenderableType) -> list[str]:
    """Lines without colour, as NO_COLOR shows them."""
    console = Console(width=WIDTH, file=io.StringIO(), highlight=False, no_color=True)
    console.print(picture)
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


@given(
    st.lists(st.integers(0, 10**15), min_size=1, max_size=5),
    st.integers(0, 10**15),
    st.integers(1, 90),
)
def test_a_stack_is_as_long_as_its_sum(parts: list[int], more: int, width: int) -> None:
    """To the nearest column, however small the parts are; nothing is drawn beyond the width."""
    full = sum(parts) + more
    bar = stack([(part, ("x", "")) for part in parts], full, width)
    assert len(bar) == (round(width * sum(parts) / full) if full else 0)


def test_memory_shows_every_place_and_mode() -> None:
    """Rank 2 of the example has 80 of 100; the glyph of its mode fills four fifths."""
    info = memory_of(example(), placement())
    lines = drawn(draw_memory(info, "1", WIDTH))
    two = next(line for line in lines if line.startswith("rank 2"))
    glyph = MODE_STYLE["other"][0]
    assert two.count(glyph) == round(0.8 * (two.count(glyph) + two.count("·")))
    assert two.endswith("80 of 100 80.0%")
    assert any(line.startswith("machine 1") for line in lines)


def _tier(shares: list[int], name: str = "hbm") -> TierMemory:
    used = tuple((share,) for share in shares)
    return TierMemory(name, "rank", ("CACHING",), used, (100,) * len(shares))


def test_many_places_are_counted_by_share() -> None:
    """40 ranks: how many are how full, nothing lost, an overfull one apart."""
    tier = _tier([5] * 30 + [100] * 9 + [101])
    assert tier.tenths == (30, 0, 0, 0, 0, 0, 0, 0, 0, 9, 1)
    lines = drawn(draw_memory(MemoryInfo((tier,), ((0,),)), "1", WIDTH))
    assert next(line for line in lines if "0–10%" in line).endswith(" 30 ranks")
    assert next(line for line in lines if "over 100%" in line).endswith(" 1 rank")


def test_of_one_memory_the_fullest_resource_is_shown() -> None:
    """``hbm:A`` and ``hbm:B`` limit the same HBM; a tier without capacity and use is left out."""
    empty = replace(_tier([0, 0], "ddr"), capacity=(0, 0))
    info = MemoryInfo((_tier([10, 40], "hbm:A"), _tier([20, 30], "hbm:B"), empty), ((0, 1),))
    assert [tier.resource for tier in info.shown] == ["hbm:A"]


def test_the_timeline_marks_who_sets_each_barrier() -> None:
    """Rank 2 sets both barriers of the example, and only it."""
    lines = drawn(draw_timeline(ranks_of(example(), placement()), WIDTH))
    marks = {line.split()[1]: line.count("◀") for line in lines if line.startswith("rank")}
    assert marks == {"0": 0, "1": 0, "2": 2, "3": 0}
    assert next(line for line in lines if line.startswith("rank 2")).endswith("busiest")


def test_the_busiest_ranks_include_who_sets_a_barrier() -> None:
    """One rank asked for: the busiest, and beside it one for each barrier that it does not set."""
    info = ranks_of(example(), placement())
    rows = list(info.rows)
    rows[1] = replace(rows[1], critical=(False, True))
    rows[2] = replace(rows[2], critical=(True, False))
    assert [r.rank for r in replace(info, rows=tuple(rows)).busiest(1)] == [1, 2]
    assert [r.rank for r in info.busiest(1)] == [2]


def _modes(count: int) -> ModesInfo:
    used = {"hbm": 2**30, "ddr": 2**32}
    tables = tuple(TableMode(f"table_{i}", "CACHING", "0.25", 0.25, used) for i in range(count))
    cell = ModeCell("CACHING", "0.25", tuple(t.table for t in tables), used)
    return ModesInfo(tables, (cell,))


def test_modes_table_by_table_or_counted() -> None:
    """A quarter of each bar is filled; many tables become a line a mode and ratio."""
    lines = drawn(draw_modes(_modes(3), "ps", WIDTH))
    line = next(line for line in lines if line.startswith("table_2"))
    filled, free = line.count("▒"), line.count("·")
    assert filled == round((filled + free) / 4)
    assert "0.25" in line
    assert "300 tables" in drawn(draw_modes(_modes(300), "ps", WIDTH))[1]


@pytest.mark.parametrize("make", [plans.explained, plans.infeasible, plans.large])
def test_a_whole_report_fits_eighty_columns(make: object) -> None:
    """Every line of every kind of plan, and no more than a screen or two of pictures."""
    info = make()  # type: ignore[operator]
    picture = draw_plan(replace(info, answers=type(info.answers)()), WIDTH)
    lines = drawn(picture)
    assert max(map(len, lines)) <= WIDTH
    assert len(lines) < 80
