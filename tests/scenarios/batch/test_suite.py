"""Suites are read strictly, and the shipped ones are valid.

Figures of sweeps: only scenarios that are otherwise alike share a line.
"""

from pathlib import Path
from typing import Any

import pytest

from milp_planner.errors import BadInput
from milp_planner.request import PlanRequest
from scenarios.batch.assertions import matches
from scenarios.batch.curves import rows_of
from scenarios.batch.info import batch_of
from scenarios.batch.page import render_batch
from scenarios.batch.scenario import cross, expand
from scenarios.batch.suite import Suite, find_suite, load_suite, suites
from scenarios.batch.sweeps import MOST_CHARTS, RATE, sweeps_of
from scenarios.catalog import models
from tests.scenarios.batch.records import failed, record
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


def test_time_against_what_is_swept() -> None:
    """Each point is the median of the plans at that number; failures and constants draw nothing."""
    records = [
        record(axes={"hbm": hbm, "profile": "h100", "skew": 1.0}, objective=value, seed=seed)
        for hbm, values in ((2, (9, 5, 7)), (1, (20,))) for seed, value in enumerate(values)
    ]  # fmt: skip
    records.append(failed(axes={"hbm": 4, "profile": "h100", "skew": 1.0}))
    (swept,) = sweeps_of(rows_of(records))
    assert (swept.axis, swept.objective_kind) == ("hbm", "total")
    assert [(c.series, c.points) for c in swept.curves] == [("dp", ((1.0, 20), (2.0, 7)))]


def test_time_against_names_that_are_swept() -> None:
    """Names keep the order of the suite, points are at their names' places, gaps stay."""
    records = [
        record(axes={"dist_type": rule}, objective=value)
        for rule, value in (("roundrobin", 9), ("continuous", 5), ("any", 7))
    ]
    records.append(failed(axes={"dist_type": "hash"}))
    (swept,) = sweeps_of(rows_of(records))
    assert swept.names == ("roundrobin", "continuous", "any", "hash")
    assert [c.points for c in swept.curves] == [((0.0, 9), (1.0, 5), (2.0, 7))]


def _machines_and_memory() -> list[dict[str, Any]]:
    """More memory never hurts, and 2 machines take longer steps of twice the samples; one machine
    with little memory has no plan."""
    times = {(1, 4): 90, (1, 8): 80, (2, 2): 120, (2, 4): 100, (2, 8): 96}
    return [
        record(axes={"hbm": hbm, "machines": machines}, objective=time * 10**9,
               objective_kind="step_time", samples=1000 * machines)
        for (machines, hbm), time in times.items()
    ]  # fmt: skip


def test_machine_counts_are_never_pooled() -> None:
    """Each machine count has its own line; a pooled median would rise with memory."""
    swept = next(s for s in sweeps_of(rows_of(_machines_and_memory())) if s.axis == "hbm")
    assert [(c.series, [y / 10**9 for _, y in c.points]) for c in swept.curves] == [
        ("machines 1", [90, 80]), ("machines 2", [120, 100, 96]),
    ]  # fmt: skip


def test_samples_a_second_stand_beside_step_times() -> None:
    """Rates are drawn if steps differ in samples: 1000 in 80 ms, 2000 in 96 ms."""
    rates = [s for s in sweeps_of(rows_of(_machines_and_memory())) if s.measure == RATE]
    assert [s.axis for s in rates] == ["hbm", "machines"]
    eight = next(c for c in rates[1].curves if c.series == "hbm 8 B")
    assert eight.points == ((1.0, pytest.approx(12_500)), (2.0, pytest.approx(20_833.33)))
    page = render_batch(batch_of("s", "", 5, _machines_and_memory()))
    assert "samples a second against machines" in page and ">20.83 k<" in page
    alike = [{**each, "samples": 7} for each in _machines_and_memory()]
    assert not any(s.measure == RATE for s in sweeps_of(rows_of(alike)))


def test_models_and_clusters_have_figures_of_their_own() -> None:
    """Each has its own scale; the page draws some of them, all folded except the first."""
    records = [
        record(model=f"m{i}", axes={"hbm": hbm}, objective=10**i + hbm)
        for i in range(MOST_CHARTS + 2) for hbm in (1, 2)
    ]  # fmt: skip
    found = sweeps_of(rows_of(records))
    assert [s.where for s in found] == [f"m{i} on c" for i in range(MOST_CHARTS + 2)]
    page = render_batch(batch_of("s", "", len(records), records))
    assert page.count("<details") == MOST_CHARTS and page.count("<details open>") == 1
    assert f"the first {MOST_CHARTS} charts of each kind are drawn" in page


def test_too_many_lines_make_more_figures() -> None:
    """Nine values of another axis get a figure each, so that no two lines look alike."""
    records = [
        record(axes={"hbm": hbm, "skew": skew}, objective=hbm)
        for hbm in (1, 2) for skew in range(9)
    ]  # fmt: skip
    hbm = [s for s in sweeps_of(rows_of(records)) if s.axis == "hbm"]
    assert [s.where for s in hbm] == [f"m on c, skew {skew}" for skew in range(9)]
    assert all(len(s.curves) == 1 for s in hbm)
