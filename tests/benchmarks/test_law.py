"""The law of the tiers: profiles hold the fitted numbers, which price the published times; the page
shows both."""

import pytest

from benchmarks.pages import update
from benchmarks.pricing import law
from milp_planner.pricing.profile import load_profile

UNEXPLAINED: dict[str, str] = {}
"""Published times that are priced more than 10% off, each with the reason."""


@pytest.mark.parametrize(
    "name", ["a10", "torchrec-default", "a100", "h100", "h200", "b200", "gb200", "mi350x"]
)
def test_profiles_hold_the_fitted_numbers(name: str) -> None:
    """The files hold what the command fits, also in profiles that carry over another's numbers."""
    measured_on_a10 = name in ("a10", "torchrec-default")
    fit = law.fit_a10() if measured_on_a10 else law.fit_h100()
    profile = load_profile(name)
    assert profile.caching.points == ((0.0, fit.host_only), (1.0, fit.caching))
    assert profile.hybrid.points == ((0.0, fit.host_only), (1.0, fit.hybrid))
    assert profile.host_only == fit.host_only
    assert profile.kernel.dynamicemb_divisor == (fit.divisor or 10.0)
    assert profile.kernel.dynamicemb_state_multiple == (fit.state or 0.0)


def test_every_published_time_is_priced() -> None:
    """All thirteen are priced within 10%, or listed with the reason."""
    points = law.points()
    assert len(points) == 13
    for point in points:
        assert abs(point.error) <= 0.10 or point.name in UNEXPLAINED, point


def test_the_page_is_current() -> None:
    """docs/pricing.md shows the fit, the published times and the prices that this code computes."""
    assert update(law.PAGE, law.blocks(), check=True) == 0
