"""Measured peaks: what they leave outside the embeddings, and what is refused."""

from __future__ import annotations

import pytest

import milp_planner
from milp_planner.errors import BadInput
from milp_planner.features.fit_memory.call import MIB, Reading, fit_memory
from milp_planner.plans.ledger import ledger_of
from milp_planner.plans.placement import Plan
from tests.milp_planner.pricing.build import cluster, model

STATED = 7 * 2**30


@pytest.fixture(scope="module")
def plan() -> Plan:
    """Two tables on eight ranks; the cluster says what is outside the embeddings."""
    site = cluster(reservations={"kjt_multiple": 0, "outside_embeddings": STATED})
    read = model({"rows": 50_000}, {"rows": 9_000}, batch_per_rank=4096)
    return milp_planner.plan(read, site, formulation="greedy", time_limit=5)


def used(plan: Plan, rank: int) -> int:
    """What the ledger predicts on a rank."""
    found = ledger_of(plan)
    assert found is not None
    return found.hbm[rank].used


def test_a_peak_as_predicted_gives_back_what_was_stated(plan: Plan) -> None:
    """Measured = predicted on every rank: the stated reservation, without spread."""
    fit = fit_memory(Reading(plan, "p", rank, used(plan, rank)) for rank in range(8))
    assert (fit.outside, fit.least, fit.spread) == (STATED, STATED, 0)
    assert fit.yaml == "outside_embeddings:\n  measured_peak: 7168MiB\n"


def test_the_largest_is_reserved_in_whole_mebibytes(plan: Plan) -> None:
    """One byte more on a rank: a MiB more to reserve; the spread is that byte."""
    peaks = [used(plan, 0), used(plan, 1) + 1]
    fit = fit_memory(Reading(plan, "p", rank, peak) for rank, peak in enumerate(peaks))
    assert (fit.outside, fit.spread) == (STATED + MIB, 1)


@pytest.mark.parametrize(
    ("rank", "peak", "words"),
    [(8, 2**40, "found rank 8; allowed: ranks 0 to 7"), (0, 1, "less than its embeddings")],
)
def test_what_is_refused(plan: Plan, rank: int, peak: int, words: str) -> None:
    """A rank that is not there, and a peak that the embeddings alone exceed."""
    with pytest.raises(BadInput, match=words):
        fit_memory([Reading(plan, "p", rank, peak)])


def test_no_peak() -> None:
    """Nothing to fit to."""
    with pytest.raises(BadInput, match="one or more"):
        fit_memory([])
