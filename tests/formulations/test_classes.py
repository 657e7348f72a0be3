"""Equal tables: what tells tables apart, and options by counts of them."""

import numpy as np
import pytest

from formulations.classes import classes_of, in_counts
from formulations.instance import Current, Pin, Where
from tests.formulations.examples import ANY, at, built


def test_what_tells_tables_apart() -> None:
    """A cost, a use or a number of shards that differs by one, another place, level or option that
    is forbidden; of two tables with a plan in production, the option in it."""
    plain = {"a": at(ANY, 3, hbm=2), "b": at(Where.EVERY_RANK, 1)}
    others = [
        {**plain, "a": at(ANY, 4, hbm=2)}, {**plain, "a": at(ANY, 3, hbm=3)},
        {**plain, "a": at(ANY, 3, hbm=2, count=2)}, {**plain, "b": at([0, 1], 1)},
        {**plain, "a": (at(ANY, 3, hbm=2), ("g", 1))}, {**plain, "c": at(ANY, 9)},
        {"b": plain["b"], "a": plain["a"]},
    ]  # fmt: skip
    instance = built([plain, *others, plain], hbm=9)
    assert [own.tolist() for own in classes_of(instance).members if len(own) > 1] == [[0, 8]]
    assert classes_of(instance).times.tolist() == [2, 1, 1, 1, 1, 1, 1, 1, 0]
    barred = built([plain] * 3, forbidden=[(1, 3)], hbm=9)
    assert [own.tolist() for own in classes_of(barred).members] == [[0, 2], [1]]
    now = [Current(table, option, ((0,),)) for table, option in ((0, 0), (1, 2), (2, 5))]
    today = built([plain] * 3, current=now, hbm=9)
    assert [own.tolist() for own in classes_of(today).members] == [[0, 1], [2]]
    pinned = built([plain] * 3, pins=[Pin(1, 2), Pin(2, 4, ((0,),))], hbm=9)
    assert [own.tolist() for own in classes_of(pinned).members] == [[0], [1], [2]]


@pytest.mark.parametrize(
    ("shares", "taken"),
    [
        ([[1, 0], [1, 0], [0, 1], [0.5, 0.5]], [0, 2, 5, 6]),
        ([[0.1, 0.2]] * 3 + [[0, 0.3]], [0, 3, 5, 7]),  # shares need not add up to one
        ([[0.2, 0.8]] * 3 + [[0.6, 0.4]], [0, 3, 5, 6]),  # 0.6 and 2.4 are one and two
        ([[0, 0], [1, 0], [0, 1], [1, 0]], [0, 2, 5, 6]),  # one of them may lack a share
    ],
)
def test_options_by_counts(shares: list[list[float]], taken: list[int]) -> None:
    """Of three equal tables and another, as many take an option as shares add up to, rounded."""
    plain = {"a": at(ANY, 3), "b": at(ANY, 5)}
    instance = built([plain] * 3 + [{"a": at(ANY, 4), "b": at(ANY, 9)}])
    found = in_counts(instance, np.asarray(shares, dtype=float).ravel())
    assert found is not None and found.tolist() == taken


def test_no_options_by_counts_without_shares() -> None:
    """None where no table of a class has a share."""
    instance = built([at(ANY, 3), at(ANY, 3), at(ANY, 4)])
    assert in_counts(instance, np.asarray([1.0, 1.0, 0.0])) is None
