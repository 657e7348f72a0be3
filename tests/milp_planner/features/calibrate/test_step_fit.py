"""The step model on invented times: its constants, its predictions, and too few steps.

Drawn steps: they repeat, fit, differ, and their ids follow Zipf's law.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from milp_planner.features.calibrate.least_squares import relative_fit
from milp_planner.features.calibrate.machine import Sample
from milp_planner.features.calibrate.step_fit import fit_steps, predicted_parts
from milp_planner.features.calibrate.steps import (
    FITTED,
    Ranges,
    StepSpec,
    StepTable,
    draw_ids,
    draw_steps,
)
from milp_planner.pricing.step_model import StepModel
from tests.milp_planner.features.calibrate.fake import GPU, TRUTH, table_seconds

OTHERS = Ranges(
    tables=(1, 3, 5), dims=(24, 48, 96, 192), poolings=(1, 3, 12), alphas=(0.0, 0.7, 1.05),
    optimizers=("sgd", "rowwise_adagrad", "adam"), batches=(300, 7000), alike=False,
)  # fmt: skip


def made_up(
    specs: list[StepSpec], noise: float = 0.0, truth: StepModel = TRUTH
) -> dict[StepSpec, Sample]:
    """Each step's true time, off by up to ±noise."""
    generator, samples = np.random.default_rng(5), {}
    for spec in specs:
        lookup, update = table_seconds(truth, spec)
        dense = TRUTH.batch.of(spec.batch, len(spec.tables), spec.columns)
        off = 1 + noise * generator.uniform(-1, 1, 3)
        parts = dict(zip(("lookup", "dense", "update"), off * (lookup, dense, update), strict=True))
        samples[spec] = Sample(
            spec.name, (sum(parts.values()),), {name: (value,) for name, value in parts.items()}
        )
    return samples


@pytest.mark.parametrize(("noise", "within"), [(0.0, 0.005), (0.15, 0.08)])
def test_steps_that_nobody_measured_are_predicted(noise: float, within: float) -> None:
    """The median error of steps of other sizes, widths, poolings, skews and mixes is small."""
    known = draw_steps(FITTED, 120, most=2**27, moved=2**24)
    found = fit_steps(made_up(known, noise), "ddr", "made up").model
    assert found is not None and found.batch is not None
    errors = []
    for spec in draw_steps(OTHERS, 60, most=2**27, moved=2**24, seed=1):
        right, said = table_seconds(TRUTH, spec), table_seconds(found, spec)
        errors += [b / a - 1 for a, b in zip(right, said, strict=True)]
    assert np.median(np.abs(errors)) < within


def test_exact_times_give_the_constants_back() -> None:
    """Dispatch, knees and the batch's line come back to within a few percent."""
    known = draw_steps(FITTED, 150, most=2**27, moved=2**24)
    found = fit_steps(made_up(known), "ddr", "made up").model
    assert found.tier == "ddr"
    assert found.lookup.seconds == pytest.approx(TRUTH.lookup.seconds, rel=0.02)
    assert found.lookup.step_seconds == pytest.approx(TRUTH.lookup.step_seconds, rel=0.02)
    assert dict(found.lookup.missed) == pytest.approx(dict(TRUTH.lookup.missed), rel=0.02)
    assert found.update["adam"].distinct_byte_seconds == pytest.approx(1e-9, rel=0.05)
    assert found.batch.column_seconds == pytest.approx(TRUTH.batch.column_seconds, rel=0.02)
    assert max(found.error.values()) < 1e-3


LARGE = replace(FITTED, batches=(8193, 65536))


@pytest.mark.parametrize(("noise", "within"), [(0.0, 0.03), (0.15, 0.1)])
def test_a_device_that_hides_dispatch_is_found(noise: float, within: float) -> None:
    """Small and large steps of other shapes are predicted; the hottest row's term comes back."""
    known = draw_steps(FITTED, 90, most=2**27, moved=2**24)
    known += draw_steps(LARGE, 45, most=2**27, moved=2**31, seed=2)
    found = fit_steps(made_up(known, noise, GPU), "hbm", "made up").model
    errors = []
    others = [*draw_steps(OTHERS, 30, most=2**27, moved=2**24, seed=1)]
    others += draw_steps(replace(OTHERS, batches=(9000, 50_000)), 30, most=2**27, moved=2**31)
    for spec in others:
        said = predicted_parts(found, spec)
        right = table_seconds(GPU, spec)
        assert (said["lookup"], said["update"]) == pytest.approx(table_seconds(found, spec))
        errors += [said["lookup"] / right[0] - 1, said["update"] / right[1] - 1]
    assert np.median(np.abs(errors)) < within
    for optimizer in ("rowwise_adagrad", "adam"):
        true = GPU.update[optimizer].hottest_seconds  # type: ignore[index]
        got = found.update[optimizer].hottest_seconds  # type: ignore[index]
        assert got == pytest.approx(true, rel=0.05 if noise == 0 else 0.25)


def test_too_few_steps_are_not_fitted() -> None:
    """With eleven steps, an optimizer is left out; with eleven in all, there is no model; both are
    reported."""
    known = draw_steps(FITTED, 90, most=2**24, moved=2**20)
    adam = [spec for spec in known if spec.optimizer == "adam"][11:]
    found = fit_steps(made_up([spec for spec in known if spec not in adam]), "ddr", "made up")
    assert found.model is not None and set(found.model.update) == {"sgd", "rowwise_adagrad"}
    assert found.left_out == ("the step's adam: 11 of the 12 steps it needs are left",)
    none = fit_steps(made_up(known[:11]), "ddr", "made up")
    assert none.model is None and "lookup: 11 of the 12" in none.left_out[0]


@given(st.integers(0, 10**6))
def test_no_coefficient_helps_by_being_moved(seed: int) -> None:
    """The fit is the optimum over non-negative coefficients: to move one a little is no better."""
    generator = np.random.default_rng(seed)
    terms, seconds = generator.uniform(0, 1, (12, 5)), generator.uniform(0.5, 2, 12)
    found, error = relative_fit(terms, seconds)
    assert (found >= 0).all()
    for index in range(5):
        for step in (1e-4, -1e-4):
            moved = found.copy()
            moved[index] = max(moved[index] + step, 0.0)
            assert np.mean((terms @ moved / seconds - 1) ** 2) >= error - 1e-12


def test_a_sample_repeats_and_fits() -> None:
    """The same seed gives the same steps, all different, optimizers in turn, within the limits."""
    steps = draw_steps(FITTED, 30, most=2**20, moved=2**20, seed=4)
    assert steps == draw_steps(FITTED, 30, most=2**20, moved=2**20, seed=4)
    assert len(set(steps)) == len({step.name for step in steps}) == 30
    assert [step.optimizer for step in steps[:3]] == list(FITTED.optimizers)
    assert all(sum(t.size for t in step.tables) <= 2**20 for step in steps)
    assert all(step.moved_bytes <= 2**20 for step in steps)


def test_what_a_step_moves() -> None:
    """Two tables: 10 · 3 ids of 32 bytes, 10 ids of 64 bytes; 24 columns."""
    step = StepSpec((StepTable(5, 8, 3, 0.0), StepTable(5, 16, 1, 0.9)), 10, "sgd")
    assert (step.moved_bytes, step.columns) == (10 * 3 * 32 + 10 * 64, 24)
    assert step.name == "step B10 sgd: 1 x 5x8 P3 a0, 1 x 5x16 P1 a0.9"


@pytest.mark.parametrize("alpha", [0.6, 1.0, 1.3])
@pytest.mark.parametrize("rows", [1000, 6000])
def test_ids_follow_zipfs_law(rows: int, alpha: float) -> None:
    """Counts of the five hottest rows are within five standard errors, and these rows are no
    neighbours."""
    count = 200_000
    ids = draw_ids(StepTable(rows, 8, 1, alpha), count, np.random.default_rng(1))
    counts = np.bincount(ids, minlength=rows)
    assert len(counts) == rows
    shares = np.arange(1, rows + 1.0) ** -alpha
    expected = count * shares[:5] / shares.sum()
    top = np.argsort(-counts)[:5]
    assert (np.abs(counts[top] - expected) < 5 * np.sqrt(expected)).all()
    assert np.abs(np.diff(top)).min() > 10


def test_even_ids_are_even() -> None:
    """With alpha 0, every row is drawn about as often as any other."""
    ids = draw_ids(StepTable(100, 8, 1, 0.0), 100_000, np.random.default_rng(1))
    counts = np.bincount(ids, minlength=100)
    assert abs(counts - 1000).max() < 5 * 1000**0.5
