"""Options turned into settings."""

from __future__ import annotations

import pytest
import typer

from formulations.errors import InstanceError
from milp_planner.cli.options import positive, whole
from milp_planner.cli.readers import make_settings, parse_formulations, parse_options
from milp_planner.errors import BadInput


def test_options_are_json_or_text() -> None:
    """Numbers, booleans and lists keep their types; anything else is text."""
    found = parse_options(["bins=100", "solver=cbc", "fast=true", 'axes=["hbm","ddr"]', "a=b=c"])
    assert found == {
        "bins": 100, "solver": "cbc", "fast": True, "axes": ["hbm", "ddr"], "a": "b=c",
    }  # fmt: skip


@pytest.mark.parametrize("pair", ["solver", "=cbc", " =1"])
def test_options_need_key_and_value(pair: str) -> None:
    """Text other than KEY=VALUE is refused with an example."""
    with pytest.raises(BadInput, match="needs KEY=VALUE"):
        parse_options([pair])


def test_an_option_given_twice_is_refused() -> None:
    """Neither value wins silently."""
    with pytest.raises(BadInput, match="given twice"):
        parse_options(["a=1", "a=2"])


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


def test_settings_carry_everything() -> None:
    """Each option reaches its field; workers default to the number of cores."""
    made = make_settings(3.0, work_limit=2.0, seed=7, workers=1, options=["a=1"])
    assert (made.time_limit, made.work_limit, made.seed, made.workers) == (3.0, 2.0, 7, 1)
    assert made.options == {"a": 1}
    assert make_settings(1.0).workers >= 1


def test_formulations_are_checked_by_name() -> None:
    """Blanks are ignored; unknown and repeated names are refused."""
    assert parse_formulations(" dp, cpsat ") == ("dp", "cpsat")
    with pytest.raises(InstanceError, match="did you mean 'cpsat'"):
        parse_formulations("dp,cpsta")
    with pytest.raises(BadInput, match="listed twice"):
        parse_formulations("dp,dp")
    with pytest.raises(BadInput, match="at least one"):
        parse_formulations(",")


def test_a_work_limit_stands_alone() -> None:
    """The time limit is a minute by default, and none beside a work limit unless one is given."""
    assert make_settings(None).time_limit == 60.0
    assert make_settings(None, work_limit=3.0).time_limit is None
    assert make_settings(7.0, work_limit=3.0).time_limit == 7.0
