"""Sharding groups in batches: axes of a cluster's ``two_d``, and the best division in a record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from milp_planner import plan
from milp_planner.inputs.two_d import TwoD
from milp_planner.plans.divisions import words_of
from scenarios.batch.execute import execute
from scenarios.batch.scenario import Scenario, expand
from scenarios.batch.suite import AXES, Suite, find_suite
from scenarios.batch.vary import vary_cluster
from scenarios.catalog import find_cluster

MODEL = """
name: m
workload: {batch_per_rank: 64}
defaults: {dim: 32, constraints: {sharding_types: [table_wise, row_wise], modes: [HBM_ONLY]}}
tables:
  - {name: a, rows: 1000}
  - {name: b, rows: 700}
"""


def scenarios(folder: Path, **sweep: Any) -> list[Scenario]:
    """A small model on four machines of two ranks."""
    (folder / "m.yaml").write_text(MODEL)
    axes = {"ranks_per_machine": 2, **sweep}
    suite = {
        "name": "s", "models": ["m.yaml"], "clusters": ["4x8xh100"], "sweep": axes,
        "formulations": ["cpsat"], "time_limit": 30,
    }  # fmt: skip
    return expand(Suite.from_dict(suite), folder)


def test_every_field_is_an_axis() -> None:
    """A new field needs an axis."""
    assert set(TwoD.model_fields) - {"whole"} <= set(AXES)


def test_axes_of_the_division() -> None:
    """Fields of two_d; all leaves the cluster undivided, whatever the other axes say."""
    place = find_cluster("4x8xh100")
    two_d = vary_cluster(place, {"sharding_group_size": 8, "sync_interval": 4}).two_d
    assert two_d == TwoD(sharding_group_size=8, sync_interval=4)
    assert vary_cluster(place, {"sharding_group_size": "all", "sync_interval": 4}) == place


@pytest.mark.parametrize("size", ["auto", 2, "all"])
def test_a_record_is_of_the_best_division(tmp_path: Path, size: Any) -> None:
    """It has plan's figures, the samples of all ranks, the division, and the time of its
    averaging."""
    sweep = {"sharding_group_size": size, "layout": "contiguous", "strategy": "default"}
    [scenario] = scenarios(tmp_path, **sweep, sync_interval=100_000)
    record = execute(scenario, scenario.key())
    assert record["error"] is None
    found = plan(*scenario.inputs(), formulation="cpsat", settings=scenario.settings())
    assert record["objective"] == found.outcome.objective
    assert record["samples"] == 64 * 8
    divided = found.cluster.two_d is not None
    assert record.get("division") == (words_of(found.cluster) if divided else None)
    assert (record["sync"] > 0) == (found.cluster.replicas > 1)
    if size == "auto":
        assert found.cluster.replicas > 1
        assert record["standing"] == "certified optimal"


def test_the_suite_that_ships() -> None:
    """Twelve points: two clusters, with and without groups, three intervals, equally many ranks."""
    suite, folder = find_suite("scale-up")
    found = expand(suite, folder)
    assert len(found) == 12
    assert {find_cluster(name).num_ranks for name in suite.clusters} == {72}
