"""What a certificate counts, in words."""

from __future__ import annotations

from formulations.result.certificate import Certificate
from formulations.result.grounds import GROUNDS, grounds


def test_rows_and_cases_that_are_applied() -> None:
    """Rows of vectors that a node uses, with a multiplier, and the kinds of cases; no others."""
    vectors = (
        [{"row": "cost", "of": "p", "times": 1}, {"row": "capacity", "of": "hbm", "times": 0}],
        [{"row": "largest_use", "of": "hbm", "table": 0, "machine": 1, "times": 2}],
        [{"row": "fusion", "of": "g", "table": 0, "level": 1, "times": 1}],
    )
    nodes = ({"use": [0], "peak": ["p"], "cuts": [3]}, {"use": [1]}, {"pack": "p"})
    found = grounds(Certificate("bound", 5, vectors, nodes))
    kinds = ["peaks", "pattern", "machine", "capacity"]
    assert found == tuple(GROUNDS[kind] for kind in kinds)


def test_sums_of_costs_count_nothing_else() -> None:
    """Even ranks cost as much as the bound."""
    vectors = ([{"row": "cost", "of": "p", "times": 1}],)
    assert grounds(Certificate("bound", 5, vectors, ({"use": [0]},))) == ()
