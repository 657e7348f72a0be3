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
    assert options.choices[index].ratio == Fraction(2, 5)
    assert "caching=false" in options.groups[options.group[index]]
    with pytest.raises(KeyError):
        options.index(0, "row_wise/HYBRID/0.4/roundrobin")
