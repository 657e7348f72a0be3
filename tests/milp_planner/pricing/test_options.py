"""Finding options by table and name."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.milp_planner.pricing.build import priced


def test_options_are_found_by_name() -> None:
    """Index, ratio and group of a named option; no such name is a KeyError."""
    options = priced({}, {"kind": "dynamicemb"})
    index = options.index(1, "row_wise/HYBRID/0.4/roundrobin")
    assert index in options.of(1)
    assert options.ratio(index) == Fraction(2, 5)
    group = options.group_of(index)
    assert group is not None
    assert "caching=false" in group
    with pytest.raises(KeyError):
        options.index(0, "row_wise/HYBRID/0.4/roundrobin")
