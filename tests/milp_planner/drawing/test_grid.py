"""Grids fit whatever they hold, and never cut a figure."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from milp_planner.drawing.page import WIDTH, fitting_grid
from tests.milp_planner.features.plan.test_ranks import drawn

_NAME = st.text(alphabet="abc_/", min_size=1, max_size=90)
_FIGURE = st.text(alphabet="0123456789", min_size=1, max_size=12)


@given(st.lists(st.tuples(_NAME, _NAME, _FIGURE, _FIGURE), min_size=1, max_size=4))
def test_text_gives_way_figures_do_not(rows: list[tuple[str, str, str, str]]) -> None:
    """Within the width; every figure whole; short text untouched."""
    text = drawn(fitting_grid(["name", "option", "x", "y"], rows, {"name": 10, "option": 10}))
    assert max(len(line) for line in text.splitlines()) <= WIDTH
    for line, row in zip(text.splitlines()[1:], rows, strict=True):
        assert line.split()[-2:] == [row[2], row[3]]
        if max(len(r[0]) for r in rows) + max(len(r[1]) for r in rows) < 60:
            assert line.split() == list(row)
