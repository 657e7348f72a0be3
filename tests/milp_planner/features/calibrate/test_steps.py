"""Drawn steps: they repeat, fit, differ, and their ids follow Zipf's law."""

from __future__ import annotations

import numpy as np
import pytest

from milp_planner.features.calibrate.steps import (
    FITTED,
    StepSpec,
    StepTable,
    draw_ids,
    draw_steps,
)


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
