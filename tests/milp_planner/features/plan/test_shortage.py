"""Why nothing fits: figures from a diagnosis, and the words on a terminal."""

from dataclasses import replace

import pytest

from formulations import Settings, solve
from formulations.capacity import budget
from milp_planner.features.plan.shortage import (
    TierShortage,
    draw_shortage,
    shortage_of,
    with_diagnosis,
)
from tests.milp_planner.features.example import example
from tests.milp_planner.features.plan.test_ranks import drawn


def test_figures_by_hand() -> None:
    """b needs 70 of HBM on some rank, 80 beside a's share, and has 65; dropping b is enough."""
    instance = example(hbm=65)
    settings = Settings(time_limit=10)
    outcome = with_diagnosis(instance, solve(instance, "cpsat", settings), settings)
    info = shortage_of(outcome.detail)
    assert info is not None
    hbm = next(tier for tier in info.tiers if tier.resource == "hbm")
    # with a table-wise (60) on another rank, b's 70 are alone on theirs
    assert hbm == TierShortage("hbm", "rank", 65, 65, 70, 5, helps=True, proved=True, at_least=70)
    ddr = next(tier for tier in info.tiers if tier.resource == "ddr")
    assert not ddr.helps and ddr.needed is None
    assert info.drop == ("b",) and info.drop_proved
    assert info.conflict_tables == ("b",) and info.conflict_constraints == ("hbm",)
    text = drawn(draw_shortage(info))
    assert "65 B" in text and "70 B" in text and "5 B" in text and "proved least" in text
    assert "it alone is never enough" in text
    assert "or drop 1 table: b (proved: no fewer do)" in text
    assert "a smallest conflict: b against hbm" in text


def test_what_is_unknown_is_not_claimed() -> None:
    """Answers cut short by the time limit say so."""
    detail = {
        "diagnosis": {
            "capacities": [
                {"resource": "hbm", "scope": "rank", "least": None, "bound": 3, "impossible": False,
                 "capacity": [1, 2], "proved": False, "short_by": None},
                {"resource": "ddr", "scope": "machine", "least": 9, "bound": 3, "impossible": False,
                 "capacity": [1], "proved": False, "short_by": 8},
            ],
            "drop": {"tables": ["a", "b"], "bound": 1, "impossible": False, "proved": False},
            "conflict": None,
        }
    }  # fmt: skip
    info = shortage_of(detail)
    assert info is not None and info.conflict_tables == ()
    text = drawn(draw_shortage(info))
    assert "1 B to 2 B" in text and "not found in the time limit" in text
    assert "less may do" in text and "drop 2 tables: a, b (fewer may do)" in text
    assert "proved" not in text and "conflict" not in text


def test_what_to_write_into_the_file() -> None:
    """The memory to the byte with reservations, and the bound below which no plan exists."""
    known = {"least": 3 * 2**30, "bound": 2 * 2**30, "impossible": False, "proved": False}
    entry = {"resource": "hbm", "scope": "rank", "capacity": [2**30], "short_by": 2**31, **known}
    drop = {"tables": None, "bound": 1, "impossible": False, "proved": False}
    detail = {
        "diagnosis": {
            "capacities": [entry],
            "drop": drop,
            "conflict": None,
            "advice": {"hbm": 4 * 2**30 + 1},
        }
    }
    info = shortage_of(detail)
    assert info is not None and info.tiers[0].memory == 4 * 2**30 + 1
    text = " ".join(drawn(draw_shortage(info)).split())
    assert "no plan exists below 2 GiB of hbm for each rank" in text
    assert "in the cluster's file: hbm: 4294967297 for each rank" in text


def test_a_feasible_outcome_has_none() -> None:
    """If there is a plan, there is no diagnosis."""
    settings = Settings(time_limit=10)
    outcome = with_diagnosis(example(), solve(example(), "cpsat", settings), settings)
    assert shortage_of(outcome.detail) is None


def test_multipliers_of_the_plan_are_not_those_of_a_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A re-plan brings multipliers for its own objective; the diagnosis asks about others, and
    answers as it does without them."""
    prices = solve(example(), "auto", Settings(time_limit=10)).certificate
    assert prices is not None
    monkeypatch.setattr(budget, "EXACT_ALONE", 0)  # the solver that starts from multipliers
    instance, settings = example(hbm=65), Settings(time_limit=10)
    outcome = solve(instance, "cpsat", settings)
    info, plain = (
        shortage_of(with_diagnosis(instance, outcome, each).detail)
        for each in (replace(settings, prices=prices), settings)
    )
    assert info is not None and info == plain
