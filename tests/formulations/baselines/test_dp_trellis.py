"""The vectorised dynamic programme equals the plain loop, state by state and path by path."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.baselines.dp.stages import OutOfTime, Trellis
from formulations.baselines.dp.transition import Choices, Grid, origin, step
from tests.formulations.baselines.dp_loop import loop

VALUES = st.floats(0, 4, width=32)


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[Choices], Grid, type]:
    """A few tables on a small grid, in either precision."""
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    grid = Grid(draw(st.integers(1, 9)), draw(st.integers(1, 5)))
    tables, option = [], 0
    for _ in range(draw(st.integers(1, 5))):
        size = draw(st.integers(0 if option else 1, 4))
        columns = [
            np.asarray(draw(st.lists(VALUES, min_size=size, max_size=size)), dtype=dtype)
            for _ in range(2)
        ]
        # Few distinct costs make ties, which the order must break the same way.
        cost = np.asarray(draw(st.lists(st.integers(-2, 3), min_size=size, max_size=size)))
        tables.append(Choices(np.arange(option, option + size), *columns, cost.astype(dtype)))
        option += size
    return tables, grid, dtype


def plain(tables: list[Choices], grid: Grid, dtype: type) -> dict:
    """The loop's states of the same run."""
    rows = [list(zip(c.option, c.hbm, c.ddr, c.cost, strict=True)) for c in tables]
    return loop(rows, (grid.hbm, grid.ddr), dtype)


@settings(max_examples=150, deadline=None)
@given(runs(), st.sampled_from([0, 10**9]))
def test_states_and_paths_equal_the_loop(
    run: tuple[list[Choices], Grid, type], memory: int
) -> None:
    """Cells, costs, totals and options are the loop's, whether all steps are remembered or few."""
    tables, grid, dtype = run
    expected = plain(tables, grid, dtype)
    trellis = Trellis(origin(dtype), tables, grid, memory, lambda: False)
    end = trellis.end
    cells = [(int(c) // grid.ddr, int(c) % grid.ddr) for c in end.cell]
    assert cells == sorted(expected)
    options, starts = trellis.walk(np.arange(len(end)))
    assert (starts == 0).all()
    for index, cell in enumerate(cells):
        state = expected[cell]
        assert float(end.cost[index]) == state.cost
        assert (float(end.hbm[index]), float(end.ddr[index])) == (state.hbm, state.ddr)
        assert tuple(options[index].tolist()) == state.options


def test_a_total_equal_to_the_bins_is_outside() -> None:
    """Acceptance is strict: 2 + 2 of 4 bins is refused, 2 + 1.99 is not."""
    one = np.ones(1)
    half = Choices(np.asarray([0]), 2 * one, 0 * one, one)
    cells, _ = step(origin(np.float64), half, Grid(4, 1))
    assert len(step(cells, half, Grid(4, 1))[0]) == 0
    less = Choices(np.asarray([1]), 1.99 * one, 0 * one, one)
    assert step(cells, less, Grid(4, 1))[0].hbm.tolist() == [3.99]


def test_totals_are_not_truncated() -> None:
    """0.6 + 0.6 lands in bin 1: the cell is rounded, the total it carries is not."""
    choices = Choices(np.asarray([0]), np.asarray([0.6]), np.zeros(1), np.ones(1))
    cells, _ = step(origin(np.float64), choices, Grid(4, 1))
    assert cells.cell.tolist() == [0]
    cells, _ = step(cells, choices, Grid(4, 1))
    assert cells.cell.tolist() == [1]


def test_one_state_a_cell_loses_the_smaller_one() -> None:
    """A cheaper, larger state replaces the smaller one, which alone could take the next table."""
    first = Choices(np.arange(2), np.asarray([1.0, 1.9]), np.zeros(2), np.asarray([5.0, 4.0]))
    second = Choices(np.asarray([2]), np.asarray([0.95]), np.zeros(1), np.zeros(1))
    cells, _ = step(origin(np.float64), first, Grid(2, 1))
    assert cells.cost.tolist() == [4.0]
    assert len(step(cells, second, Grid(2, 1))[0]) == 0


def test_the_clock_ends_a_run() -> None:
    """A run stops between tables as soon as its callback asks for it."""
    table = Choices(np.asarray([0]), np.zeros(1), np.zeros(1), np.ones(1))
    asked = iter([False, False, True])
    with pytest.raises(OutOfTime):
        Trellis(origin(np.float64), [table] * 5, Grid(1, 1), 10**9, lambda: next(asked))
