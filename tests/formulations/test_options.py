"""Reading the options of a formulation."""

from __future__ import annotations

import pytest

from formulations.errors import InstanceError
from formulations.instance import Objective
from formulations.options import Options

KNOWN = {"bins", "axes", "refine", "rank_by"}


def test_unknown_option_names_the_nearest() -> None:
    """A misspelt option is an error that names what was meant and what there is."""
    with pytest.raises(InstanceError, match=r"'bin'; did you mean 'bins'.*axes, bins"):
        Options("dp", {"bin": 3}, KNOWN)


@pytest.mark.parametrize("value", [0, -1, 2.5, "3", True])
def test_integer_refuses_what_is_none(value: object) -> None:
    """Only whole numbers from the least on are taken; True is not 1."""
    with pytest.raises(InstanceError, match=r"'bins' is .* allowed: a whole number, 1 or more"):
        Options("dp", {"bins": value}, KNOWN).integer("bins", 5)


def test_defaults_where_nothing_is_given() -> None:
    """Every reader falls back to its default."""
    options = Options("dp", {}, KNOWN)
    assert options.integer("bins", 5) == 5
    assert options.names("axes", ("a", "b")) == ("a", "b")
    assert options.flag("refine", True)
    assert options.choice("rank_by", Objective.TOTAL) == "total"
    assert not options.has("bins")


def test_names_take_one_string_or_a_list() -> None:
    """One name stands for a list of one; a list of anything else is refused."""
    assert Options("dp", {"axes": "hbm"}, KNOWN).names("axes", ()) == ("hbm",)
    assert Options("dp", {"axes": ["x", "y"]}, KNOWN).names("axes", ()) == ("x", "y")
    with pytest.raises(InstanceError, match=r"a list of names"):
        Options("dp", {"axes": [1]}, KNOWN).names("axes", ())


def test_flag_and_choice_refuse_others() -> None:
    """A flag is true or false; a choice is one of its enumeration."""
    with pytest.raises(InstanceError, match=r"true or false"):
        Options("dp", {"refine": 1}, KNOWN).flag("refine", False)
    with pytest.raises(InstanceError, match=r"'total' or 'busiest_rank' or 'step_time'"):
        Options("dp", {"rank_by": "max"}, KNOWN).choice("rank_by", Objective.TOTAL)
