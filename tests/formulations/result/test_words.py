"""The evidence behind a status, in words."""

from __future__ import annotations

import pytest

from formulations.result.certificate import Certificate
from formulations.result.outcome import (
    BoundSource,
    Outcome,
    Status,
    StoppedBy,
    certified_gap,
    standing,
)

CPSAT = BoundSource("cpsat", exact=True)


def outcome(status: Status, **values: object) -> Outcome:
    """An outcome with a plan of 200 unless said otherwise."""
    known: dict[str, object] = {"objective": 200, "bound_source": CPSAT}
    return Outcome(status, StoppedBy.PROOF, "auto").with_(**{**known, **values})


@pytest.mark.parametrize(
    ("status", "values", "words"),
    [
        (Status.OPTIMAL, {"certified_bound": 200}, "certified optimal"),
        (Status.OPTIMAL, {"certified_bound": 199}, "optimal by cpsat, certified to 0.50%"),
        (Status.OPTIMAL, {"objective": 30_001, "certified_bound": 30_000},
         "optimal by cpsat, certified to 0.01%"),
        (Status.OPTIMAL, {}, "optimal by cpsat, nothing certified"),
        (Status.OPTIMAL, {"certified_bound": -1}, "optimal by cpsat, hardly anything certified"),
        (Status.FEASIBLE, {"certified_bound": 150}, "feasible, certified to 25.00%"),
        (Status.FEASIBLE, {"objective": -200, "certified_bound": -201},
         "feasible, certified to 0.50%"),
        (Status.FEASIBLE, {"bound": 199, "before_goals": 199, "certified_bound": 199},
         "certified optimal but for 0.51% given up for goals"),
        (Status.FEASIBLE, {"objective": 10**6 + 56, "bound": 10**6, "before_goals": 10**6,
                           "certified_bound": 999_000},
         "optimal by cpsat but for 0.0056% given up for goals, certified to 0.11%"),
        (Status.FEASIBLE, {"bound": 198, "before_goals": 199, "certified_bound": 198},
         "feasible, certified to 1.00%"),
        (Status.FEASIBLE, {"bound": 199, "before_goals": 199,
                           "bound_source": BoundSource("highs", exact=False)},
         "feasible, nothing certified"),
        (Status.INFEASIBLE, {"objective": None}, "infeasible by cpsat"),
        (Status.INFEASIBLE, {"objective": None, "certificate": Certificate("bound", 1, (), ({},))},
         "infeasible by cpsat"),
        (Status.INFEASIBLE,
         {"objective": None, "certificate": Certificate("infeasible", None, (), ({},))},
         "certified infeasible"),
        (Status.UNKNOWN, {"objective": None}, "unknown"),
    ],
)  # fmt: skip
def test_words(status: Status, values: dict[str, object], words: str) -> None:
    """Certified first; a share is rounded up, so that it is never understated."""
    assert standing(outcome(status, **values)) == words


def test_certified_gap() -> None:
    """The gap to the certified bound, whatever the solver says; None where nothing is certified."""
    assert certified_gap(outcome(Status.OPTIMAL, bound=200, certified_bound=150)) == 0.25
    assert certified_gap(outcome(Status.OPTIMAL, bound=200)) is None
