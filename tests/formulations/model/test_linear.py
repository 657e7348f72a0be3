"""Linear models: names, matrices, objectives."""

from __future__ import annotations

import numpy as np

from formulations.model.linear import LinearModel


def test_rows_keep_their_names_and_columns_stand_once() -> None:
    """Bulk and single rows keep order and names; a column named twice in a row is added up."""
    model = LinearModel()
    model.columns(3, upper=5)
    none = np.empty(0, dtype=np.int64)
    model.rows(("none",), none, (none, none, none))
    assert model.num_rows == 0
    entries = (np.asarray([1, 0, 0]), np.asarray([2, 1, 0]), np.asarray([7, 8, 9]))
    model.rows(("many",), np.asarray([4, 6]), entries, low=np.asarray([1, 2]), high=3)
    model.row(("one", "x"), [0, 2, 0], [1, 5, 1], high=4)
    matrix = model.matrix()
    assert matrix.start.tolist() == [0, 2, 3, 5]
    assert matrix.column.tolist() == [0, 1, 2, 0, 2]
    assert matrix.coefficient.tolist() == [9, 8, 7, 2, 5]
    assert matrix.low[:2].tolist() == [1, 2] and matrix.high.tolist() == [3, 3, 4]
    assert [model.name(r) for r in range(3)] == [("many", 4), ("many", 6), ("one", "x")]


def test_columns_are_held_at_zero() -> None:
    """A forbidden column stays at 0 when columns are added later."""
    model = LinearModel()
    first = model.columns(2, upper=np.asarray([3, 4]))
    model.forbid(first[:1])
    model.columns(1, upper=9)
    assert model.upper.tolist() == [0, 4, 9]


def test_the_objective_has_an_offset() -> None:
    """The objective's value is cost plus offset."""
    model = LinearModel()
    columns = model.columns(2, upper=9)
    model.minimise(columns, [2, 3], offset=100)
    assert model.value(np.asarray([4, 5])) == 123
