"""A placed table as JSON."""

from __future__ import annotations

from fractions import Fraction

import pytest

from milp_planner.errors import BadInput
from milp_planner.plans.placement import PlacedTable

TABLE = {
    "name": "t0",
    "option": "row_wise/CACHING/1/3/roundrobin",
    "kind": "dynamicemb",
    "sharding_type": "row_wise",
    "mode": "CACHING",
    "kernel": "customized_kernel",
    "cache_ratio": "1/3",
    "dist_type": "roundrobin",
    "column_width": 64,
    "ranks": [[0, 1]],
}


def test_round_trip_keeps_exact_ratios() -> None:
    """One third stays one third; 0 and 1 are ratios too."""
    table = PlacedTable.from_dict(TABLE)
    assert table.cache_ratio == Fraction(1, 3)
    assert table.ranks == ((0, 1),)
    assert PlacedTable.from_dict(table.to_dict()) == table
    for ratio in ("0", "1"):
        assert PlacedTable.from_dict({**TABLE, "cache_ratio": ratio}).cache_ratio == int(ratio)


@pytest.mark.parametrize(
    "change", [{"mode": "MIXED"}, {"sharding_type": "diagonal"}, {"cache_ratio": "4/3"}, {"x": 1}]
)
def test_illegal_values_are_refused(change: dict[str, object]) -> None:
    """Unknown names and ratios out of range are errors."""
    with pytest.raises(BadInput):
        PlacedTable.from_dict({**TABLE, **change})
