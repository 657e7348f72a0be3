"""Steps of fused tables: dispatch once a step, and the device's work by table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from milp_planner.features.calibrate.held_out import cross_validated
from milp_planner.features.calibrate.machine import ON_DEVICE, Sample
from milp_planner.features.calibrate.step_fit import fit_steps, predicted_parts
from milp_planner.features.calibrate.steps import FITTED, TRAINING, StepSpec, draw_steps
from milp_planner.pricing.step_model import BatchTerms, StepModel, TableTerms

TRUTH = StepModel(
    tier="hbm",
    lookup=TableTerms(
        step_seconds=4e-4, start_seconds=1e-5, seconds=2e-6, id_seconds=1e-11, byte_seconds=2e-14,
        output_byte_seconds=4e-13, output_seconds=3e-10,
        missed=((2.0**24, 5e-14), (2.0**26, 2e-13)),
    ),
    update={
        "adam": TableTerms(
            step_seconds=5e-4, start_seconds=7e-5, id_seconds=1e-10, byte_seconds=8e-14,
            distinct_byte_seconds=9e-13, hottest_seconds=2e-10,
        )
    },
    batch=BatchTerms(seconds=1e-3, sample_seconds=1e-9),
    error={},
    origin="made up",
)  # fmt: skip


def made_up(parts: tuple[str, ...] = ()) -> dict[StepSpec, Sample]:
    """Small and large steps with the parts that the truth gives, all or those named."""
    small = draw_steps(replace(FITTED, optimizers=("adam",)), 40, most=2**27, moved=2**24)
    large = draw_steps(replace(TRAINING, optimizers=("adam",)), 30, most=2**28, moved=2**33)
    found = {}
    for spec in (*small, *large):
        said = {p: (s,) for p, s in predicted_parts(TRUTH, spec).items() if not parts or p in parts}
        found[spec] = Sample(spec.name, (1.0,), said)
    return found


def test_every_term_comes_back() -> None:
    """Without noise, the fit finds the truth: dispatch, starting kernels, and the work's terms."""
    found = fit_steps(made_up(), "hbm", "made up", fused=True).model
    assert found is not None
    for got, true in ((found.lookup, TRUTH.lookup), (found.update["adam"], TRUTH.update["adam"])):
        said, right = got.to_dict(), true.to_dict()
        knees = {size: cost for size, cost in said.pop("missed") if cost > 1e-20}
        assert knees == pytest.approx(dict(right.pop("missed")), rel=1e-6)
        assert said == pytest.approx(right, rel=1e-6, abs=1e-20)


def test_the_devices_work_is_not_taken_from_times_that_dispatch_hides() -> None:
    """If a whole step takes the longer of dispatch and work, the work's own seconds still set the
    price of a table."""
    known = made_up()
    for spec, sample in known.items():
        alone = sample.part(ON_DEVICE + "lookup")
        known[spec] = replace(sample, parts={**sample.parts, "lookup": (max(4e-4, alone),)})
    found = fit_steps(known, "hbm", "", fused=True).model
    assert found is not None
    errors = [
        predicted_parts(found, s)[ON_DEVICE + "lookup"] / known[s].part(ON_DEVICE + "lookup") - 1
        for s in known
    ]
    assert float(np.abs(errors).max()) < 1e-6


def test_cases_without_whole_steps_are_fitted_too() -> None:
    """Samples that have the device's seconds alone count for the work and not for dispatch."""
    known = made_up()
    for spec in list(known)[::2]:
        sample = known[spec]
        parts = {name: v for name, v in sample.parts.items() if name.startswith(ON_DEVICE)}
        known[spec] = replace(sample, parts=parts)
    found = fit_steps(known, "hbm", "", fused=True).model
    assert found is not None
    assert found.lookup.step_seconds == pytest.approx(4e-4, rel=1e-6)
    assert found.lookup.output_seconds == pytest.approx(3e-10, rel=1e-6)


def test_held_out_errors_name_the_devices_work() -> None:
    """Cross-validation judges whole steps and the device's work, by optimizer."""
    rows = cross_validated(made_up(), "hbm", fused=True)
    parts = {row.part for row in rows}
    assert {"lookup", "device lookup", "update adam", "device update adam"} <= parts
    assert max(row.high for row in rows) < 1e-6
