"""Fitting x_eff: published sweeps give their published constants, invented sweeps the truth.

Cross-validation of a step model: exact times, too few steps, and steps that differ.

Steps of fused tables: dispatch once a step, and the device's work by table.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from milp_planner.errors import BadInput
from milp_planner.features.calibrate.held_out import cross_validated
from milp_planner.features.calibrate.machine import ON_DEVICE, Sample, TooNoisy
from milp_planner.features.calibrate.step_fit import fit_steps, predicted_parts
from milp_planner.features.calibrate.steps import FITTED, TRAINING, StepSpec, draw_steps
from milp_planner.features.calibrate.sweep import Sweep, fit_sweep, fitted_profile
from milp_planner.pricing.lookup import curve_bandwidth, tiered_bandwidth
from milp_planner.pricing.profile import Profile, load_profile
from milp_planner.pricing.step_model import BatchTerms, StepModel, TableTerms
from tests.corpus import mistakes
from tests.milp_planner.features.calibrate.published import published
from tests.milp_planner.features.calibrate.test_step_fit import made_up

BASE = load_profile("torchrec-default")


def sweep_of(points: list[tuple[str, float, float, float]], **fields: object) -> Sweep:
    """A sweep of (mode, x, ms, spread)."""
    made = [{"mode": m, "x": x, "ms": ms, "spread": s} for m, x, ms, s in points]
    return Sweep.from_dict({"name": "made", "source": "here", "points": made, **fields})


def test_the_a10_sweep_gives_the_published_constants() -> None:
    """0.80 / 2.63 / 5.44 ms are x_eff 0.28 + 0.01 x and 0.11 + 0.01 x to within 0.01."""
    sweep = published("a10")
    fit = fit_sweep(sweep, load_profile(sweep.base))
    for mode, constant in (("CACHING", 0.28), ("HYBRID", 0.11)):
        ((x, x_eff),) = fit.curves[mode].points
        assert x_eff == pytest.approx(constant + 0.01 * x, abs=0.01)


def test_the_h100_sweep_by_hand() -> None:
    """x_eff = (2.19/t − s)/(1 − s) with s = 64/3350, and 3350 GB/s · 2.19 ms over the bytes."""
    sweep = published("h100")
    fit = fit_sweep(sweep, load_profile("h100"))
    assert fit.divisor == pytest.approx(2.26, rel=1e-3)
    assert fit.host_only == pytest.approx(0.0318, abs=1e-4)
    cover = [(0.0, 0.0318), (0.8, 0.0722), (1.0, 0.1623)]
    assert np.allclose(fit.curves["CACHING"].points, cover, atol=1e-4)
    assert fit.curves["CACHING"].over == "batch_cover"
    assert np.allclose(fit.curves["HYBRID"].points, [(0.0, 0.0318), (0.1, 0.0475)], atol=1e-4)
    assert fit.spread == {}  # none is published


@pytest.mark.parametrize("name", ["a10", "h100"])
def test_a_fitted_profile_gives_the_times_back(name: str) -> None:
    """Every published time is HBM's time times the fitted ratio of bandwidths, within 0.1%."""
    sweep = published(name)
    profile = fitted_profile(sweep, load_profile(sweep.base))
    assert Profile.from_dict(profile.to_dict()) == profile
    fastest = next(p.ms for p in sweep.points if p.mode == "HBM_ONLY")
    for point in sweep.points:
        reached = {
            "HBM_ONLY": np.array(profile.hbm),
            "HOST_ONLY": tiered_bandwidth(profile, np.array(profile.host_only)),
            "CACHING": curve_bandwidth(profile, profile.caching, np.array(point.x)),
            "HYBRID": curve_bandwidth(profile, profile.hybrid, np.array(point.x)),
        }[point.mode]
        ms = fastest * profile.hbm / float(reached)
        assert ms == pytest.approx(point.ms, rel=1e-3)


@given(
    truth=st.lists(st.floats(0.0, 1.0), min_size=2, max_size=6).map(sorted),
    share=st.floats(0.005, 0.5),
    scale=st.floats(0.01, 1000.0),
)
def test_a_made_up_curve_comes_back(truth: list[float], share: float, scale: float) -> None:
    """Times computed from an x_eff give the same x_eff, whatever the units."""
    hbm = 10**12
    link = int(hbm * share)
    points = [("HBM_ONLY", 1.0, scale, 0.0)]
    for index, x_eff in enumerate(truth):
        rate = x_eff * hbm + (1 - x_eff) * link
        points.append(("HYBRID", index / 10, scale * hbm / rate, 0.0))
    fit = fit_sweep(sweep_of(points, hbm=f"{hbm}B/s", host_link=f"{link}B/s"), BASE)
    assert [y for _, y in fit.curves["HYBRID"].points] == pytest.approx(truth, abs=1e-5)


def test_spread_of_the_times_becomes_spread_of_the_curve() -> None:
    """For a time twice that of HBM, ±10% changes x_eff as much as fitting a time 10% away."""

    def fit(ms: float, spread: float) -> float:
        points = [("HBM_ONLY", 1.0, 1.0, 0.0), ("CACHING", 0.5, ms, spread)]
        found = fit_sweep(sweep_of(points, hbm="1000GB/s", host_link="50GB/s"), BASE)
        return found.spread["caching"] if spread else found.curves["CACHING"].points[0][1]

    moved = (fit(2.0 / 1.1, 0.0) - fit(2.0, 0.0)) / fit(2.0, 0.0)
    assert fit(2.0, 0.1) == pytest.approx(moved, rel=0.02)


@pytest.mark.parametrize(
    ("points", "sentence"), mistakes(__file__, "contradictions are not fitted")
)
def test_contradictions_are_not_fitted(points: list[tuple], sentence: str) -> None:
    """Slower with a larger cache, faster than HBM, slower than the link: one sentence each."""
    with pytest.raises(TooNoisy, match=sentence):
        fit_sweep(sweep_of([("HBM_ONLY", 1.0, 1.0, 0.0), *points]), BASE)


def test_a_contradiction_within_the_spread_is_fitted() -> None:
    """3.1 ms with a larger cache than 2.9 ms is no contradiction if either may be off by 5%."""
    points = [
        ("HBM_ONLY", 1.0, 1.0, 0.05),
        ("CACHING", 0.1, 2.9, 0.05),
        ("CACHING", 0.5, 3.1, 0.05),
    ]
    assert len(fit_sweep(sweep_of(points), BASE).curves["CACHING"].points) == 2
    with pytest.raises(TooNoisy):
        fit_sweep(sweep_of([(m, x, ms, 0.0) for m, x, ms, _ in points]), BASE)


def test_no_spread_excuses_a_lookup_faster_than_hbm() -> None:
    """However much noise is accepted, a time of a quarter of HBM's gives no curve."""
    points = [("HBM_ONLY", 1.0, 1.0, 1.0), ("HYBRID", 0.1, 0.25, 1.0)]
    with pytest.raises(TooNoisy, match="its repeats spread"):
        fit_sweep(sweep_of(points), BASE)
    with pytest.raises(TooNoisy, match="faster than HBM_ONLY"):
        fit_sweep(sweep_of(points), BASE, max_spread=1.0)


@pytest.mark.parametrize(
    ("points", "sentence"),
    [
        ([("CACHING", 0.1, 2, 0), ("CACHING", 0.2, 2, 0)], "needs one point of mode HBM_ONLY"),
        ([("HBM_ONLY", 0.5, 1, 0), ("CACHING", 0.1, 2, 0)], "HBM_ONLY at x = 0.5; allowed: 1"),
        ([("HBM_ONLY", 1.0, 1, 0), ("HOST_ONLY", 0.1, 2, 0)], "HOST_ONLY at x = 0.1; allowed: 0"),
        ([("HBM_ONLY", 1.0, 1, 0)] * 2, "2 points of mode HBM_ONLY; allowed: one"),
        ([("HBM_ONLY", 1.0, 1, 0), *[("HYBRID", 0.1, 2, 0)] * 2], "two points of mode HYBRID"),
    ],
)
def test_bad_sweeps_are_named(points: list[tuple], sentence: str) -> None:
    """One sentence says what a sweep lacks or has too much of."""
    with pytest.raises(BadInput, match=sentence):
        fit_sweep(sweep_of(points), BASE)


def test_tiers_must_differ() -> None:
    """If the host link is as fast as HBM, no curve can be fitted."""
    points = [("HBM_ONLY", 1.0, 1.0, 0.0), ("HYBRID", 0.1, 1.0, 0.0)]
    with pytest.raises(BadInput, match="nothing separates the tiers"):
        fit_sweep(sweep_of(points, hbm="10GB/s", host_link="10GB/s"), BASE)


SMALL = draw_steps(FITTED, 60, most=2**24, moved=2**22)
LARGE = draw_steps(replace(FITTED, batches=(8193, 20_000)), 12, most=2**24, moved=2**24)


def test_exact_times_are_predicted_without_having_been_seen() -> None:
    """Every step counts once in every part, by size; the fit knows the law and is right."""
    rows = cross_validated(made_up(SMALL + LARGE), "ddr")
    counts = {(row.part, row.size): row.steps for row in rows}
    assert counts["lookup", "small"] == 60 and counts["lookup", "training size"] == 12
    assert counts["update adam", "small"] == 20 and counts["update adam", "training size"] == 4
    assert all(row.median < 0.03 for row in rows)


def test_a_step_is_not_predicted_by_itself() -> None:
    """A step that takes thrice as long as the law of all others is said to be far off."""
    odd = made_up(LARGE)
    odd = {
        spec: replace(s, parts={p: (3 * v[0],) for p, v in s.parts.items()})
        for spec, s in odd.items()
    }
    one = dict([*odd.items()][:1])
    rows = cross_validated(made_up(SMALL) | one, "ddr")
    (row,) = (r for r in rows if (r.part, r.size) == ("lookup", "training size"))
    assert row.steps == 1 and row.median > 0.5


def test_too_few_steps_say_nothing() -> None:
    """Twelve steps are needed; without two of them, there is no model."""
    assert cross_validated(made_up(SMALL[:12]), "ddr") == []


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


def made_up_fused(parts: tuple[str, ...] = ()) -> dict[StepSpec, Sample]:
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
    found = fit_steps(made_up_fused(), "hbm", "made up", fused=True).model
    for got, true in ((found.lookup, TRUTH.lookup), (found.update["adam"], TRUTH.update["adam"])):
        said, right = got.to_dict(), true.to_dict()
        knees = {size: cost for size, cost in said.pop("missed") if cost > 1e-20}
        assert knees == pytest.approx(dict(right.pop("missed")), rel=1e-6)
        assert said == pytest.approx(right, rel=1e-6, abs=1e-20)


def test_the_devices_work_is_not_taken_from_times_that_dispatch_hides() -> None:
    """If a whole step takes the longer of dispatch and work, the work's own seconds still set the
    price of a table."""
    known = made_up_fused()
    for spec, sample in known.items():
        alone = sample.part(ON_DEVICE + "lookup")
        known[spec] = replace(sample, parts={**sample.parts, "lookup": (max(4e-4, alone),)})
    found = fit_steps(known, "hbm", "", fused=True).model
    errors = [
        predicted_parts(found, s)[ON_DEVICE + "lookup"] / known[s].part(ON_DEVICE + "lookup") - 1
        for s in known
    ]
    assert float(np.abs(errors).max()) < 1e-6


def test_cases_without_whole_steps_are_fitted_too() -> None:
    """Samples that have the device's seconds alone count for the work and not for dispatch."""
    known = made_up_fused()
    for spec in list(known)[::2]:
        sample = known[spec]
        parts = {name: v for name, v in sample.parts.items() if name.startswith(ON_DEVICE)}
        known[spec] = replace(sample, parts=parts)
    found = fit_steps(known, "hbm", "", fused=True).model
    assert found.lookup.step_seconds == pytest.approx(4e-4, rel=1e-6)
    assert found.lookup.output_seconds == pytest.approx(3e-10, rel=1e-6)


def test_held_out_errors_name_the_devices_work() -> None:
    """Cross-validation judges whole steps and the device's work, by optimizer."""
    rows = cross_validated(made_up_fused(), "hbm", fused=True)
    parts = {row.part for row in rows}
    assert {"lookup", "device lookup", "update adam", "device update adam"} <= parts
    assert max(row.high for row in rows) < 1e-6
