"""What may be asked of a plan is declared once, and every way of asking is made from it."""

import inspect
from collections.abc import Callable
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest

import milp_planner
from formulations import Objective, Settings
from milp_planner.cli.main import COMMANDS
from milp_planner.cli.options import parameter
from milp_planner.errors import BadInput
from milp_planner.plans.live import RUNTIMES
from milp_planner.request import (
    KEYED,
    Inputs,
    Limits,
    Option,
    PlanRequest,
)
from milp_planner.request.questions import Asked
from milp_planner.request.values import Moves
from tests.corpus import mistakes

_TWO = {"model": "m", "cluster": "c"}
_FROM = {**_TWO, "start": "p"}


def spellings() -> dict[str, str]:
    """The option of every field that a command line has."""
    return {
        name: option.spelling
        for name, field in PlanRequest.model_fields.items()
        for option in field.metadata
        if isinstance(option, Option)
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gap", "0.5%"), ("gap", 0.005), ("gap", np.float64(0.005)), ("moves_within", "0.5%"),
        ("moves_within", 0.005),
    ],
)  # fmt: skip
def test_a_share_has_one_unit(name: str, value: object) -> None:
    """With its sign or as a fraction, in Python and in text."""
    for written in (False, True):
        assert getattr(PlanRequest.of({**_FROM, name: value}, written=written), name) == 0.005


@pytest.mark.parametrize("value", ["0.5", "1", "50", 0.5])
def test_a_written_share_from_one_per_cent_has_its_sign(value: object) -> None:
    """Whoever writes 0.5 may mean either, and is asked."""
    with pytest.raises(BadInput, match=r"--gap: found .*; did you mean .*%"):
        Limits.of({"gap": value}, written=True)
    assert Limits.of({"gap": 0.5}).gap == 0.5


@pytest.mark.parametrize("value", [-0.1, 1, 1.0, float("nan"), "5", "120%", "", True])
def test_other_shares_are_refused(value: object) -> None:
    """One sentence says what is allowed."""
    with pytest.raises(BadInput, match=r"gap: found .*; allowed: a share"):
        Limits.of({"gap": value})


def test_text_and_values_mean_the_same() -> None:
    """What a person writes is what a program says."""
    text = {
        "time_limit": "3", "work_limit": "1.5", "seed": "7", "workers": "1", "formulation": "dp",
        "options": ["axis_cap=100"], "reserve": ["hbm_percent=10", "ddr_bytes=64GB"],
        "lost": "1,3-4", "max_moved": "5%", "move_cost": "1ms/GB",
    }  # fmt: skip
    values = {
        "time_limit": 3, "work_limit": 1.5, "seed": np.int64(7), "workers": 1, "formulation": "dp",
        "options": {"axis_cap": 100}, "reserve": {"hbm_percent": 10, "ddr_bytes": "64GB"},
        "lost": [1, 3, 4], "max_moved": Moves(share=0.05), "move_cost": Fraction(1),
    }  # fmt: skip
    assert PlanRequest.of({**_FROM, **text}, written=True) == PlanRequest.of({**_FROM, **values})
    asked = [PlanRequest.of({**_FROM, "max_moved": most}).max_moved for most in (20, "10GB")]
    assert asked == [Moves(tables=20), Moves(bytes=10**10)]


def test_settings_of_a_formulation_are_json_or_text() -> None:
    """Numbers, truth values and lists keep their types; anything else is text."""
    pairs = ["bins=100", "a=1e-3", "solver=cbc", "fast=true", 'axes=["hbm","ddr"]', "b=c=d"]
    assert Limits.of({"options": pairs}).options == {
        "bins": 100, "a": 0.001, "solver": "cbc", "fast": True, "axes": ["hbm", "ddr"], "b": "c=d",
    }  # fmt: skip


@pytest.mark.parametrize(("data", "sentence"), mistakes(__file__, "mistakes name the option"))
def test_mistakes_name_the_option(data: dict[str, Any], sentence: str) -> None:
    """What was found, and what is allowed."""
    with pytest.raises(BadInput, match=sentence.replace("?", r"\?")):
        PlanRequest.of({**_FROM, **data}, written=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [("lost", (1,)), ("max_moved", 0), ("moves_within", 0.005), ("move_cost", "1ms/GB"),
     ("executable", "torchrec")],
)  # fmt: skip
def test_what_goes_with_the_plan_to_start_from(name: str, value: object) -> None:
    """It is named as the asker writes it."""
    with pytest.raises(BadInput, match=f"{name}: goes with start, the plan to start from"):
        PlanRequest.of({**_TWO, name: value})
    with pytest.raises(BadInput, match="goes with --start, the plan to start from"):
        PlanRequest.of({**_TWO, name: value}, written=True)


def test_former_names_of_the_start() -> None:
    """before and today are read as start; with today nothing is given up for bytes that stay."""
    assert PlanRequest.of({**_TWO, "before": "p"}) == PlanRequest.of(_FROM)
    found = PlanRequest.of({**_TWO, "today": "p"})
    assert found == PlanRequest.of({**_FROM, "moves_within": 0.0})
    stated = {"today": "p", "moves_within": "1%"}
    assert PlanRequest.of({**_TWO, **stated}).moves.within == 0.01
    with pytest.raises(BadInput, match=r"^today: does not go with before"):
        PlanRequest.of({**_TWO, "before": "p", "today": "p"})


def test_settings_carry_everything() -> None:
    """Fields that are asked for override the base; the rest is the base, or a minute."""
    asked = PlanRequest.of({**_TWO, "time_limit": 3, "seed": 7, "gap": "1%", "goals": "moves"})
    made = asked.settings(Settings(workers=1, seed=5, work_limit=2.0))
    assert (made.time_limit, made.work_limit, made.seed, made.workers) == (3.0, 2.0, 7, 1)
    assert made.gap == 0.01 and made.goals.order[0] == "moves"
    assert Limits().settings().time_limit == 60.0 and Limits().settings().workers >= 1
    alone = Limits.of({"work_limit": 3}).settings()
    assert alone.time_limit is None and alone.work_limit == 3


def test_names_are_those_of_what_they_stand_for() -> None:
    """Objectives and runtimes are declared without importing what knows them."""
    assert {each.value for each in Objective} == {
        *get_args(PlanRequest.model_fields["objective"].annotation)
    }
    assert set(RUNTIMES) == {"torchrec"}
    assert set(KEYED) <= set(PlanRequest.model_fields)


def test_every_field_has_help() -> None:
    """It is what --help, the documentation and the service's schema say."""
    assert all(field.description for field in PlanRequest.model_fields.values())


def test_no_keyword_is_declared_beside_the_request() -> None:
    """Calls that plan name inputs and runtime objects; what may be asked is the request's."""
    for call in (milp_planner.plan, milp_planner.audit, milp_planner.compare, milp_planner.explain):
        parameters = inspect.signature(call).parameters.values()
        assert any(each.kind is each.VAR_KEYWORD for each in parameters), call
        named = {each.name for each in parameters} - {"model", "cluster", "plan"}
        assert named.isdisjoint(PlanRequest.model_fields), call


def declared(command: Callable[..., None]) -> list[Any]:
    """Typer's declarations of a command's options and arguments."""
    annotations = [
        each.annotation for each in inspect.signature(command, eval_str=True).parameters.values()
    ]
    return [each.__metadata__[0] for each in annotations if hasattr(each, "__metadata__")]


def test_no_option_is_declared_beside_the_request() -> None:
    """Where a command has an option of a request's name, it is the request's: its help says so."""
    asked = spellings()
    by_option = {spelling.split()[0]: name for name, spelling in asked.items()}
    other = {  # of the same name, and about something else
        ("calibrate", "--seed"),
        ("batch", "--workers"), ("serve", "--cache"), ("compare", "--objective"),
        ("import-plan", "--from"), ("torchrec-dry-run", "--objective"), ("explain", "--start"),
    }  # fmt: skip
    found = set()
    for command in COMMANDS:
        for option in declared(command.load()):
            told = {option.default, *(option.param_decls or ())} & by_option.keys()
            for name in (by_option[each] for each in told if (command.name, each) not in other):
                made = parameter(PlanRequest.model_fields[name], name).annotation.__metadata__[0]
                assert option.help.split("default:")[0] == made.help.split("default:")[0], name
                found.add(name)
    assert found == {name for name, spelling in asked.items() if spelling.startswith("-")}


def test_every_field_is_about_the_inputs_the_start_the_key_or_when_to_stop() -> None:
    """A field that decides a plan and were not in the cache's key would give a wrong answer."""
    inputs = {*Inputs.model_fields, "objective", "start", "lost", "max_moved",
              "executable"}  # fmt: skip
    stops = {"time_limit", "work_limit", "gap", "workers", "diagnose"}
    beside = {"formulation", "moves_within"}  # in the key, but no settings of a solve
    apart = {"cache", "trainer", "move_cost"}  # the last is not cached, the one before plans twice
    assert {*KEYED, *inputs, *stops, *beside, *apart} == PlanRequest.model_fields.keys()


def test_questions_of_explain_are_declared_once() -> None:
    """Their parameters are keywords, options and the public Asked; all have help."""
    assert all(field.description for field in Asked.model_fields.values())
    bare = {name for name in Asked.model_fields if not Asked.spelled(name).startswith("-")}
    assert bare == {"machines", "by"}
    asked = Asked.of({"tables": ["a", "b"], "over": "hbm,ddr", "budgets": "3"}, written=True)
    assert asked == Asked(tables=("a", "b"), over=("hbm", "ddr"), budgets=3)
    for data, said in (
        ({"over": "hbn"}, "--over: found 'hbn'; allowed: hbm, ddr, ssd, machines, stash; did you"),
        ({"budgets": "0"}, "--budgets: found '0'; allowed: 1 to 200, or a list"),
        ({"budgets": "1TB,2", "over": "machines"}, "needs numbers of machines such as 1,2,4"),
        ({"enough": "0.5"}, "--within: found '0.5'; .* did you mean 0.5%, or 50%"),
        ({"alternatives": "0"}, "--alternatives: found '0'; allowed: at least 1"),
        ({"limits": "1GB,x"}, "--limits: found 'x'; allowed: a size"),
    ):
        with pytest.raises(BadInput, match=said):
            Asked.of(data, written=True)


def test_inputs_change_by_what_is_asked() -> None:
    """Profile and reservations override the cluster's own; a mistake names the option."""
    place = milp_planner.Cluster.from_dict(
        {"name": "c", "machines": 1, "ranks_per_machine": 1, "hbm": "1GiB", "ddr": "1GiB"}
    )
    asked = Inputs.of({**_TWO, "profile": "h100", "reserve": {"hbm_percent": 10}})
    table = {"name": "t", "rows": 10, "dim": 4}
    model = milp_planner.Model.from_dict(
        {"name": "m", "workload": {"batch_per_rank": 8}, "tables": [table]}
    )
    _, changed = asked.changed(model, place)
    assert changed.profile == "h100" and changed.reservations.hbm_percent == 10
    assert Inputs.of(_TWO).changed(model, place) == (model, place)
    with pytest.raises(BadInput, match=r"--reserve: reservations\.hbm_prcent"):
        Inputs.of({**_TWO, "reserve": {"hbm_prcent": 10}}).changed(model, place)
    both = Inputs.of({**_TWO, "change": ["tables.t.rows=+50%", "hbm=2GiB"]}, written=True)
    grown, larger = both.changed(model, place)
    assert grown.table("t").rows == 15 and larger.ranks[0].hbm_bytes == 2**31
