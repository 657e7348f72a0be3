"""What one rank may hold above the floors: the arrays against all combinations."""

import itertools
from random import Random

from formulations.proof.peaks import (
    FAR,
    Heights,
    Limits,
    Portion,
    highest,
    least_loads,
    undominated,
)


def random_tables(rng: Random) -> list[list[Portion]]:
    """Up to four tables of up to three portions."""
    return [
        [Portion(rng.randint(0, 9), rng.randint(0, 3), rng.randint(1, 6), 10 * t + i, 1)
         for i in range(rng.randint(0, 3))]
        for t in range(rng.randint(1, 4))
    ]  # fmt: skip


def test_least_loads_are_those_of_all_combinations() -> None:
    """For every number of steps and every weight, and with a pattern that attains it."""
    rng = Random(3)
    for _ in range(60):
        tables, limits = random_tables(rng), Limits(100, rng.randint(0, 5), rng.randint(0, 15))
        kept = [[p for p in table if p.steps <= limits.steps] for table in tables]
        kept = [[p._replace(weight=min(p.weight, limits.most + 1)) for p in t] for t in kept]
        least = least_loads([undominated(table) for table in kept], limits)
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


def test_memory_of_an_earlier_call_does_not_show() -> None:
    """Arrays in memory that was used before are the same as in new memory."""
    rng, space = Random(5), None
    for _ in range(40):
        tables, limits = random_tables(rng), Limits(100, 5, 15)
        fresh = least_loads(tables, Limits(100, 5, 15))
        space = fresh.load.copy() if space is None else space
        if len(space) < 6 * 6 * 17:
            space = fresh.load.repeat(20).ravel()
        space.fill(-7)
        kept = [[p for p in table if p.steps <= 5] for table in tables]
        assert (least_loads(kept, limits, space).load == fresh.load).all()


def test_highest_respects_the_box() -> None:
    """Weights are worth 5 for two ranks; both heights count at least what the box says."""
    least = least_loads([[Portion(4, 1, 1, 0, 1)], [Portion(3, 2, 1, 1, 1)]], Limits(9, 3, 2)).load
    free = Heights.within((0, 100), (0, 100), 100)
    assert highest(least, free, 1, 10, 1) == (20 - 7 - 3, 3, 2)
    assert highest(least, Heights.within((0, 6), (0, 100), 100), 1, 10, 1) == (5, 1, 1)
    assert highest(least, Heights.within((5, 100), (0, 100), 100), 1, 10, 1) == (10, 3, 2)
    assert highest(least, Heights.within((0, 100), (0, 100), 9), 1, 10, 1) == (5, 1, 1)
    assert Heights.within((5, 100), (5, 100), 9).empty
