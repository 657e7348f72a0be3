"""Measured peaks: how much they leave outside the embeddings, and what is refused."""

import pytest
import yaml

import milp_planner
from milp_planner.errors import BadInput
from milp_planner.features.fit_memory import MIB, Reading, fit_memory
from milp_planner.inputs import Model
from milp_planner.plans.ledger import ledger_of
from milp_planner.plans.placement import Plan
from tests.milp_planner.pricing.build import cluster, model

STATED = 7 * 2**30


def planned(batch: int) -> Plan:
    """A plan with so many samples a rank."""
    site = cluster(reservations={"kjt_multiple": 0, "outside_embeddings": STATED})
    read = model({"rows": 50_000}, {"rows": 9_000}, batch_per_rank=batch)
    return milp_planner.plan(read, site, formulation="greedy", time_limit=5)


@pytest.fixture(scope="module")
def plan() -> Plan:
    """Two tables on eight ranks; the cluster says what is outside the embeddings."""
    return planned(4096)


@pytest.fixture(scope="module")
def small() -> Plan:
    """The same at a quarter of the batch."""
    return planned(1024)


def used(plan: Plan, rank: int) -> int:
    """The bytes that the ledger predicts on a rank."""
    found = ledger_of(plan)
    return found.hbm[rank].used


def test_a_peak_as_predicted_gives_back_what_was_stated(plan: Plan) -> None:
    """Measured as predicted on every rank, the stated reservation comes back, without spread."""
    fit = fit_memory(Reading(plan, "p", rank, used(plan, rank)) for rank in range(8))
    assert (fit.outside, fit.least, fit.spread) == (STATED, STATED, 0)
    assert fit.yaml == "outside_embeddings:\n  measured_peak: 7168MiB\n"


def test_the_largest_is_reserved_in_whole_mebibytes(plan: Plan) -> None:
    """One byte more on a rank adds a MiB to the reservation; the spread is that byte."""
    peaks = [used(plan, 0), used(plan, 1) + 1]
    fit = fit_memory(Reading(plan, "p", rank, peak) for rank, peak in enumerate(peaks))
    assert (fit.outside, fit.spread) == (STATED + MIB, 1)


def test_two_batches_give_bytes_a_sample_and_read_back(plan: Plan, small: Plan) -> None:
    """The stated 7 GiB at 4,096 samples, and 3 GiB (and a few bytes) less at 1,024, give 2²⁰
    bytes a sample: in the model's file, these lines reserve at least what was measured at either
    batch."""
    less = 3072 * 2**20
    fit = fit_memory(
        [
            Reading(plan, "p", 0, used(plan, 0)),
            Reading(small, "q", 0, used(small, 0) - less),
            Reading(small, "q", 1, used(small, 1) - less - 5),
        ]
    )
    assert (fit.per_sample, fit.outside) == (2**20, STATED)
    said = yaml.safe_load(fit.yaml)
    site = plan.cluster.model_copy(
        update={"reservations": plan.cluster.reservations.model_copy(
            update={"outside_embeddings": None})}
    )  # fmt: skip
    for batch, needs in ((4096, STATED), (1024, STATED - less)):
        data = {**model({"rows": 50_000}, batch_per_rank=batch).to_dict(), **said}
        fixed = site.fixed_hbm(Model.from_dict(data))
        assert fixed["measured"] + fixed["dense_activations"] == needs


def test_a_peak_that_falls_with_the_batch_is_constant(plan: Plan, small: Plan) -> None:
    """The larger peak is reserved at both batches."""
    readings = Reading(plan, "p", 0, used(plan, 0)), Reading(small, "q", 0, used(small, 0) + MIB)
    fit = fit_memory(readings)
    assert (fit.per_sample, fit.outside) == (0, STATED + MIB)


@pytest.mark.parametrize(
    ("rank", "peak", "words"),
    [(8, 2**40, "found rank 8; allowed: ranks 0 to 7"), (0, 1, "less than its embeddings")],
)
def test_what_is_refused(plan: Plan, rank: int, peak: int, words: str) -> None:
    """An unknown rank, and a peak that the embeddings alone exceed."""
    with pytest.raises(BadInput, match=words):
        fit_memory([Reading(plan, "p", rank, peak)])


def test_no_peak() -> None:
    """There is nothing to fit to."""
    with pytest.raises(BadInput, match="one or more"):
        fit_memory([])
