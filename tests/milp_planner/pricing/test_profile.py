"""Shipped hardware profiles: complete, and true to the measurements they cite.

Sources of prices: declared by operator, weakened by type, weakest where several numbers meet.
"""

from importlib import resources
from pathlib import Path

import pytest
from pydantic import ValidationError

from milp_planner.errors import BadInput
from milp_planner.pricing.profile import EfficiencyCurve, load_profile, profile_names
from milp_planner.pricing.sources import (
    ASSUMED,
    DATA_SHEET,
    OPERATORS,
    Source,
    exchange_operators,
    lookup_operator,
    weakest,
)


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
    """dynamicemb's tiers run over the hit ratio, from HOST_ONLY's x_eff to that of their path. For
    TorchRec's cache, x_eff = hit ratio in TorchRec's profile only; elsewhere times add."""
    profile = load_profile(name)
    for curve in (profile.caching, profile.hybrid):
        (none, least), (all_, path) = curve.points
        assert (curve.over, none, all_) == ("hit_ratio", 0.0, 1.0)
        assert profile.host_only == least < path < 1
    curve, theirs = profile.uvm_caching, name == "torchrec-default"
    assert (curve.over == "cache_ratio") == theirs == (curve.given_statistics == "hit_ratio")


def test_a_missing_file_gets_profiles_only(tmp_path: Path) -> None:
    """The error suggests a nearby file only if it is a profile, else a shipped profile."""
    (tmp_path / "mode.yaml").write_text("name: m\nworkload: {batch_per_rank: 8}\ntables: []\n")
    with pytest.raises(BadInput, match=r"node\.yaml: no such file$"):
        load_profile(tmp_path / "node.yaml")
    with pytest.raises(BadInput, match=r"no such file; did you mean h100\?$"):
        load_profile(tmp_path / "h100.yaml")
    shipped = resources.files("milp_planner.pricing") / "profiles" / "h100.yaml"
    (tmp_path / "node.txt").write_text(shipped.read_text())
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


SEEN = Source(how="measured", hardware="NVIDIA H100", dtypes=("fp32",))


def test_another_type_is_interpolated() -> None:
    """Only the element types that were measured are; a source without types covers all."""
    assert SEEN.for_dtype("fp32").words == "measured on NVIDIA H100"
    assert SEEN.for_dtype("fp16").words == "interpolated on NVIDIA H100"
    assert SEEN.model_copy(update={"dtypes": ()}).for_dtype("int8").how == "measured"
    assert DATA_SHEET.for_dtype("fp16") == DATA_SHEET


@pytest.mark.parametrize("given", [{"how": "measured"}, {"how": "assumed", "hardware": "H100"}])
def test_hardware_is_named_exactly_where_it_was_measured(given: dict[str, str]) -> None:
    """A measurement without hardware, and hardware without one, are refused."""
    with pytest.raises(ValidationError, match="hardware exactly where something was measured"):
        Source.model_validate(given)


def test_the_weakest_number_decides() -> None:
    """Assumed is weaker than a data sheet, that than interpolated, that than measured."""
    between = Source(how="interpolated", hardware="NVIDIA H100")
    assert weakest([SEEN, between]) == between
    assert weakest([between, DATA_SHEET, SEEN]) == DATA_SHEET
    assert weakest([DATA_SHEET, ASSUMED]) == ASSUMED


def test_operators_of_shards() -> None:
    """By library, cut and mode; an exchange over several domains also has the network's."""
    assert lookup_operator("torchrec", "row_wise", "HBM_ONLY", False) == "lookup"
    assert lookup_operator("torchrec", "data_parallel", "HBM_ONLY", False) == "replicated"
    assert lookup_operator("torchrec", "row_wise", "HOST_ONLY", True) == "lookup"
    assert lookup_operator("dynamicemb", "row_wise", "HYBRID", False) == "dynamicemb_hybrid"
    assert exchange_operators("row_wise", True, False, False) == ["reduce_scatter"]
    assert exchange_operators("row_wise", True, True, True) == ["all_gather", "network"]
    assert exchange_operators("row_wise", False, True, False) == ["all_to_all"]
    assert exchange_operators("column_wise", True, False, False) == ["all_to_all"]
    assert exchange_operators("data_parallel", True, True, False) == ["all_reduce", "replicated"]


def test_what_a_profile_does_not_declare() -> None:
    """It is assumed; a collective without a table has the bandwidth that the cluster states."""
    default = load_profile("torchrec-default")
    assert default.sources == {}
    assert default.source("lookup") == ASSUMED and default.source("network") == DATA_SHEET
    h100 = load_profile("h100")
    assert h100.collectives is not None and h100.collectives.network is not None
    assert h100.source("network") == ASSUMED  # its table is carried over, and not declared


@pytest.mark.parametrize("name", profile_names())
def test_every_shipped_profile_answers(name: str) -> None:
    """Every operator has a source, and what an origin calls carried over is not called measured."""
    profile = load_profile(name)
    assert all(profile.source(operator).how for operator in OPERATORS)
    curves = {"dynamicemb_caching": profile.caching, "dynamicemb_hybrid": profile.hybrid}
    for operator, curve in curves.items():
        if "carried over" in curve.origin or "not measured" in curve.origin:
            assert profile.source(operator) == ASSUMED, operator  # type: ignore[arg-type]
    if profile.step is not None:
        assert (profile.source("lookup").how == "measured") != ("carried" in profile.step.origin)
        assert profile.error is not None
