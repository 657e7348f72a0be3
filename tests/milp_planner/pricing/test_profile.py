"""Shipped hardware profiles: complete, and true to the measurements they cite."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from milp_planner.errors import BadInput
from milp_planner.pricing.lookup import efficiency, tiered_bandwidth
from milp_planner.pricing.profile import EfficiencyCurve, load_profile, profile_names


@pytest.mark.parametrize("name", profile_names())
def test_every_shipped_profile_names_its_origins(name: str) -> None:
    """Each bandwidth, the kernel factors and each curve say where they come from."""
    profile = load_profile(name)
    assert profile.name == name
    assert {"hbm", "ddr", "host_link", "kernel", "host_only"} <= set(profile.origin)
    assert all(c.origin for c in (profile.caching, profile.hybrid, profile.uvm_caching))
    assert type(profile).from_dict(profile.to_dict()) == profile


def test_a10_reproduces_the_published_times() -> None:
    """CACHING and HYBRID against HBM_ONLY: 2.63 and 5.44 ms over 0.80 ms, within 8%."""
    profile = load_profile("a10")
    for curve, published in ((profile.caching, 2.63), (profile.hybrid, 5.44)):
        x_eff = efficiency(curve, np.array([0.1]))
        slower = profile.hbm / tiered_bandwidth(profile, x_eff)
        assert float(slower[0]) == pytest.approx(published / 0.80, rel=0.08)


def test_a10_curve_is_the_published_line() -> None:
    """x_eff = 0.28 + 0.01 x under CACHING and 0.11 + 0.01 x under HYBRID."""
    profile, x = load_profile("a10"), np.array([0.1, 0.5, 0.9])
    assert efficiency(profile.caching, x) == pytest.approx(0.28 + 0.01 * x)
    assert efficiency(profile.hybrid, x) == pytest.approx(0.11 + 0.01 * x)


def test_h100_reproduces_the_published_benchmark() -> None:
    """All five times of dynamicemb's H100 benchmark (Adam) come back within 1%."""
    profile = load_profile("h100")
    ids, row = 1_048_576, 128 * 4
    moved = 3 * (ids * 8 + 2 * ids * row)

    def milliseconds(x_eff: float) -> float:
        bandwidth = float(tiered_bandwidth(profile, np.array(x_eff)))
        return 1e3 * moved * profile.kernel.dynamicemb_divisor / bandwidth

    caching, hybrid = profile.caching, profile.hybrid
    assert milliseconds(1.0) == pytest.approx(2.19, rel=0.01)
    assert milliseconds(float(efficiency(caching, np.array(1.0)))) == pytest.approx(12.28, rel=0.01)
    assert milliseconds(float(efficiency(caching, np.array(0.8)))) == pytest.approx(24.33, rel=0.01)
    assert milliseconds(float(efficiency(hybrid, np.array(0.1)))) == pytest.approx(33.31, rel=0.01)
    assert milliseconds(profile.host_only) == pytest.approx(43.51, rel=0.01)


def test_a_missing_file_gets_profiles_only(tmp_path: Path) -> None:
    """A file beside it whose name is near is meant only if it is a profile; else a shipped one."""
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
    """One sentence with the nearest name and all names."""
    with pytest.raises(BadInput, match=r"unknown hardware profile 'h10'; did you mean 'h100'\?"):
        load_profile("h10")


def test_a_profile_may_be_a_file(tmp_path: Path) -> None:
    """A user's own YAML is read by path; a wrong unit names file and line."""
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
    with pytest.raises(BadInput, match="points must come by rising argument"):
        EfficiencyCurve.from_dict({"points": [[0.5, 0.1], [0.5, 0.2]], "origin": "here"})


def test_spread_is_optional_and_named_by_field() -> None:
    """A shipped profile states none; a stated one is read back; an unknown field is refused."""
    profile = load_profile("a10")
    assert profile.spread == {}
    wide = {**profile.to_dict(), "spread": {"hbm": 0.1, "caching": 0.25}}
    assert type(profile).from_dict(wide).spread == {"hbm": 0.1, "caching": 0.25}
    for wrong in ({"hmb": 0.1}, {"hbm": 1.0}, {"hbm": -0.1}):
        with pytest.raises(BadInput, match="spread"):
            type(profile).from_dict({**profile.to_dict(), "spread": wrong})
