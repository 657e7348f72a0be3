"""Bare names, paths and generated models.

The shipped suite ``catalogue``, shortened to one unit of counted work per model.

The shipped suite ``modes``: its assertions about the law of the tiers hold.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from milp_planner.cli.start import write_starters
from milp_planner.errors import BadInput
from scenarios.batch.assertions import judge, matches
from scenarios.batch.execute import execute
from scenarios.batch.scenario import Scenario, expand
from scenarios.batch.suite import Where, find_suite
from scenarios.catalog import clusters, find_cluster, find_model, models
from scenarios.generator import generate

MODELS = {
    "criteo-kaggle",
    "criteo-terabyte",
    "criteo-terabyte-full",
    "distemb-colossal",
    "distemb-jumbo",
    "distemb-large",
    "distemb-medium",
    "distemb-small",
    "distemb-tiny",
    "dlrm-856",
    "dlrmv3-kuairand",
    "dlrmv3-movielens-13b",
    "dlrmv3-streaming-100b",
    "dlrmv4-yambda5b",
    "embark-t180",
    "embark-t200",
    "embark-t510",
    "embark-t7",
    "kuairand-27k",
    "mlperf-dlrm-dcnv2",
    "torchrec-gb200",
    "torchrec-production",
}
GPUS = ("a100", "h100", "h200", "b200", "mi350x")


def test_what_ships() -> None:
    """The promised models and clusters ship, and each file is named like its content."""
    assert {entry.name for entry in models()} == MODELS
    machines = {f"{many}8x{gpu}" for many in ("", "4x", "16x") for gpu in GPUS}
    assert {entry.name for entry in clusters()} == machines | {
        "1xa10",
        "12x8xtorchrec-default",
        "2xgb200-nvl72",
        "4xdlrm-856-cpu",
        "8xb200-tight",
        "8xh100-ssd",
        "9x8xb200",
        "gb200-nvl72",
        "mixed-h100",
    }
    for entry in models():
        assert find_model(entry.name).name == entry.name
    for entry in clusters():
        assert find_cluster(entry.name).name == entry.name


def test_clusters_are_listed_by_size() -> None:
    """Small clusters come first."""
    names = [entry.name for entry in clusters()]
    assert names.index("8xh100") < names.index("4x8xb200") < names.index("16x8xb200")


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path is read as a path, and so is a file name without an ending."""
    model, cluster = write_starters(tmp_path)
    assert find_model(str(model)).name == "my-model"
    assert find_cluster(str(cluster)).name == "my-cluster"
    monkeypatch.chdir(tmp_path)
    model.rename("plain")
    assert find_model("plain").name == "my-model"


def test_generated() -> None:
    """The long bare name of a generated model gives the generator's model."""
    assert find_model("generated:tables=3, seed=7,kind=mixed") == generate(3, 7, "mixed")


@pytest.mark.parametrize(
    ("find", "name", "sentence"),
    [
        (find_model, "dlrmv4", r"no model is called 'dlrmv4' .*did you mean dlrmv4-yambda5b\?"),
        (find_cluster, "8xh10", r"no cluster is called '8xh10' .*did you mean 8xh100\?"),
        (find_model, "nowhere.yaml", r"nowhere\.yaml: no such file"),
        (find_model, "generated:tabels=3", r"found 'tabels=3', .*did you mean tables\?"),
        (find_model, "generated:tables=x", r"tables: found 'x'; allowed: a whole number"),
        (find_model, "generated:seed=3", r"tables is missing"),
        (find_model, "generated:tables=1,tables=2", r"the key tables is written twice"),
        (find_model, "generated:tables=1,kind=torch", r"kind: .*did you mean torchrec\?"),
        (find_model, "generated:", r"not key=value; allowed: tables, seed"),
    ],
)
def test_mistakes(find: object, name: str, sentence: str) -> None:
    """A wrong name gets one sentence with the nearest right one."""
    with pytest.raises(BadInput, match=sentence):
        find(name)  # type: ignore[operator]


LARGE = {"distemb-large", "distemb-jumbo", "distemb-colossal", "torchrec-production"}
"""Models whose first plans take longer than a test should."""


@pytest.mark.slow
@pytest.mark.parametrize("scenario", expand(*find_suite("catalogue")), ids=lambda s: s.model)
def test_every_model_has_a_plan(scenario: Scenario) -> None:
    """The plan passes the check and has a bound that a certificate proves."""
    if scenario.model in LARGE:
        pytest.skip("planned by the suite itself: milp-planner batch catalogue")
    asked = scenario.asked.model_copy(update={"work_limit": 1.0, "time_limit": 300.0})
    short = replace(scenario, asked=asked)
    record = execute(short, short.key())
    assert record["error"] is None
    assert record["status"] in ("optimal", "feasible"), record["note"]
    assert 0 < record["certified_bound"] <= record["objective"]


def test_caching_gives_way_to_hybrid_as_ddr_tightens() -> None:
    """On the A10 with its own HBM: CACHING, HYBRID, no plan; each proved."""
    suite, folder = find_suite("modes")
    law = Where.from_dict({"hbm": "23028MiB", "cost_model": "law"})
    chosen = [(s.key(), s) for s in expand(suite, folder) if matches(law, s)]
    assert len(chosen) == 5
    records = {key: execute(scenario, key) for key, scenario in chosen}
    judged = [judge(assertion, chosen, records) for assertion in suite.assertions]
    spoken = [each for each in judged if each.scenarios]
    assert len(spoken) == 3
    assert all(each.holds for each in spoken), [each.broken for each in spoken]
