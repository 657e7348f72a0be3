"""Reading the options of a formulation."""

from __future__ import annotations

import pytest

from formulations.errors import InstanceError
from formulations.instance import Objective
from formulations.settings import FLAG, Options, list_of, number, one_of, several, whole

KINDS = {
    "bins": whole(), "axes": list_of(), "only": list_of(["x", "y"]), "refine": FLAG,
    "rank_by": one_of(Objective), "share": number(), "pair": several(2, whole(0)),
}  # fmt: skip


def test_unknown_option_names_the_nearest() -> None:
    """A misspelt option is an error that names what was meant and what there is."""
    with pytest.raises(InstanceError, match=r"'bin'; did you mean 'bins'.*axes, bins"):
        Options("dp", {"bin": 3}, KINDS)
    with pytest.raises(InstanceError, match=r"no option 'bin' \(there are: none\)"):
        Options("dp", {"bin": 3}, {})


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        *(("bins", value, "a whole number, 1 or more") for value in (0, -1, 2.5, "3", True, None)),
        *(("axes", value, "a list of names$") for value in ([1], 1, None)),
        *(("only", value, "a list of names out of x, y") for value in ("z", ["x", "z"])),
        *(("refine", value, "true or false") for value in (1, "true")),
        *(("share", value, "a number, 0 or more") for value in (-0.1, "1", True, float("inf"))),
        *(
            ("pair", value, "a list of 2, each a whole number, 0 or more")
            for value in (1, [1], [1, 0.5])
        ),
        ("rank_by", "max", "'total' or 'busiest_rank' or 'step_time'"),
    ],
)
def test_values_of_another_kind_are_refused(name: str, value: object, allowed: str) -> None:
    """What was found and what is allowed; True is not 1, and text is no flag."""
    with pytest.raises(InstanceError, match=rf"dp: option '{name}' is .* allowed: {allowed}"):
        Options("dp", {name: value}, KINDS)


def test_defaults_where_nothing_is_given() -> None:
    """Every reader falls back to its default."""
    options = Options("dp", {}, KINDS)
    assert options.integer("bins", 5) == 5
    assert options.names("axes", ("a", "b")) == ("a", "b")
    assert options.flag("refine", True)
    assert options.choice("rank_by", Objective.TOTAL) == "total"
    assert not options.has("bins")


def test_what_is_given_is_read() -> None:
    """Each reader gives back the value; one name stands for a list of it."""
    given = {"bins": 7, "axes": "hbm", "only": ["x", "y"], "refine": False, "rank_by": "total"}
    options = Options("dp", given, KINDS)
    assert (options.integer("bins", 5), options.flag("refine", True)) == (7, False)
    assert (options.names("axes", ()), options.names("only", ())) == (("hbm",), ("x", "y"))
    assert options.choice("rank_by", Objective.STEP_TIME) == "total"
    assert options.has("bins")
