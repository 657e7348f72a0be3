"""The strategies of distributed-embeddings, by hand and against the optimum."""

import pytest
from hypothesis import given, settings

from benchmarks.distemb import slices
from benchmarks.distemb.slices import Strategy, deal
from formulations import (
    Instance,
    Outcome,
    Settings,
    Status,
)
from formulations.clock import Clock
from tests.formulations.baselines.test_partition import whole_tables
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import ANY, EVERY, at, built
from tests.formulations.strategies import instances


def distemb(instance: Instance, **options: object) -> Outcome:
    """The strategies' plan."""
    given = Settings(certificate=False, options=options)
    return slices.solve(instance, given, Clock(given))


SIZES = [8, 1, 5, 3, 2, 7]


@pytest.mark.parametrize(
    ("strategy", "tables"),
    [
        (Strategy.BASIC, [[0, 2, 4], [1, 3, 5]]),
        # by size 0 5 2 3 4 1, dealt back and forth: 0 | 5 2 | 3 4 | 1
        (Strategy.MEMORY_BALANCED, [[0, 4, 3], [5, 1, 2]]),
        # 8 | 7, 7 + 5, 8 + 3, 11 + 2, 12 + 1: the rank that stores less comes first
        (Strategy.MEMORY_OPTIMIZED, [[0, 3, 4], [5, 2, 1]]),
    ],
)
def test_dealt_by_hand(strategy: Strategy, tables: list[list[int]]) -> None:
    """Each strategy deals six tables to two ranks as computed by hand."""
    dealt = deal([(size, t) for t, size in enumerate(SIZES)], 2, strategy)
    assert sorted(map(sorted, dealt)) == sorted(map(sorted, tables))


def test_ids_do_not_count() -> None:
    """Equal sizes are dealt in turn, whatever they cost: 9 + 9 on one rank, 1 + 1 on the other."""
    instance = whole_tables([5, 5, 5, 5], [9, 1, 9, 1], 100)
    assert distemb(instance, strategy="basic").objective == 18
    assert brute_force(instance).objective == 10


def test_nor_do_capacities() -> None:
    """The strategies ignore capacities: basic overfills one rank, so it returns no plan."""
    instance = whole_tables([60, 10, 60, 10], [1, 1, 1, 1], 80)
    broken = distemb(instance, strategy="basic")
    assert broken.status == Status.UNKNOWN and "its plan breaks" in broken.note
    assert distemb(instance, strategy="memory_balanced").objective == 2


def sliced(sizes: list[int], ranks: int) -> Instance:
    """Tables that may be cut into two or four slices; a slice costs as much as it stores."""
    tables = [{f"cw{count}": at(ANY, size // count, hbm=size // count, count=count)
               for count in (1, 2, 4)} for size in sizes]  # fmt: skip
    return built(tables, machines=[range(ranks)], hbm=99)


@pytest.mark.parametrize(
    ("above", "pieces", "objective"),
    [(None, 2, 16), (16, 2, 16), (15, 3, 16), (8, 3, 16), (7, 6, 12), (1, 8, 12)],
)
def test_cut_by_size(above: int | None, pieces: int, objective: int) -> None:
    """Tables of 16 and 8 are cut into the fewest slices that are small enough, of the powers of two
    that the instance offers; the slices are dealt back and forth."""
    options = {} if above is None else {"slice_above": above}
    outcome = distemb(sliced([16, 8], 2), **options)
    assert (outcome.detail["slices"], outcome.objective) == (pieces, objective)


def test_cut_until_every_rank_has_some() -> None:
    """One table on four ranks is cut into four."""
    outcome = distemb(sliced([16], 4))
    assert (outcome.detail["slices"], outcome.objective) == (4, 4)


def test_a_table_without_whole_option() -> None:
    """A table with row-wise options only gets no plan, and the note names it."""
    outcome = distemb(built({"t": {"rw": at(EVERY, 1, hbm=1)}}, hbm=9))
    assert outcome.status == Status.UNKNOWN and "'t' has no option that leaves it" in outcome.note


def test_never_better_than_exact() -> None:
    """A strategy's plans cost at least the optimum; sixty instances give at least three plans."""
    answers = []

    @settings(max_examples=60, deadline=None)
    @given(instances())
    def each(instance: Instance) -> None:
        for strategy in Strategy:
            outcome = distemb(instance, strategy=str(strategy))
            if outcome.objective is not None:
                truth = brute_force(instance).objective
                assert truth is not None and outcome.objective >= truth
                answers.append(outcome)

    each()
    assert len(answers) >= 3
