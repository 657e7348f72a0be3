"""Fusion groups and levels."""

from __future__ import annotations

from fractions import Fraction

from milp_planner.pricing.options import group_name, level_denominator
from tests.milp_planner.pricing.build import model, priced

DYN = {"kind": "dynamicemb"}


def test_equal_tables_share_their_two_groups() -> None:
    """Two equal tables name the same groups; levels are ratios over the denominator."""
    options = priced(DYN, {**DYN, "rows": 9999})
    assert len(options.groups) == 2
    for name, level in (
        ("row_wise/HBM_ONLY/roundrobin", 10),
        ("row_wise/HYBRID/0.3/roundrobin", 3),
        ("row_wise/HOST_ONLY/roundrobin", 0),
        ("row_wise/CACHING/0.7/roundrobin", 7),
    ):
        first, second = (options.index(t, name) for t in (0, 1))
        assert options.group[first] == options.group[second]
        assert options.level[first] == options.level[second] == level
    hbm = options.index(0, "row_wise/HBM_ONLY/roundrobin")
    beside = options.index(0, "row_wise/HBM_ONLY/roundrobin/beside_caching")
    caching = options.index(0, "row_wise/CACHING/0.1/roundrobin")
    hybrid = options.index(0, "row_wise/HYBRID/0.1/roundrobin")
    assert options.group[hbm] == options.group[hybrid] != options.group[caching]
    assert options.group[beside] == options.group[caching]
    assert options.level[beside] == 10


def test_every_grouped_key_field_separates() -> None:
    """Tables that differ in one field of the key share no group."""
    base = model(DYN).tables[0]
    names = {group_name(base, True, "roundrobin", False)}
    for change in (
        {"external_storage": "ps"}, {"index_type": "uint64"}, {"score_strategy": "lfu"},
        {"admit_strategy": "frequency"}, {"dim": 32}, {"dtype": "fp16"}, {"optimizer": "adam"},
        {"output": "sequence"}, {"weighted": True},
    ):  # fmt: skip
        names.add(group_name(model({**DYN, **change}).tables[0], True, "roundrobin", False))
    names.add(group_name(base, False, "roundrobin", False))
    names.add(group_name(base, True, "continuous", False))
    names.add(group_name(base, True, "roundrobin", True))
    assert len(names) == 13


def test_rows_and_access_do_not_separate() -> None:
    """Fields outside the key do not separate tables."""
    changed = model({**DYN, "rows": 5, "access": {"kind": "zipf", "alpha": 1.0}}).tables[0]
    base = model(DYN).tables[0]
    assert group_name(base, True, "roundrobin", True) == group_name(
        changed, True, "roundrobin", True
    )


def test_levels_of_mixed_grids_are_exact() -> None:
    """Tenths and thirds have the common denominator 30."""
    mixed = model(DYN, {**DYN, "constraints": {"cache_ratios": ["1/3"]}})
    assert level_denominator(mixed) == 30
    options = priced(DYN, {**DYN, "constraints": {"cache_ratios": ["1/3"]}})
    third = options.index(1, "row_wise/CACHING/1/3/roundrobin")
    assert options.level[third] == 10
    ratio = options.choices[third].ratio
    assert Fraction(int(options.level[third]), options.level_denominator) == ratio


def test_free_fusion_names_no_groups() -> None:
    """With ``fusion: free`` there are no groups, and HBM_ONLY comes once."""
    options = priced(DYN, DYN, fusion="free")
    assert options.groups == ()
    assert (options.group == -1).all()
    assert len(options) == 40


def test_torchrec_tables_do_not_fuse() -> None:
    """Only dynamicemb options name groups."""
    options = priced({}, DYN)
    assert all(options.group[o] == -1 for o in options.of(0))
    assert all(options.group[o] >= 0 for o in options.of(1))
