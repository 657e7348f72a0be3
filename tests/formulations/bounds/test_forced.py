"""Bounds of single options against the same certificate on the instance with the option pinned."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from formulations import Instance, InstanceError, Objective
from formulations.bounds.forced import forced_bounds
from formulations.certificate import bound_of
from formulations.certify import bound_certificate, infeasibility_certificate
from formulations.instance import Pin
from tests.formulations.brute_force import brute_force
from tests.formulations.examples import two_modes
from tests.formulations.strategies import instances


@settings(max_examples=30, deadline=None)
@given(instance=instances(max_combinations=500, constraints=False))
def test_forced_bounds_are_those_of_a_pin_and_hold(instance: Instance) -> None:
    """At least what the pinned instance's certified bound says, at most the pinned optimum."""
    certificate = bound_certificate(instance, None)
    if certificate is None:
        return
    found = forced_bounds(instance, certificate)
    for option in range(instance.num_options):
        table = int(instance.table_of[option])
        pinned = replace(instance, pins=(Pin(table, option),))
        best = brute_force(pinned).objective
        bound = found[option]
        if bound is None:
            assert best is None
            continue
        if best is not None:
            assert bound <= best
        try:
            assert bound >= bound_of(pinned, certificate)
        except InstanceError:
            assert best is None


def test_dropped_options_are_bounded_by_the_cutoff() -> None:
    """An option whose own cost reaches the cutoff may only be said to cost that, or its own."""
    instance = two_modes(hbm=100, ddr=100)
    certificate = bound_certificate(instance, 6)
    assert certificate is not None
    assert certificate.cutoff == 6
    hybrid = instance.option_index(0, "HYBRID")
    assert forced_bounds(instance, certificate)[hybrid] == 9  # its own shard costs as much


def test_the_total_is_exact_without_budgets() -> None:
    """Free of budgets the LP is exact: pinning HYBRID costs 9 + 3."""
    instance = replace(two_modes(hbm=100, ddr=100), objective=Objective.TOTAL)
    certificate = bound_certificate(instance, None)
    assert certificate is not None
    assert forced_bounds(instance, certificate) == [12, 6, 12, 6]


def test_a_proof_of_infeasibility_bounds_nothing() -> None:
    """It is refused in a sentence."""
    instance = two_modes(hbm=1, ddr=1)
    certificate = infeasibility_certificate(instance)
    assert certificate is not None
    with pytest.raises(InstanceError, match="carries no bound"):
        forced_bounds(instance, certificate)
