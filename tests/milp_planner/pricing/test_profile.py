"""Shipped hardware profiles: complete, and true to the measurements they cite.

Absurd sizes are refused in a sentence; hopeless options are dropped if sums would overflow.
"""

from importlib import import_module, resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formulations.instance.validate import validate
from milp_planner.errors import BadInput
from milp_planner.plans.compile import compile_instance
from milp_planner.pricing import price
from milp_planner.pricing.profile import EfficiencyCurve, load_profile, profile_names
from tests.milp_planner.pricing.build import cluster, model, priced


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


#: Imported by its path, since the package's name for it is the function.
limits = import_module("milp_planner.pricing.price")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"rows": 2**50}, "'t0': its rows and optimizer state would take"),
        ({"rows": 2**50, "kind": "dynamicemb"}, "'t0': its rows and optimizer state would take"),
        ({"kind": "dynamicemb", "bucket_capacity": 2**50}, "rows and optimizer state"),
        ({"kind": "dynamicemb", "admission_capacity": 2**50}, "'t0': its admission counter"),
        ({"pooling_factor": 1e13}, "'t0': its exchange of one step would take"),
    ],
)
def test_absurd_sizes_are_refused(table: dict[str, Any], words: str) -> None:
    """One sentence names the table, what is too large, and the limit of 2^53."""
    with pytest.raises(BadInput, match=words):
        price(model(table), cluster())


def test_absurd_times_are_refused() -> None:
    """A step of hours is an input error, not an overflow."""
    slow = cluster(interconnect={"intra_machine": "1kB/s", "inter_machine": "1kB/s"})
    with pytest.raises(BadInput, match="one step of a shard would take"):
        price(model({"rows": 10**7}), slow)


def test_small_problems_keep_options_that_do_not_fit() -> None:
    """A plan under audit may use them."""
    options = price(model({"rows": 10**9}), cluster(hbm="1GiB"))
    assert "data_parallel/HBM_ONLY" in options.names
    assert not limits.fits_somewhere(options).all()


def test_sums_beyond_the_limit_drop_what_fits_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest is a valid Instance with the fitting options at unchanged prices."""
    tables = ({"rows": 10**9}, {"rows": 1000})
    full = price(model(*tables), cluster(hbm="1GiB"))
    keep = limits.fits_somewhere(full)
    bound = limits._largest_sum(full)
    monkeypatch.setattr(limits, "MAX_ACTIVITY", bound)
    pruned = price(model(*tables), cluster(hbm="1GiB"))
    assert list(pruned.names) == [n for n, k in zip(full.names, keep, strict=True) if k]
    assert "options fit on no rank" in pruned.refused["t0"][-1]
    validate(compile_instance(pruned))
    for table in (0, 1):
        for option in pruned.of(table):
            same = full.index(table, pruned.names[option])
            a, b = pruned.entries.first[option], full.entries.first[same]
            assert pruned.entries.cost[a].tolist() == full.entries.cost[b].tolist()


def test_sums_beyond_the_limit_even_so_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence says that the problem is too large."""
    monkeypatch.setattr(limits, "MAX_ACTIVITY", 10)
    with pytest.raises(BadInput, match=r"beyond 2\^62; plan fewer tables or ranks"):
        priced({})


def test_a_table_that_fits_nowhere_keeps_its_options() -> None:
    """The solver has to prove that there is no plan."""
    options = price(model({"rows": 10**9}), cluster(hbm="1MiB", ddr="1MiB"))
    assert limits.fits_somewhere(options).all()


def test_row_wise_must_fit_the_smallest_rank() -> None:
    """Whole shards may use the largest rank, row-wise ones need all."""
    machines = [{"ddr": "1TB", "ranks": [{"hbm": "80GiB"}, {"hbm": "1MiB"}]}]
    site = type(cluster()).from_dict({**cluster().to_dict(), "machines": machines})
    options = price(model({"rows": 10**6}), site)
    fits = limits.fits_somewhere(options)
    assert fits[options.index(0, "table_wise/HBM_ONLY")]
    assert not fits[options.index(0, "row_wise/HBM_ONLY")]


def test_select_renumbers_everything() -> None:
    """Offsets, groups and entries of the chosen options match."""
    options = priced({}, {"kind": "dynamicemb"})
    keep = np.zeros(len(options), dtype=bool)
    keep[[2, options.first[1] + 3]] = True
    small = limits.select(options, keep)
    assert small.first.tolist() == [0, 1, 2]
    assert small.names == [options.names[2], options.names[options.first[1] + 3]]
    assert small.group[1] == options.group[options.first[1] + 3]
    assert small.entries.first[-1] == len(small.entries.rows)
    validate(compile_instance(small))
