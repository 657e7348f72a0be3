"""What one rank may hold above the floors: the arrays against all combinations."""

import itertools
from random import Random

import numpy as np
from numpy.typing import NDArray

from formulations.proof.portions import (
    FAR,
    Limits,
    Portion,
    cells,
    least_load,
    least_loads,
    lists_of,
    undominated,
    worthwhile,
)


def space_for(lists: list[list[Portion]], limits: Limits) -> NDArray[np.int64]:
    """Memory that was used before."""
    return np.full(cells(len(lists), limits), -7, dtype=np.int64)


def random_tables(rng: Random) -> list[list[Portion]]:
    """Up to four tables of up to three portions."""
    return [
        [Portion(rng.randint(0, 9), rng.randint(0, 3), rng.randint(1, 6), 10 * t + i, 1)
         for i in range(rng.randint(1, 3))]
        for t in range(rng.randint(1, 4))
    ]  # fmt: skip


def test_least_loads_are_those_of_all_combinations() -> None:
    """For every number of steps and every weight, and with a pattern that attains it."""
    rng = Random(3)
    for _ in range(60):
        tables, limits = random_tables(rng), Limits(100, rng.randint(0, 5), rng.randint(0, 15))
        kept = [[p for p in table if p.steps <= limits.steps] for table in tables]
        kept = [[p._replace(weight=min(p.weight, limits.most + 1)) for p in t] for t in kept]
        lists = [undominated(table) for table in kept if table]
        least = least_loads(lists, limits, space_for(lists, limits))
        assert (least_load(lists, limits) == least.load).all()
        held = [
            [p for p in chosen if p is not None]
            for chosen in itertools.product(*[[None, *table] for table in tables])
        ]
        for steps in range(limits.steps + 1):
            for weight in range(limits.most + 2):
                loads = [
                    sum(p.load for p in ps) for ps in held
                    if sum(p.steps for p in ps) <= steps and sum(p.weight for p in ps) >= weight
                ]  # fmt: skip
                assert least.load[steps, weight] == min(loads, default=FAR)
                if loads:
                    pattern = least.pattern(steps, weight)
                    taken = [p for t in kept for p in t if p.entry in pattern]
                    assert sum(p.load for p in taken) == min(loads)
                    assert sum(p.weight for p in taken) >= weight
                    assert sum(p.steps for p in taken) <= steps


def test_tables_that_are_alike_count_as_if_they_were_apart() -> None:
    """However many there are, and whatever is told apart: the same array from fewer lists."""
    rng, fewer = Random(7), 0
    for _ in range(300):
        limits = Limits(rng.randint(5, 40), rng.randint(0, 9), rng.randint(1, 25))
        own = [Portion(rng.randint(0, 9), rng.randint(0, 3), rng.randint(1, 6), i, 1)
               for i in range(rng.randint(1, 3))]  # fmt: skip
        own = undominated(p for p in own if p.load <= limits.high and p.steps <= limits.steps)
        own = [p._replace(weight=min(p.weight, limits.most + 1)) for p in own]
        tables = rng.randint(1, 20)
        if not own:
            continue
        lists = lists_of(own, tables, limits)
        fewer += len(lists) < tables
        apart, together = least_load([own] * tables, limits), least_load(lists, limits)
        assert (np.minimum(apart, limits.high + 1) == np.minimum(together, limits.high + 1)).all()
    assert fewer > 100


def test_what_several_of_another_replace_makes_no_difference() -> None:
    """Of classes of up to twenty tables that may hold the same, portions are left out, and the
    array stays as it is with every table apart: also where there are few tables, and where portions
    take nothing."""
    rng, fewer = Random(11), 0
    for _ in range(300):
        limits = Limits(rng.randint(5, 40), rng.randint(0, 9), rng.randint(1, 25))
        classes = []
        for _ in range(rng.randint(1, 4)):
            own = [Portion(rng.choice([0, rng.randint(0, 9)]), rng.randint(0, 3),
                           min(rng.randint(1, 6), limits.most + 1), i, 1)
                   for i in range(rng.randint(1, 3))]  # fmt: skip
            own = undominated(p for p in own if p.load <= limits.high and p.steps <= limits.steps)
            classes += [(own, rng.choice([1, 2, rng.randint(1, 20)]))] if own else []
        left = worthwhile(classes, limits)
        fewer += sum(len(own) for own, _ in left) < sum(len(own) for own, _ in classes)
        apart = least_load([own for own, n in classes for _ in range(n)], limits)
        lists = [part for own, n in left if own for part in lists_of(own, n, limits)]
        together = least_load(lists, limits)
        assert (np.minimum(apart, limits.high + 1) == np.minimum(together, limits.high + 1)).all()
    assert fewer > 100
