"""The prediction experiment: its steps, its errors, its pages."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from benchmarks.calibration import figures as calibration_figures
from benchmarks.pages import stored, update
from benchmarks.prediction import figures as prediction_figures
from benchmarks.prediction.held_out import HELD_OUT, predicted
from benchmarks.prediction.run import COUNT, SEED, judged
from milp_planner.features.calibrate.machine import Sample
from milp_planner.features.calibrate.result import STEPS
from milp_planner.features.calibrate.steps import FITTED, StepSpec, StepTable, draw_steps
from milp_planner.pricing.profile import load_profile
from tests.milp_planner.features.calibrate.fake import TRUTH, table_seconds

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks"
PROFILE = load_profile("torchrec-default").model_copy(update={"step": TRUTH})


def test_no_held_out_step_was_fitted() -> None:
    """Widths, skews and optimizers differ, and no table is in both sets."""
    fitted = draw_steps(FITTED, STEPS, most=2**27, moved=2**24)
    held = draw_steps(HELD_OUT, COUNT, most=2**27, moved=2**24, seed=SEED)
    assert not set(FITTED.dims) & set(HELD_OUT.dims)
    assert not set(FITTED.alphas) & set(HELD_OUT.alphas)
    assert set(HELD_OUT.optimizers) - set(FITTED.optimizers) == {"adagrad"}
    tables = [{t for step in steps for t in step.tables} for steps in (fitted, held)]
    assert not tables[0] & tables[1]


SPEC = StepSpec((StepTable(9_000, 48, 5, 0.7), StepTable(70_000, 24, 1, 0.3)), 700, "adam")


def test_a_step_is_predicted_by_the_prices_of_its_tables() -> None:
    """By hand: the parts of a step on a known machine; without a step model there is no dense
    part."""
    lookup, update = table_seconds(TRUTH, SPEC)
    assert TRUTH.batch is not None
    assert predicted(SPEC, PROFILE) == {
        "lookup": pytest.approx(lookup, rel=1e-6), "update": pytest.approx(update, rel=1e-6),
        "dense": pytest.approx(TRUTH.batch.of(700, 2, 72)),
    }  # fmt: skip
    bare = PROFILE.model_copy(update={"step": None})
    assert set(predicted(SPEC, bare)) == {"lookup", "update"}


def row(**times: float) -> dict[str, Any]:
    """A step whose parts took these multiples of the predicted times."""
    said = predicted(SPEC, PROFILE)
    parts = {part: (times[part] * said[part],) * 4 for part in said}
    seconds = tuple(map(sum, zip(*parts.values(), strict=True)))
    return judged(SPEC, Sample("s", seconds, parts), PROFILE)


def test_errors_are_of_sums_of_parts() -> None:
    """Half the predicted time is an error of 100%; a part that is right does not hide the
    others."""
    halves = row(lookup=0.5, update=0.5, dense=0.5)
    late = row(lookup=2.0, update=1.0, dense=1.0)
    figures = prediction_figures
    assert figures.errors([halves, late], ("lookup",)) == pytest.approx([1.0, -0.5])
    assert figures.errors([halves, late], ("update",)) == pytest.approx([1.0, 0.0])
    step = figures.errors([late], figures.STEP)[0]
    assert -0.5 < step < 0
    assert late["repeat"] == 0


@pytest.mark.parametrize(
    ("figures", "folder", "pattern"),
    [
        (calibration_figures, "calibration", "*.raw.json"),
        (prediction_figures, "prediction", "*.json"),
    ],
)
def test_the_pages_show_the_newest_stored_results(
    figures: ModuleType, folder: str, pattern: str
) -> None:
    """Tables in docs/trust are generated from the stored result, not typed."""
    blocks = figures.blocks(stored(RESULTS / folder / "results", pattern))
    message = f"run: python benchmarks/{folder}/figures.py"
    assert update(figures.PAGE, blocks, check=True) == 0, message
