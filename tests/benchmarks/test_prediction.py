"""The prediction experiment: its steps, its errors, its pages."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.pages import stored, update
from benchmarks.prediction import figures as prediction_figures
from benchmarks.prediction import gpu
from benchmarks.prediction.held_out import HELD_OUT, predicted
from benchmarks.prediction.run import COUNT, SEED, judged
from milp_planner.features.calibrate.machine import Sample
from milp_planner.features.calibrate.result import STEPS
from milp_planner.features.calibrate.steps import FITTED, StepSpec, StepTable, draw_steps
from milp_planner.pricing.profile import load_profile
from tests.milp_planner.features.calibrate.fake import TRUTH, table_seconds

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks"
SIZES = ("small", "training size")
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


def test_the_page_shows_the_newest_stored_result() -> None:
    """Tables in docs/trust are generated from the stored result, not typed."""
    blocks = prediction_figures.blocks(stored(RESULTS / "prediction" / "results"))
    message = "run: python benchmarks/prediction/figures.py"
    assert update(prediction_figures.PAGE, blocks, check=True) == 0, message


def test_a_gpu_s_training_steps_are_predicted_from_others_of_them(shared_data: Path) -> None:
    """Lookups of training size within 15% in the median, cross-validated; small steps within 12%;
    the stored profile and errors are what the fit gives, and the profile tells of FBGEMM."""
    profile, result = gpu.fitted(shared_data / "h100")
    for row in (*result["cross_validated"], *result["held_out"]):
        if row["part"] == "lookup":
            assert row["median"] <= (0.15 if row["size"] == "training size" else 0.12)
    parts = {(row["part"], row["size"]) for row in result["cross_validated"]}
    assert {(f"update {o}", s) for o in FITTED.optimizers for s in SIZES} < parts
    assert "FBGEMM's fused backward" in profile.description
    kept = load_profile(gpu.PROFILE)
    assert kept.step is not None and profile.step is not None
    for optimizer, terms in kept.step.update.items():
        found = profile.step.update[optimizer]
        assert terms.hottest_seconds == pytest.approx(found.hottest_seconds, rel=1e-3)
    assert kept.step.lookup.byte_seconds == pytest.approx(profile.step.lookup.byte_seconds)
    old = [row["median"] for row in stored(gpu.RESULT)["cross_validated"]]
    assert old == pytest.approx([row["median"] for row in result["cross_validated"]], rel=0.01)
