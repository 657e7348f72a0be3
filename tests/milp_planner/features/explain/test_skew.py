"""Raising skew to a power, against the same shares written out row by row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from milp_planner.features.explain.perturb import is_skewed, with_skew
from milp_planner.inputs.access import Access, MissRate
from milp_planner.pricing.hit_ratios import CachePolicy, hit_ratios
from milp_planner.pricing.popularity import popularity

ROWS = 40
ACCESS: TypeAdapter[Access] = TypeAdapter(Access)
powers = st.floats(0.05, 1.95)
masses = st.lists(st.floats(0, 1), min_size=2, max_size=8).filter(lambda m: sum(m) > 1e-3)


def zipf_shares(alpha: float) -> np.ndarray:
    """Each row's share under Zipf's law."""
    weights = np.arange(1, ROWS + 1) ** -alpha
    return weights / weights.sum()


def by_row(access: Access) -> np.ndarray:
    """Share of each row, most popular first."""
    found = popularity(access, ROWS)
    return np.repeat(found.shares, np.rint(found.counts).astype(int))


def curve(alpha: float, first: float) -> dict[str, object]:
    """Miss rates of an ideal cache under Zipf's law, with a share ``first`` of first accesses."""
    hits = np.cumsum(zipf_shares(alpha))
    points = [(k / ROWS, max(1 - (1 - first) * h, first)) for k, h in enumerate(hits, start=1)]
    return {"kind": "miss_rate", "points": points}


@given(alpha=st.floats(0.1, 2.0), power=powers)
def test_zipf_in_other_words_follows_the_exponent(alpha: float, power: float) -> None:
    """Zipf's law to a power is Zipf's law, also as a histogram, as top ids and as a curve."""
    shares = zipf_shares(alpha).tolist()
    others = [
        {"kind": "zipf", "alpha": alpha},
        {"kind": "histogram", "bins": [(1 / ROWS, s) for s in shares]},
        {"kind": "top_ids", "ids": [{"share": s} for s in shares[:-1]]},
    ]
    expected = zipf_shares(alpha * power)
    for other in others:
        found = with_skew(ACCESS.validate_python(other), ROWS, power)
        assert by_row(found) == pytest.approx(expected, rel=1e-6)
    found = with_skew(ACCESS.validate_python(curve(alpha, 0.2)), ROWS, power)
    ratios = np.arange(ROWS + 1) / ROWS
    hits = hit_ratios(found, ROWS, ratios, CachePolicy("CACHING", False, 0.0)).values
    assert hits[1:] == pytest.approx(0.8 * np.cumsum(expected), abs=1e-9)


@given(counts=masses, mass=masses, power=powers)
def test_bins_and_top_ids_follow_their_rows(
    counts: list[float], mass: list[float], power: float
) -> None:
    """Each row's share becomes p to the power, normalised; the changed statistics are valid."""
    size = min(len(counts), len(mass))
    whole = np.maximum(np.rint(np.array(counts[:size]) * 10), 1)
    share = np.array(mass[:size]) + 1e-3
    pairs = np.stack([whole / whole.sum(), share / share.sum()], axis=1)
    histogram = ACCESS.validate_python({"kind": "histogram", "bins": pairs.tolist()})
    per_row = np.repeat(pairs[:, 1] / whole, whole.astype(int)) ** power
    found = with_skew(histogram, int(whole.sum()), power)
    seen = popularity(found, int(whole.sum()))
    expanded = np.repeat(seen.shares, np.rint(seen.counts).astype(int))
    assert expanded == pytest.approx(np.sort(per_row / per_row.sum())[::-1], rel=1e-6)
    ids = [{"share": s / share.sum() * 0.7, "id": i} for i, s in enumerate(share)]
    top = ACCESS.validate_python({"kind": "top_ids", "ids": ids})
    rest = ROWS - size
    rows = np.append(0.7 * share / share.sum(), np.full(rest, 0.3 / rest)) ** power
    assert by_row(with_skew(top, ROWS, power)) == pytest.approx(
        np.sort(rows / rows.sum())[::-1], rel=1e-6
    )
    for changed in (found, with_skew(top, ROWS, power)):
        assert ACCESS.validate_python(changed.to_dict()) == changed


@given(
    falls=st.lists(st.floats(0, 1), min_size=1, max_size=6).map(lambda m: sorted(m, reverse=True)),
    at_zero=st.booleans(),
    power=powers,
)
def test_a_curve_stays_a_curve(falls: list[float], at_zero: bool, power: float) -> None:
    """Its ends and cache ratios stay, miss rates lie within [0, 1] and never rise."""
    ratios = np.linspace(0, 1, len(falls) + 1)[0 if at_zero else 1 :]
    points = list(zip(ratios.tolist(), falls, strict=False))
    given_curve = ACCESS.validate_python({"kind": "miss_rate", "points": points})
    found = with_skew(given_curve, ROWS, power)
    assert isinstance(found, MissRate)
    assert [x for x, _ in found.points] == [x for x, _ in points]
    assert found.points[-1][1] == pytest.approx(points[-1][1], abs=1e-12)
    assert ACCESS.validate_python(found.to_dict()) == found


def test_a_larger_power_is_more_skew() -> None:
    """Popular rows get more lookups and misses fall; a power of 1 changes nothing."""
    for value in (curve(0.8, 0.1), {"kind": "histogram", "bins": [(0.1, 0.6), (0.9, 0.4)]}):
        access = ACCESS.validate_python(value)
        half = [
            float(hit_ratios(with_skew(access, ROWS, p), ROWS, np.array([0.2]),
                             CachePolicy("CACHING", True, 0.0)).values[0]) for p in (0.8, 1.0, 1.2)
        ]  # fmt: skip
        assert half == sorted(half) and half[0] < half[2]
        assert with_skew(access, ROWS, 1.0) is access and is_skewed(access)


def test_a_measured_busiest_rank_goes_along() -> None:
    """Its excess over the mean is scaled, whatever else is known; without statistics there is no
    skew."""
    hot = {"measured_skew": {"max_over_mean": 1.5, "ranks": 4}}
    for kind in ({"kind": "unknown"}, {"kind": "top_ids", "ids": [{"share": 0.5}]}):
        found = with_skew(ACCESS.validate_python({**kind, **hot}), ROWS, 1.2)
        assert found.measured_skew is not None
        assert found.measured_skew.max_over_mean == pytest.approx(1.6)
    assert not is_skewed(ACCESS.validate_python("unknown"))
    assert not is_skewed(ACCESS.validate_python({"kind": "zipf", "alpha": 0}))
