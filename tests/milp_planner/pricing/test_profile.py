"""Shipped hardware profiles: complete, and true to the measurements they cite."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest

from milp_planner.errors import BadInput
from milp_planner.pricing.profile import EfficiencyCurve, load_profile, profile_names


@pytest.mark.parametrize("name", profile_names())
def test_every_shipped_profile_names_its_origins(name: str) -> None:
    """Each bandwidth, the kernel factors and each curve state their origin."""
    profile = load_profile(name)
    assert profile.name == name
    assert {"hbm", "ddr", "host_link", "kernel", "host_only"} <= set(profile.origin)
    assert all(c.origin for c in (profile.caching, profile.hybrid, profile.uvm_caching))
    assert type(profile).from_dict(profile.to_dict()) == profile


@pytest.mark.parametrize("name", profile_names())
def test_every_shipped_profile_follows_the_law(name: str) -> None:
    """dynamicemb's tiers run over the hit ratio, from HOST_ONLY's x_eff to that of their path."""
    profile = load_profile(name)
    for curve in (profile.caching, profile.hybrid):
        (none, least), (all_, path) = curve.points
        assert (curve.over, none, all_) == ("hit_ratio", 0.0, 1.0)
        assert profile.host_only == least < path < 1


def test_only_torchrecs_own_profile_averages_bandwidths() -> None:
    """For TorchRec's cache, x_eff = hit ratio only in TorchRec's own profile; elsewhere times are
    added."""
    for name in profile_names():
        curve = load_profile(name).uvm_caching
        theirs = name == "torchrec-default"
        assert (curve.over == "cache_ratio") == theirs == (curve.given_statistics == "hit_ratio")


def test_a_missing_file_gets_profiles_only(tmp_path: Path) -> None:
    """The error suggests a nearby file only if it is a profile, else a shipped profile."""
    (tmp_path / "mode.yaml").write_text("name: m\nworkload: {batch_per_rank: 8}\ntables: []\n")
    with pytest.raises(BadInput, match=r"node\.yaml: no such file$"):
        load_profile(tmp_path / "node.yaml")
    with pytest.raises(BadInput, match=r"no such file; did you mean h100\?$"):
        load_profile(tmp_path / "h100.yaml")
    shipped = resources.files("milp_planner.pricing") / "profiles" / "h100.yaml"
    (tmp_path / "nodes.yaml").write_text(shipped.read_text())
    with pytest.raises(BadInput, match=r"did you mean .*nodes\.yaml\?$"):
        load_profile(tmp_path / "node.yaml")


def test_an_unknown_name_gets_the_nearest_one() -> None:
    """One sentence gives the nearest name and all names."""
    with pytest.raises(BadInput, match=r"unknown hardware profile 'h10'; did you mean 'h100'\?"):
        load_profile("h10")


def test_a_profile_may_be_a_file(tmp_path: Path) -> None:
    """A user's own YAML is read by its path; a wrong unit is reported with file and line."""
    import milp_planner.pricing.profile as module

    shipped = Path(module.__file__).parent / "profiles" / "a10.yaml"
    own = tmp_path / "mine.yaml"
    own.write_text(shipped.read_text().replace("name: a10", "name: mine"))
    assert load_profile(own).name == "mine"
    own.write_text(shipped.read_text().replace("hbm: 897GiB/s", "hbm: 897"))
    with pytest.raises(BadInput, match=r"mine\.yaml:\d+: hbm: found 897 without a unit"):
        load_profile(own)


def test_points_must_rise() -> None:
    """A curve with two values at one argument is refused."""
    with pytest.raises(BadInput, match="points must be sorted by rising argument"):
        EfficiencyCurve.from_dict({"points": [[0.5, 0.1], [0.5, 0.2]], "origin": "here"})


def test_spread_is_optional_and_named_by_field() -> None:
    """Shipped profiles state none; a stated one is read back; an unknown field is refused."""
    profile = load_profile("a10")
    assert profile.spread == {}
    wide = {**profile.to_dict(), "spread": {"hbm": 0.1, "caching": 0.25}}
    assert type(profile).from_dict(wide).spread == {"hbm": 0.1, "caching": 0.25}
    for wrong in ({"hmb": 0.1}, {"hbm": 1.0}, {"hbm": -0.1}):
        with pytest.raises(BadInput, match="spread"):
            type(profile).from_dict({**profile.to_dict(), "spread": wrong})
