"""The prediction experiment: its ids, its model on made-up times, its pages."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from benchmarks.calibration import figures as calibration_figures
from benchmarks.pages import stored, update
from benchmarks.prediction import figures as prediction_figures
from benchmarks.prediction.model import Fitted, _profile, fit, unfitted
from benchmarks.prediction.run import judged, summary
from benchmarks.prediction.workload import Point, cumulated, draw, points
from milp_planner.pricing.profile import load_profile

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks"


def test_held_out_points_are_no_calibration_points() -> None:
    """No configuration is in both sets, and every sample repeats."""
    known, held = points(60, False), points(60, True)
    assert known == points(60, False)
    assert len({p.name for p in (*known, *held)}) == 120
    assert not {p.rows for p in known} & {p.rows for p in held}


@pytest.mark.parametrize("rows", [1000, 6000, 16_000])
def test_popular_rows_are_scattered_and_keep_their_shares(rows: int) -> None:
    """Sorted counts of drawn rows follow Zipf's law; the hottest are no neighbours."""
    point = Point(rows, 32, 20_000, 1.05, 8, False)
    counts = np.bincount(draw(point, np.random.default_rng(1)), minlength=rows)
    assert len(counts) == rows
    top = np.argsort(-counts)[:5]
    expected = np.diff(cumulated(rows, 1.05), prepend=0)[:5] * counts.sum()
    assert counts[top] == pytest.approx(expected, rel=0.1)
    assert np.abs(np.diff(top)).min() > 10


def test_times_that_follow_the_model_are_predicted() -> None:
    """Fitted to made-up times of known constants, held-out steps are predicted within 3%."""
    truth = Fitted(
        _profile(1e-5, 1 / 30e9, 1 / 6e9), 2.0**23, 64.0, 2e-11,
        np.array([4e-5, 1e-7, 2e-9, 1e-10]),
    )  # fmt: skip
    known = points(40, False)
    parts = np.array([truth.predict(point) for point in known])
    fitted = fit(known, parts[:, 0], parts[:, 1])
    assert (fitted.cache_bytes, fitted.row_bytes) == (truth.cache_bytes, truth.row_bytes)
    assert fitted.profile.hbm == pytest.approx(30e9, rel=0.1)
    for point in points(40, True):
        assert sum(fitted.predict(point)) == pytest.approx(sum(truth.predict(point)), rel=0.03)


def test_errors_are_those_of_the_held_out_points_alone() -> None:
    """A calibration point that is far off changes nothing in the summary."""
    fitted = Fitted(_profile(1e-5, 1e-10, 1e-9), 2.0**23, 0.0, 0.0, np.zeros(4))
    rows = []
    for point, factor in ((points(1, True)[0], 1.25), (points(1, False)[0], 9.0)):
        seconds = fitted.predict(point)[0] * factor
        found = {"seconds": seconds, "embedding": seconds, "repeat": 0.01, "spread": 0.02}
        rows.append(judged(point, found, fitted))
    assert summary(rows)["error_100"] == pytest.approx(0.2)
    assert summary(rows)["points"] == 1


def test_the_unfitted_profile_is_judged_on_the_held_out_points() -> None:
    """Held-out times made 0.8 and 0.5 of what the stored profile says: errors of 25% and 100%."""
    newest = max((RESULTS / "calibration" / "results").glob("*.yaml"))
    profile, cache = load_profile(newest), 2**25
    rows = [
        {**asdict(point), "embedding": unfitted(profile, point, cache) * factor}
        for held, factors in ((True, (0.8, 0.8, 0.8, 0.5)), (False, (0.01,)))
        for point, factor in zip(points(len(factors), held), factors, strict=True)
    ]
    text = prediction_figures.unfitted_errors({"points": rows, "last_level_cache": cache})
    assert "4 held-out points the absolute error is 25.0% in the median, 77.5% at the 90th" in text
    whole = [line.split("|") for line in text.splitlines()[4:]]
    assert sum(int(cells[2]) for cells in whole) == 5


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
