"""Certificates found from LP duals: as strong as the LP, and never wrong."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from formulations.build import Block, InstanceBuilder, Shard
from formulations.certificate import bound_of, proves_infeasible
from formulations.certify import bound_certificate, certify, infeasibility_certificate, symmetric_lp
from formulations.instance import Instance, Objective, Where
from formulations.outcome import BoundSource, Status, StoppedBy, found, infeasible
from tests.formulations.brute_force import brute_force
from tests.formulations.strategies import instances

LOOSE = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))


@LOOSE
@given(instances())
def test_certified_bound_never_exceeds_the_optimum(instance: Instance) -> None:
    """With and without a cutoff, the LP's certificate stays below brute force."""
    truth = brute_force(instance).objective
    if truth is None:
        return
    for cutoff in (None, truth, truth + 1):
        certificate = bound_certificate(instance, cutoff)
        assert certificate is None or bound_of(instance, certificate) <= truth


@LOOSE
@given(instances())
def test_infeasibility_is_never_claimed_wrongly(instance: Instance) -> None:
    """A returned proof proves, and only for instances without a plan."""
    certificate = infeasibility_certificate(instance)
    if certificate is not None:
        assert proves_infeasible(instance, certificate)
        assert brute_force(instance).objective is None


@LOOSE
@given(instances(fusion=False, constraints=False))
def test_the_certificate_is_as_strong_as_the_lp(instance: Instance) -> None:
    """Without a cutoff the certificate proves at least what the LP says, up to rounding."""
    solved = symmetric_lp(instance)
    if solved is not None:
        assert solved.bound >= solved.value - 1e-6 * max(1.0, abs(solved.value))


def fractional() -> Instance:
    """Two tables on two ranks of 10; fast (use 8, cost 2) or slow (use 4, cost 6)."""
    builder = InstanceBuilder([[0], [1]], ["p"], [("hbm", "rank", 10)], Objective.BUSIEST_RANK)
    for table in "abcd":
        builder.add_table(table)
        builder.add_option("fast", [Block(Where.ANY_RANK, [Shard({"hbm": 8}, [2])])])
        builder.add_option("slow", [Block(Where.ANY_RANK, [Shard({"hbm": 4}, [6])])])
    return builder.build()


def test_lp_bound_by_hand() -> None:
    """One fast table frees 4 bytes too few: 16 + 4 of use at cost 4·6 − 4 = 20, halved: 10."""
    assert symmetric_lp(fractional()).bound == 10  # type: ignore[union-attr]


def test_certify_attaches_and_lifts_the_bound() -> None:
    """An outcome without a bound gets the certified one, with its source."""
    instance = fractional()
    truth = brute_force(instance)
    assert truth.placement is not None
    outcome = certify(instance, found(instance, "test", truth.placement, StoppedBy.TIME_LIMIT))
    assert outcome.certificate is not None
    assert outcome.certified_bound == outcome.bound == bound_of(instance, outcome.certificate)
    assert outcome.bound_source == BoundSource("lagrangian", exact=True)


def test_a_bound_that_meets_the_objective_is_optimal() -> None:
    """When the certificate reaches the objective, the outcome is proved by it."""
    builder = InstanceBuilder([[0]], ["p"], [("hbm", "rank", 3)], Objective.STEP_TIME)
    builder.add_table("t")
    builder.add_option("o", [Block(Where.EVERY_RANK, [Shard({"hbm": 3}, [4])])])
    instance = builder.build()
    placement = brute_force(instance).placement
    assert placement is not None
    outcome = certify(instance, found(instance, "test", placement, StoppedBy.TIME_LIMIT))
    assert (outcome.status, outcome.certified_bound) == (Status.OPTIMAL, 4)


def test_infeasible_outcomes_get_a_proof() -> None:
    """Three shards of 6 on two ranks of 8 exceed all capacity: the certificate shows it."""
    builder = InstanceBuilder([[0, 1]], ["p"], [("hbm", "rank", 8)])
    for table in "abc":
        builder.add_table(table)
        builder.add_option("o", [Block(Where.ANY_RANK, [Shard({"hbm": 6}, [1])])])
    instance = builder.build()
    outcome = certify(instance, infeasible("test", BoundSource("cpsat", exact=True)))
    assert outcome.certificate is not None
    assert proves_infeasible(instance, outcome.certificate)
