"""Fingerprints of counted solves: they repeat, tell searches apart, and cover what they must."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.ablation import traces
from formulations import Settings, solve
from tests.formulations.search.test_plans import tight


def test_equal_solves_have_equal_fingerprints_and_others_differ() -> None:
    """The same seed repeats; another walks another way and has another trace or plan."""
    asked = Settings(time_limit=None, work_limit=0.3, workers=1, options=traces.TURNS)
    first, second, other = (
        traces.fingerprint(solve(tight(), "auto", replace(asked, seed=seed))) for seed in (1, 1, 2)
    )
    assert first == second
    assert traces.differences({"a": first}, {"a": second}) == []
    ((name, what),) = traces.differences({"a": first}, {"a": other})
    assert name == "a" and {"trace", "plan"} & set(what.split(", "))


def test_instances_are_those_of_the_first_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is stored stays, however instances would be made by then."""
    monkeypatch.setattr(traces, "instances", lambda: [("small/a", tight())])
    first = traces.stored(tmp_path)
    monkeypatch.setattr(traces, "instances", lambda: [])
    ((name, instance),) = traces.stored(tmp_path)
    assert name == first[0][0] == "small_a"
    assert instance.table_names == tight().table_names


def test_a_missing_solve_differs_in_everything() -> None:
    """Neither a lost nor a new solve counts as before."""
    assert traces.differences({"a": {}}, {"b": {}}) == [("a", "everything"), ("b", "everything")]


def test_solves_cover_objectives_places_fusion_and_machines() -> None:
    """At least twenty of each objective; every kind of place that options have; both goals."""
    every = list(traces.solves(list(traces.instances())))
    for objective in ("total", "busiest_rank", "step_time"):
        assert sum(instance.objective == objective for _, instance, _ in every) >= 20
    kinds = {int(kind) for _, i, _ in every for kind in np.unique(i.block_where)}
    assert len(kinds) >= 4
    assert any(i.fusion_groups for _, i, _ in every)
    assert any(len(i.machines) > 1 for _, i, _ in every)
    assert any(i.limits_moves for _, i, _ in every)
    assert all(asked.workers == 1 and asked.work_limit for *_, asked in every)
