"""Both exact models on the published cases and against each other."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formulations.evidence.verify import verify
from formulations.instance import Instance
from formulations.result.check import check
from formulations.result.outcome import Outcome, Status
from formulations.result.placement import Placement
from formulations.settings import Settings
from formulations.solve import solve
from tests.formulations.brute_force import table_placements
from tests.formulations.examples import EVERY, MACHINES, at, built
from tests.formulations.strategies import instances

EXACT = ("cpsat", "mip")


def exactly(instance: Instance, formulation: str) -> Outcome:
    """Solve without a limit on one worker."""
    wishes = Settings(time_limit=None, workers=1, certificate=False)
    return solve(instance, formulation, wishes)


def two_modes(hbm: int, ddr: int, tables: int = 2) -> Instance:
    """Tables that are HYBRID (more HBM, cheaper) or CACHING (more DDR), on two ranks."""
    modes = {"HYBRID": at(EVERY, 7, hbm=60, ddr=40), "CACHING": at(EVERY, 10, hbm=30, ddr=100)}
    return built([modes] * tables, "step_time", phases=["lookup"], hbm=hbm, ddr=ddr)


def petabytes(room: int) -> Instance:
    """Two tables that need a petabyte and a byte each."""
    return built([at(EVERY, 1, ddr=2**50 + 1)] * 2, "total", [[0]], ddr=room)


def two_memories(ddr: int) -> Instance:
    """A table for either memory, without HBM."""
    table = {"HBM_ONLY": at(EVERY, 1, hbm=1), "HOST_ONLY": at(EVERY, 9, ddr=10)}
    return built([table], "step_time", [[0]], hbm=0, ddr=ddr)


#: Instances and the optimum of each; None: there is no plan.
CASES = {
    "both HYBRID break HBM, both CACHING break DDR, so one of each": (two_modes(100, 300), 17),
    "one of each needs 90 HBM and 280 DDR a machine": (two_modes(90, 280), 17),
    "a byte of HBM is missing": (two_modes(89, 280), None),
    "a byte of DDR is missing": (two_modes(90, 279), None),
    "petabytes are met to the byte": (petabytes(2 * (2**50 + 1)), 2),
    "of petabytes a byte is missing": (petabytes(2 * (2**50 + 1) - 1), None),
    "no tables": (built([], "step_time", hbm=0), 0),
    "one table is HYBRID": (two_modes(60, 80, tables=1), 7),
    "one table is CACHING": (two_modes(30, 200, tables=1), 10),
    "no HBM leaves what lives in DDR": (two_memories(10), 9),
    "no memory at all": (two_memories(0), None),
}


@pytest.mark.parametrize("formulation", EXACT)
@pytest.mark.parametrize("case", CASES)
def test_cases_by_hand(formulation: str, case: str) -> None:
    """The optimum with its bound and a plan of all tables, or the proof that there is none."""
    instance, optimum = CASES[case]
    outcome = exactly(instance, formulation)
    assert outcome.status == (Status.INFEASIBLE if optimum is None else Status.OPTIMAL)
    assert outcome.objective == optimum
    if optimum is not None:
        assert outcome.bound == optimum and outcome.placement is not None
        assert len(outcome.placement.options) == instance.num_tables


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(instances(max_tables=6, max_combinations=10**7), st.integers(1, 2))
def test_the_two_models_agree(instance: Instance, workers: int) -> None:
    """Beyond what brute force can enumerate, two independent models give one answer."""
    wishes = Settings(time_limit=60, workers=workers, certificate=False, polish=False)
    first, second = (solve(instance, name, wishes) for name in EXACT)
    assert (first.status == Status.INFEASIBLE) == (second.placement is None)
    assert first.objective == second.objective


def test_the_two_models_agree_on_a_hundred_tables() -> None:
    """100 tables × 6 options under two tight budgets, costs in picoseconds."""
    rng, tables = np.random.default_rng(7), []
    for _ in range(100):
        size = int(rng.integers(10**7, 10**9))
        parts = [(tenth, size * tenth // 10) for tenth in range(0, 11, 2)]
        tables.append({
            f"x{tenth}": at(EVERY, int(rng.integers(10**6, 10**8)) * (13 - tenth), 10**6, hbm=hbm,
                            ddr=size - hbm) for tenth, hbm in parts
        })  # fmt: skip
    instance = built(tables, "step_time", MACHINES, phases="ab", hbm=24 * 10**9, ddr=90 * 10**9)
    first, second = (exactly(instance, name) for name in EXACT)
    assert first.status == Status.OPTIMAL
    assert second.objective is not None and first.objective is not None
    assert abs(second.objective - first.objective) <= 1e-9 * first.objective


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(instances(max_combinations=2000), st.data())
def test_false_outcomes_are_refuted(instance: Instance, data: st.DataObject) -> None:
    """A proved outcome verifies; moved shards, other options and false numbers do not."""
    outcome = solve(instance, "cpsat", Settings(time_limit=None, workers=1, polish=False))
    assert verify(instance, outcome).ok
    if outcome.placement is None or outcome.objective is None or outcome.bound is None:
        return
    lower = outcome.with_(objective=outcome.objective - 1)
    higher = outcome.with_(bound=outcome.bound + 1)
    assert not verify(instance, lower).ok
    assert not verify(instance, higher).ok
    other = _another(instance, outcome.placement, data)
    if other is not None:
        verdict = check(instance, other)
        changed = outcome.with_(placement=other)
        same = verdict.feasible and verdict.objectives == outcome.objectives
        assert verify(instance, changed).ok is same


def _another(instance: Instance, plan: Placement, data: st.DataObject) -> Placement | None:
    """The plan with one table at another option, or its shards on other ranks."""
    if not instance.num_tables:
        return None
    table = data.draw(st.integers(0, instance.num_tables - 1))
    option = data.draw(st.sampled_from(list(instance.options_of(table))))
    ways = list(table_placements(instance, option))
    if not ways:
        return None
    ranks = [np.asarray(r, dtype=np.int64) for r in data.draw(st.sampled_from(ways))]
    options = plan.options.copy()
    options[table] = option
    return Placement(options, [*plan.ranks[:table], ranks, *plan.ranks[table + 1 :]])
