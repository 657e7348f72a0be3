"""Grids fit whatever they hold, and never cut a figure."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

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
    """Text breaks after blanks and separators, then after underscores, and only then inside a
    word."""
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
