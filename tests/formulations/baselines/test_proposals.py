"""Proposals: pruning changes nothing, the first of equals wins, limits hold; kinds of options."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formulations import Instance, Objective, Settings, StoppedBy, check
from formulations.baselines.partition.partitioner import Partitioner
from formulations.baselines.partition.proposals import lower_bounds, option_kind, search
from formulations.clock import Clock
from formulations.fusion import without_fusion
from tests.formulations.baselines.test_partition import whole_tables
from tests.formulations.strategies import instances


def proposals(instance: Instance, draws: list[int]) -> np.ndarray:
    """Pseudo-random allowed options, int64 array [proposals, tables]."""
    rows = []
    for draw in draws:
        rng = np.random.default_rng(draw)
        row = []
        for table in range(instance.num_tables):
            allowed = [o for o in instance.options_of(table) if instance.allowed[o]]
            row.append(int(rng.choice(allowed)) if allowed else instance.options_of(table)[0])
        rows.append(row)
    return np.asarray(rows, dtype=np.int64).reshape(len(draws), instance.num_tables)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(instances(), st.lists(st.integers(0, 10**6), min_size=1, max_size=12))
def test_pruning_never_changes_the_answer(instance: Instance, draws: list[int]) -> None:
    """The search returns the best of all proposals, as found one by one without any bound."""
    partitioner, asked = Partitioner(instance), Settings(time_limit=None)
    batch = proposals(instance, draws)
    found = search(partitioner, [batch], asked, Clock(asked))
    best = None
    free = without_fusion(instance)
    for row in batch:
        partition = partitioner.partition(row)
        if partition is None:
            continue
        verdict = check(free, partition.placement(instance))
        if verdict.feasible:
            value = verdict.objectives[instance.objective.value]
            best = value if best is None else min(best, value)
    assert found.rating == best
    assert found.proposed == len(draws)
    assert found.stopped_by == StoppedBy.EXHAUSTED


@settings(max_examples=100, deadline=None)
@given(instances(constraints=False), st.integers(0, 10**6))
def test_bounds_are_bounds(instance: Instance, draw: int) -> None:
    """No placement that the partitioner makes costs less than the lower bound of its proposal."""
    partitioner = Partitioner(instance)
    [row] = proposals(instance, [draw])
    partition = partitioner.partition(row)
    if partition is None:
        return
    objectives = check(without_fusion(instance), partition.placement(instance)).objectives
    assert lower_bounds(partitioner, row[None])[0] <= objectives[instance.objective.value]


@pytest.mark.parametrize(("limit", "placed", "stopped"), [
    (2, 2, StoppedBy.WORK_LIMIT), (9, 3, StoppedBy.EXHAUSTED)])  # fmt: skip
def test_work_is_proposals_placed(limit: int, placed: int, stopped: StoppedBy) -> None:
    """The work limit counts placed proposals, and is named only where it ended the search."""
    instance = whole_tables([1, 1], [5, 5], 9)
    better = np.asarray([[0, 1]] * 3)
    asked = Settings(time_limit=None, work_limit=limit)
    partitioner = Partitioner(instance)
    # Equal proposals are pruned after the first by their bound; without bounds all are placed.
    object.__setattr__(partitioner.facts, "exact", False)
    found = search(partitioner, [better], asked, Clock(asked))
    assert (found.placed, found.stopped_by) == (placed, stopped)
    assert found.accepted == 1


def test_first_stops_at_the_first_that_can_be_placed() -> None:
    """With ``first`` the search ends at the first proposal that can be placed."""
    instance = whole_tables([1, 1], [5, 5], 9)
    asked = Settings(time_limit=None)
    found = search(Partitioner(instance), [np.asarray([[0, 1]] * 5)], asked, Clock(asked), True)
    assert found.placed == 1
    assert instance.objective == Objective.BUSIEST_RANK


def test_kind_is_the_name_before_a_separator() -> None:
    """The kind is the sharding type in names that our pricing and the TorchRec import write."""
    assert option_kind("column_wise:16/HBM_ONLY") == "column_wise"
    assert option_kind("row_wise/CACHING/0.3") == "row_wise"
    assert option_kind("plain") == "plain"
