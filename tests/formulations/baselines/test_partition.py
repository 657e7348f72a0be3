"""The greedy partitioner makes only allowed placements, some of them compared with ones by hand.

Proposals: pruning changes nothing, the first of equals wins, limits hold; kinds of options.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formulations import (
    Instance,
    Settings,
    StoppedBy,
    Where,
    check,
)
from formulations.baselines.partition.partitioner import Partitioner
from formulations.baselines.partition.proposals import lower_bounds, option_kind, search
from formulations.clock import Clock
from formulations.fusion import without_fusion
from formulations.instance import Objective, Pin
from formulations.result.check import compute_loads
from tests.formulations.brute_force import table_placements
from tests.formulations.examples import ANY, MACHINE, MACHINES, at, built, every_kind, placed
from tests.formulations.strategies import instances


def place(instance: Instance, sort_by: str = "storage") -> list[list[list[int]]] | None:
    """Ranks of every table's blocks at its first option."""
    partition = Partitioner(instance, sort_by).partition(instance.table_options[:-1])
    if partition is None:
        return None
    placement = partition.placement(instance)
    return [placement.to_lists(t) for t in range(instance.num_tables)]


def whole_tables(sizes: list[int], costs: list[int], hbm: int, machines: int = 1) -> Instance:
    """One any-rank shard a table on machines of two ranks."""
    tables = [at(ANY, cost, hbm=size) for size, cost in zip(sizes, costs, strict=True)]
    return built(tables, machines=[[2 * m, 2 * m + 1] for m in range(machines)], hbm=hbm)


@settings(max_examples=100, deadline=None)
@given(instances(), st.data())
def test_what_it_places_is_allowed(instance: Instance, data: st.DataObject) -> None:
    """Apart from fusion and moves, the check accepts every partition, with the same loads."""
    instance = without_fusion(instance)
    options = np.asarray(
        [
            data.draw(st.sampled_from([o for o in instance.options_of(t) if instance.allowed[o]]))
            for t in range(instance.num_tables)
            if any(instance.allowed[o] for o in instance.options_of(t))
        ],
        dtype=np.int64,
    )
    if len(options) < instance.num_tables:
        return
    sort_by = data.draw(st.sampled_from(["storage", "perf"]))
    partition = Partitioner(instance, sort_by).partition(options)
    if partition is None:
        return
    placement = partition.placement(instance)
    violations = [v for v in check(instance, placement).violations if " move" not in v]
    if any(p.ranks is not None for p in instance.pins):
        return  # shards go even to nonsensical pinned ranks; the check rejects them
    assert violations == []
    assert compute_loads(instance, placement).cost.sum(axis=1).tolist() == partition.load


@settings(max_examples=100, deadline=None)
@given(instances(max_tables=1, constraints=False))
def test_one_table_fails_only_where_nothing_fits(instance: Instance) -> None:
    """For one table of one block, the partitioner finds a place exactly where one fits."""
    free = without_fusion(instance)
    for option in range(instance.num_options):
        block, *more = (instance.block(b) for b in instance.blocks_of(option))
        together = block.where == Where.ANY_RANK_OF_ONE_MACHINE
        if more or not block.shared or together or block.count > 1:
            continue
        fits = any(
            check(free, placed([option], ranks[0])).feasible
            for ranks in table_placements(instance, option)
        )
        assert (Partitioner(instance).partition(np.asarray([option])) is not None) == fits


@pytest.mark.parametrize(("instance", "sort_by", "ranks"), [
    pytest.param(whole_tables([4, 9, 6], [1, 5, 2], 20), "storage", [1, 0, 1], id="largest first"),
    pytest.param(whole_tables([4, 9, 6], [7, 5, 2], 20), "perf", [0, 1, 1], id="dearest first"),
    pytest.param(whole_tables([4, 9, 6], [7, 5, 2], 20), "storage", [1, 0, 1], id="not by cost"),
    pytest.param(whole_tables([5] * 4, [1] * 4, 20, machines=2), "storage", [0, 2, 1, 3],
                 id="ties go to the first rank of each machine before any second, as in TorchRec"),
    pytest.param(built([at(ANY, 3, hbm=20)] * 2, hbm=[5, 50]), "storage", [1, 1],
                 id="a rank that is full is passed over"),
])  # fmt: skip
def test_each_goes_to_the_least_loaded_rank(
    instance: Instance, sort_by: str, ranks: list[int]
) -> None:
    """The largest or dearest table first; ranks by hand."""
    assert place(instance, sort_by) == [[[rank]] for rank in ranks]


def test_every_kind_of_place() -> None:
    """Loads by hand: 3, 11, 3, 9 before any choice; 10, 11, 10, 9 after the column shards."""
    partition = Partitioner(every_kind()).partition(np.arange(6))
    assert partition is not None
    ranks = partition.placement(every_kind()).ranks
    assert [[block.tolist() for block in table] for table in ranks] == [
        [[0, 1, 2, 3]],
        [[0, 2]],
        [[0, 1]],  # machine 0 carries 21, machine 1 carries 23 by then
        [[3, 2]],  # machine 1 carried 19, rank 3 less than rank 2; not twice on one rank
        [[3, 1]],
        [[]],
    ]
    assert partition.load == [15, 17, 12, 11]


def test_machine_resources_count_all_ranks_of_the_machine() -> None:
    """DDR is taken from the machine's pool, whichever of its ranks uses it."""
    ranks = place(built([at(ANY, 1, ddr=8)] * 3, machines=MACHINES, ddr=[10, 30]))
    assert ranks is not None
    assert sorted(r[0][0] // 2 for r in ranks) == [0, 1, 1]


def test_grid_takes_neighbouring_machines() -> None:
    """A block on two machines takes the two least loaded ones, or the two that it is pinned to."""
    tables = [at([0], 5, hbm=1), at(MACHINE, 1, hbm=2, count=2)]
    free = built(tables, machines=[[0], [1], [2]], hbm=9)
    assert place(free) == [[[0]], [[1, 2]]]
    assert place(replace(free, pins=(Pin(1, 1, ((2, 0),)),))) == [[[0]], [[0, 2]]]


@pytest.mark.parametrize(("count", "distinct", "ranks"), [(3, False, [0, 1, 0]), (3, True, None)])
def test_grid_wraps_only_where_machines_may_repeat(
    count: int, distinct: bool, ranks: list[int] | None
) -> None:
    """Three pieces on two machines go round robin, or nowhere when machines must differ."""
    grid = at(MACHINE, 1, hbm=2, count=count, distinct=distinct)
    found = place(built([grid], machines=[[0], [1]], hbm=9))
    assert found == (None if ranks is None else [[ranks]])


def test_a_failed_machine_leaves_no_trace() -> None:
    """If a shard does not fit on a machine, the shards put there before it are taken back."""
    tables = [at(MACHINE, 1, hbm=4), at(ANY, 1, hbm=3)]
    assert place(built(tables, machines=MACHINES, hbm=[5, 1, 5, 5])) == [[[2, 3]], [[0]]]


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
