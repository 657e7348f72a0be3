"""Parsers of options that a request does not have."""

from __future__ import annotations

import pytest
import typer

from formulations.errors import InstanceError
from milp_planner.cli.options import positive, whole
from milp_planner.cli.readers import parse_formulations
from milp_planner.errors import BadInput


@pytest.mark.parametrize("limit", ["0", "-1", "nan", "inf", "soon", ""])
def test_limits_must_be_positive_numbers(limit: str) -> None:
    """A limit that is not a positive finite number is quoted and refused."""
    with pytest.raises(typer.BadParameter, match=f"found {limit}; allowed: a positive number"):
        positive(limit)


@pytest.mark.parametrize("found", ["0", "4", "1.5", "x", "", "-1", "1" * 30, "٣"])
def test_whole_numbers_keep_their_limits(found: str) -> None:
    """Numbers outside 1 to 3, and text that is no whole number, are refused with what is
    allowed."""
    with pytest.raises(typer.BadParameter, match="allowed: a whole number, 1 to 3"):
        whole(1, 3)(found)
    assert whole(1, 3)("3") == 3 and whole(0, 5)(0) == 0


def test_formulations_are_checked_by_name() -> None:
    """Blanks are ignored; unknown and repeated names are refused."""
    assert parse_formulations(" dp, cpsat ") == ("dp", "cpsat")
    with pytest.raises(InstanceError, match="did you mean 'cpsat'"):
        parse_formulations("dp,cpsta")
    with pytest.raises(BadInput, match="listed twice"):
        parse_formulations("dp,dp")
    with pytest.raises(BadInput, match="at least one"):
        parse_formulations(",")
