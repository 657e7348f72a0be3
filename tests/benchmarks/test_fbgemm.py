"""FBGEMM's measurements on an H100: what is fitted, what is held out, what ships."""

import sys
from statistics import median

import pytest

from benchmarks.fbgemm import profiles
from benchmarks.fbgemm.cases import cases
from benchmarks.prediction.gpu import measured
from milp_planner.features.calibrate.step_fit import predicted_parts
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
    """B200's terms are the H100's times one ratio; what the host dispatches stays."""
    h100, b200 = (load_profile(f"{name}-fbgemm") for name in ("h100", "b200"))
    assert h100.step is not None and b200.step is not None
    ratio, _ = profiles.slower()
    mine, theirs = b200.step.update["adam"], h100.step.update["adam"]
    assert mine.id_seconds == pytest.approx(ratio * theirs.id_seconds, rel=1e-3)
    assert [cost for _, cost in mine.missed] == pytest.approx(
        [ratio * cost for _, cost in theirs.missed], rel=1e-3
    )
    assert (mine.seconds, mine.step_seconds) == (theirs.seconds, theirs.step_seconds)
    assert "NOT measured" in b200.description and "NOT" not in h100.description


@pytest.mark.parametrize("part", profiles.MEASURED)
def test_fitted_cases_are_met(part: str) -> None:
    """The device's seconds of the cases, which vary one thing at a time, are met to 10% in the
    median, for lookups and for updates."""
    errors: dict[str, list[float]] = {}
    for spec, sample in profiles.in_hbm(part).items():
        said = predicted_parts(profiles.model(part), spec)
        for name in sample.parts:
            errors.setdefault(name, []).append(abs(said[name] / sample.part(name) - 1))
    assert {name: median(found) < 0.1 for name, found in errors.items()} == {
        "device lookup": True, "device update": True
    }  # fmt: skip


@pytest.mark.parametrize("part", profiles.MEASURED)
def test_every_stored_row_is_a_case(part: str) -> None:
    """The measurements are those of cases.py, in its order."""
    rows = profiles.stored("operators", part)["rows"]
    told = [case.to_dict() for case in cases()]
    keys = [name for name in told[0] if name != "tables"]
    assert [[row[k] for k in keys] for row in rows] == [[case[k] for k in keys] for case in told]
