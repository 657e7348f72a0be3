"""Suites are read strictly, and the shipped ones are valid."""

from __future__ import annotations

from pathlib import Path

import pytest

from milp_planner.errors import BadInput
from milp_planner.request import PlanRequest
from scenarios.batch.assertions import matches
from scenarios.batch.scenario import cross, expand
from scenarios.batch.suite import Suite, find_suite, load_suite, suites
from scenarios.catalog import models
from tests.scenarios.batch.small import suite

LEAST = {
    "catalogue": 22,
    "dlrmv4-cap": 4,
    "dlrmv4-incidents": 48,
    "dp-vs-exact": 200,
    "capacity": 80,
    "scale-up": 12,
    "skew": 15,
    "growth": 18,
    "profiles": 20,
    "modes": 20,
    "neuroshard-tasks": 200,
    "dreamshard-tasks": 50,
}

HEAD = "name: s\nmodels: m\nclusters: c\n"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (HEAD + "sweep: {hbn: 1GiB}\n", (":4: sweep.hbn: unknown field", "did you mean hbm")),
        (HEAD + "sweep: {hbm: 80}\n", ("sweep.hbm",)),
        (HEAD + "sweep: {profile: h10}\n", (":4:", "found 'h10'", "did you mean h100")),
        (HEAD + "formulations: [cpsat, pd]\n", (":4:", "found 'pd'", "dp")),
        (HEAD + "objectives: total_time\n", (":4:", "found 'total_time'", "total")),
        (HEAD + "settings: {variant: first}\n", ("settings.variant", "FORMULATION.SETTING")),
        (HEAD + "settings: {dp.nonsense: 1}\n",
         (":4: settings.dp.nonsense", "dp has no option 'nonsense'", "variant")),
        (HEAD + "settings: {dp.variant: [first, frist]}\n",
         ("settings.dp.variant", "'frist', allowed: 'first' or 'merged'")),
        (HEAD + "assertions: [{name: a}]\n", ("asserts nothing",)),
        (HEAD + "assertions: [{name: a, fits: false, optimal: true}]\n", ("false contradicts",)),
        (HEAD + "time_limit: 0\n", (":4: time_limit", "above 0")),
        ("name: s\nclusters: c\n", ("models: is missing",)),
        ("name: s\nmodels: m\npairs: {m: c}\n", ("clusters: is missing",)),
        ("name: s\npairs: {m: []}\n", ("pairs.m: found 0 entries",)),
    ],
)  # fmt: skip
def test_mistakes_are_one_sentence(tmp_path: Path, text: str, parts: tuple[str, ...]) -> None:
    """File, line, field and what is allowed, before anything is solved."""
    path = tmp_path / "suite.yaml"
    path.write_text(text.replace("hbm: 80}", "hbm: [-1]}"))
    with pytest.raises(BadInput) as raised:
        load_suite(path)
    sentence = str(raised.value)
    assert sentence.startswith(f"{path}:") and all(part in sentence for part in parts), sentence


@pytest.mark.parametrize("name", LEAST)
def test_shipped_suites(name: str) -> None:
    """Each shipped suite is valid, names only what ships, and has its scenarios."""
    suite, folder = find_suite(name)
    assert suite.name == name
    assert len(expand(suite, folder)) >= LEAST[name]
    assert set(LEAST) == set(suites())


def test_unknown_suite_names_the_nearest() -> None:
    """For a misspelt bare name, the error gives the nearest one."""
    with pytest.raises(BadInput, match="did you mean growth"):
        find_suite("grwoth")


def test_one_value_is_a_list_of_one(tmp_path: Path) -> None:
    """A value that is not swept needs no brackets."""
    path = tmp_path / "suite.yaml"
    path.write_text(HEAD + "seeds: 3\nsweep: {growth: 5%}\n")
    suite = load_suite(path)
    assert (suite.models, suite.seeds, suite.sweep.to_dict()["growth"]) == (("m",), (3,), ["5"])


def test_pairs_come_beside_what_is_crossed(tmp_path: Path) -> None:
    """Each model of the pairs is planned only on its own clusters."""
    path = tmp_path / "suite.yaml"
    path.write_text(HEAD + "pairs: {a: [x, y], b: z}\n")
    assert load_suite(path).places == (("m", "c"), ("a", "x"), ("a", "y"), ("b", "z"))


def test_the_catalogue_has_every_shipped_model_once() -> None:
    """The suite ``catalogue`` plans every shipped model."""
    suite, _ = find_suite("catalogue")
    assert sorted(model for model, _ in suite.places) == sorted(entry.name for entry in models())


def test_any_field_is_an_axis(tmp_path: Path) -> None:
    """By its path, also in an assertion, beside those with a name; a path that leads nowhere is
    told with its line."""
    path = tmp_path / "suite.yaml"
    axes = "sweep: {hbm: 40GiB, tables.*.rows: [×1, ×2]}\n"
    where = "{tables.*.rows: ×2}"
    path.write_text(HEAD + axes + f"assertions: [{{name: a, where: {where}, fits: true}}]\n")
    suite = load_suite(path)
    found = list(cross(suite, str(tmp_path)))
    assert [dict(s.axes)["tables.*.rows"] for s in found] == ["×1", "×2"]
    assert [matches(suite.assertions[0].where, s) for s in found] == [False, True]
    path.write_text(HEAD + "sweep: {tabels.a.rows: 3}\n")
    with pytest.raises(BadInput, match=r":4: .*change of 'tabels.a.rows'"):
        load_suite(path)


def test_no_field_is_declared_beside_the_request() -> None:
    """Where a suite has a field of a request, alone or as a list, it has the request's type."""
    wrong = {
        "time_limit": -1, "work_limit": "soon", "gap": "x", "seed": -1, "objective": "step_tme",
    }  # fmt: skip
    several = {"seed": "seeds", "objective": "objectives"}
    assert (
        wrong.keys()
        == (PlanRequest.model_fields.keys() & Suite.model_fields.keys()) | several.keys()
    )
    for name, value in wrong.items():
        with pytest.raises(BadInput) as theirs:
            PlanRequest.of({"model": "m", "cluster": "c", name: value})
        with pytest.raises(BadInput) as ours:
            suite(**{several.get(name, name): value})
        said = str(ours.value).replace(f"{several.get(name)}[0]", name)
        assert said == str(theirs.value)
