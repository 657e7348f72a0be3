"""A batch read back from its folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from milp_planner.errors import BadInput
from milp_planner.files import write_json
from scenarios.batch import read_batch, run_batch
from scenarios.batch.runner import SUITE_FILE
from scenarios.batch.store import FILE, Store
from tests.scenarios.batch.small import record, suite

BINS = {"formulations": ["dp"], "settings": {"dp.hbm_bins_per_device": [10, 20]}}


def test_it_is_what_the_run_left(tmp_path: Path) -> None:
    """Results, order and judgements are the run's; a swept setting is a scenario of its own."""
    half = {"name": "half", "hbm_headroom": 50}
    ran = run_batch(suite(**BINS, assertions=[half]), tmp_path, workers=1)
    read = read_batch(tmp_path)
    assert len(ran.results) == 4
    assert (read.suite, read.results) == (ran.suite, ran.results)
    assert [key for key, _ in read.tasks] == [key for key, _ in ran.tasks]
    assert read.judgements == ran.judgements


def test_results_of_other_versions_count_and_the_newest_wins(tmp_path: Path) -> None:
    """They are found by their scenario's name; scenarios that the suite lacks are left out."""
    small = suite(formulations=["cpsat"], sweep={"hbm": [5000, 6000]})
    write_json(tmp_path / SUITE_FILE, small.to_dict())
    with Store(tmp_path) as store:
        store.append(record("old", axes={"hbm": 5000}, objective=3))
        store.append(record("new", axes={"hbm": 5000}, objective=2, options={}))
        store.append(record("other", axes={"hbm": 7000}, objective=1))
    read = read_batch(tmp_path)
    assert len(read.tasks) == 2
    assert [r["objective"] for r in read.results] == [2]


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    """One sentence each: no suite, or a suite that is not valid."""
    with pytest.raises(BadInput, match="milp-planner batch"):
        read_batch(tmp_path)
    (tmp_path / FILE).write_text("")
    (tmp_path / SUITE_FILE).write_text(json.dumps({"name": "x"}))
    with pytest.raises(BadInput, match="is missing"):
        read_batch(tmp_path)
