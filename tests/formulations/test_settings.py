"""Reading the options of a formulation, and goals as users write them: names in order, how much of
the objective may be given up, and how full counts as even.

The table of formulations says truly what each of them proves and which options it has.
"""

import pytest

from formulations import Settings, Status, solve
from formulations.errors import InstanceError
from formulations.instance import Objective
from formulations.registry import FORMULATIONS, get
from formulations.settings import (
    FLAG,
    GOALS,
    Goals,
    OwnSettings,
    list_of,
    number,
    one_of,
    parse_goals,
    several,
    whole,
)
from tests.corpus import mistakes
from tests.formulations.examples import two_modes

KINDS = {
    "bins": whole(), "axes": list_of(), "only": list_of(["x", "y"]), "refine": FLAG,
    "rank_by": one_of(Objective), "share": number(), "pair": several(2, whole(0)),
}  # fmt: skip


def test_unknown_option_names_the_nearest() -> None:
    """A misspelt option is an error that names what was meant and what there is."""
    with pytest.raises(InstanceError, match=r"'bin'; did you mean 'bins'.*axes, bins"):
        OwnSettings("dp", {"bin": 3}, KINDS)
    with pytest.raises(InstanceError, match=r"no option 'bin' \(there are: none\)"):
        OwnSettings("dp", {"bin": 3}, {})


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
    """The error says what was found and what is allowed; True is not 1, and text is no flag."""
    with pytest.raises(InstanceError, match=rf"dp: option '{name}' is .* allowed: {allowed}"):
        OwnSettings("dp", {name: value}, KINDS)


def test_defaults_where_nothing_is_given() -> None:
    """Every reader falls back to its default."""
    options = OwnSettings("dp", {}, KINDS)
    assert options.integer("bins", 5) == 5
    assert options.names("axes", ("a", "b")) == ("a", "b")
    assert options.flag("refine", True)
    assert options.choice("rank_by", Objective.TOTAL) == "total"
    assert not options.has("bins")


def test_what_is_given_is_read() -> None:
    """Each reader gives back the value; one name stands for a list of it."""
    given = {"bins": 7, "axes": "hbm", "only": ["x", "y"], "refine": False, "rank_by": "total"}
    options = OwnSettings("dp", given, KINDS)
    assert (options.integer("bins", 5), options.flag("refine", True)) == (7, False)
    assert (options.names("axes", ()), options.names("only", ())) == (("hbm",), ("x", "y"))
    assert options.choice("rank_by", Objective.STEP_TIME) == "total"
    assert options.has("bins")


def test_goals_that_are_not_named_follow_those_that_are() -> None:
    """Order and tolerance as written; the rest in its usual order."""
    goals = parse_goals("step_time:0.1%, moves, shards", "step_time")
    assert goals.order == ("moves", "shards", "host_memory", "even_memory", "total")
    assert goals.tolerance == pytest.approx(0.001)
    assert goals.most(1_000_000) == 1_001_000
    assert parse_goals("shards", "step_time") == Goals(
        ("shards", "host_memory", "even_memory", "total", "moves"), 0.0
    )
    assert parse_goals("total:1%", "total").order == GOALS


def test_how_full_is_even_enough_is_named_with_it() -> None:
    """If even_memory is named, every bit of fill counts; if not, only fill above half."""
    text = "even_memory:80%,shards"
    assert parse_goals(text, "step_time").enough == pytest.approx(0.8)
    assert parse_goals("even_memory,shards", "step_time").enough == 0.0
    assert parse_goals("even_memory,shards", "step_time").step == 0.001
    assert parse_goals("shards", "step_time").step == 0.05
    assert parse_goals("shards", "step_time").enough == 0.5
    assert str(parse_goals(text, "step_time")) == (
        "objective:0%,even_memory:80%,shards,host_memory,total,moves"
    )


@pytest.mark.parametrize(
    ("text", "told"), mistakes(__file__, "what is not supported is refused in a sentence")
)
def test_what_is_not_supported_is_refused_in_a_sentence(text: str, told: str) -> None:
    """Misplaced percentages and unknown or repeated names are refused."""
    with pytest.raises(InstanceError, match="goals: ") as error:
        parse_goals(text, "step_time")
    assert told in str(error.value)


@pytest.mark.parametrize("name", FORMULATIONS)
def test_proves_what_it_says(name: str) -> None:
    """Each proves what its entry says of small instances: the optimum, or nothing."""
    settings = Settings(time_limit=20, workers=1, certificate=False, polish=False)
    outcome = solve(two_modes(90, 280), name, settings)
    if FORMULATIONS[name].proves == "nothing":
        assert outcome.status != Status.OPTIMAL
        assert outcome.bound is None
    else:
        assert FORMULATIONS[name].proves in ("optimum", "optimum or gap", "gap")
        assert outcome.status == Status.OPTIMAL


@pytest.mark.parametrize("name", FORMULATIONS)
def test_an_option_it_does_not_know_is_refused(name: str) -> None:
    """An option that a formulation does not have is refused, not ignored."""
    settings = Settings(time_limit=20, options={"nonsense": 1})
    with pytest.raises(InstanceError, match=f"{name} has no option 'nonsense'"):
        solve(two_modes(90, 280), name, settings)


def test_the_nearest_name_is_offered() -> None:
    """A misspelt formulation is refused with the nearest, an old one with what replaced it."""
    with pytest.raises(InstanceError, match="did you mean 'cpsat'"):
        get("cpsta")
    with pytest.raises(InstanceError, match=r"'uniform' is gone: ask for greedy with --set"):
        get("uniform")
    with pytest.raises(InstanceError, match="'distemb' is gone: benchmarks/distemb"):
        get("distemb")
