"""Grids fit whatever they hold, and never cut a figure.

Integers as people read them.
"""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from milp_planner.drawing import units
from milp_planner.drawing.grid import WIDTH, Cell, Grid, csv_text
from milp_planner.drawing.page import Part, Section, fill
from milp_planner.drawing.units import wrapped
from tests.milp_planner.features.plan.test_ranks import drawn

_NAME = st.text(alphabet="abc_/", min_size=1, max_size=90)
_FIGURE = st.text(alphabet="0123456789", min_size=1, max_size=12)


@given(st.lists(st.tuples(_NAME, _NAME, _FIGURE, _FIGURE), min_size=1, max_size=4))
def test_text_gives_way_figures_do_not(rows: list[tuple[str, str, str, str]]) -> None:
    """Within the width, every figure is whole, and short text is untouched."""
    text = drawn(Grid.plain(["name", "option", "#x", "#y"], rows, {"name": 10, "option": 10}))
    assert max(len(line) for line in text.splitlines()) <= WIDTH
    for line, row in zip(text.splitlines()[1:], rows, strict=True):
        assert line.split()[-2:] == [row[2], row[3]]
        if max(len(r[0]) for r in rows) + max(len(r[1]) for r in rows) < 60:
            assert line.split() == list(row)


@given(st.lists(st.tuples(_NAME, _NAME, _FIGURE, _FIGURE), min_size=1, max_size=4))
def test_eighty_columns_cut_no_word(rows: list[tuple[str, str, str, str]]) -> None:
    """Folded text continues below, complete, beside figures in one piece."""
    least = {"option": 12, "name": 10}
    grid = Grid.plain(["name", "option", "#x", "#y"], rows, least, folded=("name", "option"))
    text = drawn(grid, 80)
    assert "…" not in text and max(len(line) for line in text.splitlines()) <= 80
    letters = sorted(text.replace("name", "").replace("option", "").replace("x", ""))
    wanted = sorted("y" + "".join("".join(row) for row in rows))
    assert [c for c in letters if not c.isspace()] == wanted
    for row in rows:
        assert row[2] in text.split() and row[3] in text.split()


def test_words_stay_whole_where_they_can() -> None:
    """Text breaks after blanks and separators, then after underscores, at last inside a word."""
    assert wrapped("roundrobin beside_caching", 14) == "roundrobin\nbeside_caching"
    assert wrapped("column_wise:8", 8) == "column_\nwise:8"
    assert wrapped("0,2×2,3,4×2,5-6", 8) == "0,2×2,3,\n4×2,5-6"
    assert wrapped("a b", 9) == "a b" and wrapped("abcdef", 4) == "abcd\nef"


def test_the_heading_breaks_first_and_the_gap_narrows_next() -> None:
    """Text that then fits is left as it is."""
    rows = [["a" * 30, "b" * 40, "1"]]
    grid = Grid.plain(["name", "what", "#certified gap"], rows, {"name": 4})
    assert "certified gap" in drawn(grid, 90)
    whole = ["a" * 30 + "  " + "b" * 40, "a" * 30 + " " + "b" * 40]
    assert drawn(grid, 83).splitlines()[2].startswith(whole[0])
    assert drawn(grid, 82).splitlines()[2].startswith(whole[1])
    assert "…" in drawn(grid, 80)


def test_text_in_brackets_is_shown_as_it_is() -> None:
    """A name or heading that looks like a style is a name."""
    text = drawn(Grid.plain(["[b]name", "#x"], [["[red]a[/red]", "1"]]))
    assert "[b]name" in text and "[red]a[/red]" in text


def test_a_notebook_gets_the_same_cells_escaped() -> None:
    """One row, one heading; no tag from a cell; nothing without rows."""
    grid = Grid.plain(["name", "#x"], [["<b>", Cell.count(3)]])
    assert grid.html() == (
        "<table><thead><tr><th>name</th><th>x</th></tr></thead>"
        "<tbody><tr><td>&lt;b&gt;</td><td>3</td></tr></tbody></table>"
    )
    assert Grid.plain(["name"], []).html() == ""


def test_csv_has_values_and_leaves_unknown_ones_empty() -> None:
    """Numbers are not shown as text, and commas are quoted."""
    assert csv_text(("a", "b"), [(1.5, None), ("x,y", 2)]) == 'a,b\n1.5,\n"x,y",2\n'


def test_a_page_has_the_whole_name_of_a_column() -> None:
    """The terminal has the short one; both are the same column, which can be left out."""
    grid = Grid.of("i", "n", "c", ("#mach|machine", "#x"), [["1", "2"]])
    assert "mach" in drawn(grid) and "machine" not in drawn(grid)
    page = fill("t", "s", [], [Section("a", "b", parts=(Part(table=grid),))], "f")
    assert 'data-name="machine"' in page and 'data-name="x"' in page
    assert [column.name for column in grid.without("mach").columns] == ["x"]
    assert grid.without("mach").rows == ((Cell("2"),),)


SHOWN: dict[Callable[..., str], list[tuple[Any, ...]]] = {
    units.show_bytes: [  # the largest binary unit in which the value is at least 1
        (0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (80 * 2**30, "80 GiB"), (-(2**31), "-2 GiB"),
        (2 * 2**40 + 2**39, "2.5 TiB"), (None, "–"), (750 * 2**30, "750.0 GiB"),
    ],
    units.show_time: [
        (0, "0 ps"), (999, "999 ps"), (1500, "1.5 ns"), (12_345_678_901, "12.35 ms"), (None, "–"),
        (3 * 10**12, "3 s"), (-1500, "-1.5 ns"), (5_000_000, ("ms", 10**9), "0.005 ms"),
    ],
    units.show_cost: [  # instances from the literature have no picoseconds
        (12345, "1", "12,345"), (12345, "ps", "12.35 ns"), (None, "ps", "–"),
    ],
    units.show_gap: [  # whole percent from ten on, two digits below; only an exact 0 prints as 0
        (None, "–"), (0.0, "0"), (1e-9, "1e-07%"), (0.0123, "1.2%"), (0.5, "50%"), (-0.01, "-1%"),
        (0.0996, "10%"), (0.998, "99.8%"), (0.9997, "99.97%"), (1.0, "100%"), (1.0004, "100.04%"),
        (1.25, "125%"), (-1.0, "-100%"),
    ],
    units.show_ranks: [  # runs of ranks, with how often each is used
        ([0, 1, 2, 3], 4, "all 4"), ([0], 1, "0"), ([3], 8, "3"), ([0, 1, 2, 5], 8, "0-2,5"),
        ([2, 2], 8, "2×2"), ([0, 0, 1, 1], 2, "0-1×2"), ([], 8, "–"), ([1, 0], 3, "0-1"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("show", SHOWN, ids=lambda show: show.__name__)
def test_values_by_hand(show: Callable[..., str]) -> None:
    """Arguments, and the text that is shown of them."""
    for *given_, text in SHOWN[show]:
        assert show(*given_) == text


def test_a_column_shares_one_unit() -> None:
    """The largest value chooses the unit for all."""
    assert units.time_unit([5, None, 2_000_000_000]) == ("ms", 10**9)


@given(st.floats(-2, 2) | st.floats(0.99, 1.01))
def test_gaps_never_round_to_nothing_or_all(gap: float) -> None:
    """Only an exact 0 or 1 prints as 0 or 100%; all else is right to half a percent."""
    text = units.show_gap(gap)
    assert (text == "0") == (gap == 0)
    assert (abs(float(text.rstrip("%"))) == 100) == (abs(gap) == 1)
    assert float(text.rstrip("%")) == pytest.approx(100 * gap, rel=0.051, abs=0.0)


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_parts_of_a_whole_never_round_to_all(part: int, whole: int) -> None:
    """999 of 1000 problems do not print as 100%, nor 1 as 0%."""
    share = min(part, whole) / whole
    assert (units.show_percent(share) == "100%") == (share == 1)
    assert (units.show_percent(share) == "0%") == (share == 0)


@given(st.integers(0, 10**15), st.integers(0, 10**15))
def test_shares_never_round_to_full(used: int, capacity: int) -> None:
    """Only a share met to the byte prints as 100%; a byte less or more does not."""
    text = units.show_share(used, capacity)
    assert (text == "100%") == (used == capacity and capacity > 0)
    if capacity == 0:
        assert text == ("over" if used else "–")


@given(st.text(max_size=60), st.integers(4, 40))
def test_shortened_text_fits(text: str, width: int) -> None:
    """It is never wider than asked, is unchanged if it fits, and keeps both ends."""
    short = units.shorten(text, width)
    assert len(short) <= width
    if len(text) <= width:
        assert short == text
    else:
        assert text.startswith(short.split("…")[0]) and "…" in short


@pytest.mark.parametrize(
    ("names", "width"),
    [
        ([f"model.sparse.ebc.table_{i}" for i in (17, 18, 1750)], 12),
        ([f"emb_{i}_of_a_long_and_common_name_weight" for i in range(12)], 14),
        (["a" * 30 + "x", "a" * 30 + "y", "b"], 8),
        ([f"a_long_and_common_name_{i}_of_a_table_weight" for i in (1, 2)], 12),
    ],
)
def test_names_stay_different(names: list[str], width: int) -> None:
    """Different names stay different when shortened, and fit."""
    cut = units.shorten_all(names, width)
    assert len(set(cut)) == len(names) and all(len(text) <= width for text in cut)
