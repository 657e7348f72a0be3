"""Several moments of a step: auto proves what brute force finds, and certificates close."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from formulations import Instance, Settings, solve
from formulations.evidence.verify import verify
from milp_planner.plans.compile import compile_instance
from milp_planner.pricing import price
from tests.formulations.brute_force import brute_force
from tests.milp_planner.pricing.build import cluster, model

SIZES = ((400_000, 1), (150_000, 2), (60_000, 1))
"""Rows and ids a sample of each table."""


def instance(mebibytes: int) -> Instance:
    """Three sequence tables on two ranks; the exchange takes as much as the tables."""
    tables = [
        {"rows": rows, "output": "sequence", "sequence_length": ids,
         "constraints": {"modes": ["HBM_ONLY", "HOST_ONLY"]}}
        for rows, ids in SIZES
    ]  # fmt: skip
    read = model(*tables, batch_per_rank=2**17, exchange_dtype="fp16")
    found = compile_instance(price(read, cluster(1, 2, hbm=f"{mebibytes}MiB", ddr="120MiB")))
    names = [resource.name for resource in found.resources]
    assert names == ["hbm@forward_send", "hbm@backward_send", "ddr"]
    return found


@pytest.mark.parametrize("mebibytes", [300, 450, 500, 550, 700, 900])
def test_auto_proves_the_optimum_over_all_moments(mebibytes: int) -> None:
    """Infeasible, tight and wide cases agree with brute force, are certified, and verify."""
    problem = instance(mebibytes)
    truth = brute_force(problem)
    outcome = solve(problem, "auto", Settings(time_limit=20))
    assert outcome.objective == truth.objective
    assert outcome.status.value == ("infeasible" if truth.objective is None else "optimal")
    assert outcome.certified_bound == truth.objective
    assert outcome.certificate is not None
    assert verify(problem, outcome).ok


@pytest.mark.parametrize("moment", [0, 1])
def test_every_moment_counts(moment: int) -> None:
    """In some case, ignoring one moment would allow a plan better than any that fits."""
    gains = []
    for mebibytes in range(440, 700, 20):
        problem = instance(mebibytes)
        resources = list(problem.resources)
        free = np.full_like(resources[moment].capacity, 2**40)
        resources[moment] = replace(resources[moment], capacity=free)
        ignoring = brute_force(replace(problem, resources=tuple(resources))).objective
        fits = brute_force(problem).objective
        assert ignoring is not None or fits is None
        gains.append(ignoring is not None and (fits is None or ignoring < fits))
    assert any(gains)
