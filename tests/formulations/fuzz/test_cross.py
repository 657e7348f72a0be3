"""The default formulation against enumeration, on every kind of instance."""

from __future__ import annotations

from itertools import product

import pytest

from formulations.instance import Objective, Where
from formulations.result.outcome import Status
from formulations.settings import Settings
from formulations.solve import solve
from tests.formulations.brute_force import brute_force
from tests.formulations.fuzz.cross import CELLS, draw
from tests.formulations.fuzz.judge import wrongs

#: Instances of each of the 972 cells, and a limit in units of work that none of them reaches.
DRAWS, WORK = 3, 20.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "objective"), list(product(Where, Objective)), ids=lambda kind: kind.name.lower()
)
def test_auto_decides_every_kind_of_instance(where: Where, objective: Objective) -> None:
    """By counted work, ``auto`` proves the optimum or infeasibility, and claims nothing false."""
    cells = [c for c in CELLS if (c.where, c.objective) == (where, objective)]
    assert len(cells) == 54
    feasible = 0
    for cell, number in product(cells, range(DRAWS)):
        instance = draw(cell, number)
        truth = brute_force(instance).objective
        settings = Settings(time_limit=None, work_limit=WORK, workers=1, seed=number)
        outcome = solve(instance, "auto", settings)
        assert wrongs(instance, truth, outcome) == [], (cell, number)
        decided = Status.INFEASIBLE if truth is None else Status.OPTIMAL
        assert outcome.status == decided, (cell, number)
        feasible += truth is not None
    assert feasible > len(cells) * DRAWS // 3
