"""FBGEMM's measurements on an H100: what is fitted, what is held out, what ships."""

from __future__ import annotations

import sys
from statistics import median

import pytest

from benchmarks.fbgemm import profiles
from benchmarks.fbgemm.cases import cases
from benchmarks.prediction.gpu import measured
from milp_planner.pricing.profile import load_profile


def test_profiles_and_page_are_current(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command would change nothing."""
    monkeypatch.setattr(sys, "argv", ["profiles.py", "--check"])
    assert profiles.main() == 0


def test_held_out_steps_of_training_size_are_predicted() -> None:
    """Lookups to 15% and whole steps to 10% in the median, of steps that were not fitted."""
    held = measured(profiles.held_out())
    assert not {*held} & {*profiles.fitted_to()}
    found = profiles.errors(held)
    assert median(found["lookup", "training size"]) < 0.15
    assert median(found["step", "training size"]) < 0.10


def test_work_is_carried_over_and_dispatch_is_not() -> None:
    """H200's terms are the H100's by HBM's bandwidth; what the host dispatches stays."""
    h100, h200 = (load_profile(f"{name}-fbgemm") for name in ("h100", "h200"))
    assert h100.step is not None and h200.step is not None
    ratio = h100.hbm / h200.hbm
    mine, theirs = h200.step.update["adam"], h100.step.update["adam"]
    assert mine.id_seconds == pytest.approx(ratio * theirs.id_seconds, rel=1e-3)
    assert [cost for _, cost in mine.missed] == pytest.approx(
        [ratio * cost for _, cost in theirs.missed], rel=1e-3
    )
    assert (mine.seconds, mine.step_seconds) == (theirs.seconds, theirs.step_seconds)
    assert "NOT measured" in h200.description and "NOT" not in h100.description


def test_every_stored_row_is_a_case() -> None:
    """The measurements are those of cases.py, in its order."""
    rows = profiles.stored("operators")["rows"]
    told = [case.to_dict() for case in cases()]
    keys = [name for name in told[0] if name != "tables"]
    assert [[row[k] for k in keys] for row in rows] == [[case[k] for k in keys] for case in told]
