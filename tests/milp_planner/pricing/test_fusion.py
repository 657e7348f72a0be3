"""Fusion groups and levels, and which exchange a buffer belongs to."""

from fractions import Fraction

import pytest

from formulations import Settings, Status, solve
from milp_planner.plans.compile import compile_instance
from milp_planner.pricing import price
from milp_planner.pricing.options import group_name, level_denominator
from tests.milp_planner.pricing.build import cluster, model, priced

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


def test_cached_torchrec_tables_share_a_ratio_where_they_certainly_meet() -> None:
    """Row-wise, or pinned to one rank; other options are where the plan puts them."""
    pinned = {"pin": {"sharding_type": "table_wise", "ranks": [3]}}
    options = priced({}, DYN, {"constraints": pinned})
    assert all(options.group[o] >= 0 for o in options.of(1))
    for table, certain in ((0, "row_wise"), (2, "table_wise")):
        for o in options.of(table):
            choice = options.choices[o]
            meets = choice.mode == "CACHING" and choice.sharding == certain
            assert (options.group[o] >= 0) == meets
            assert not meets or options.groups[options.group[o]].startswith("torchrec[")
    assert priced({}, fusion="free").groups == ()
    alone = priced({}, ranks=1)  # where all meet
    assert all((alone.group[o] >= 0) == (c.mode == "CACHING") for o, c in enumerate(alone.choices))


@pytest.mark.parametrize(
    ("pins", "feasible"),
    [
        (({"sharding_type": "row_wise"}, {"sharding_type": "row_wise"}), False),
        (({"ranks": [1]}, {"ranks": [1]}), False),
        (({"ranks": [1]}, {"ranks": [0]}), True),
    ],
)
def test_ratios_that_one_cache_cannot_have(
    pins: tuple[dict[str, object], ...], feasible: bool
) -> None:
    """Of 0.3 and 0.5 in one kernel TorchRec makes one mean: no plan has both on one rank."""
    caching = {"mode": "CACHING", "sharding_type": "table_wise"}
    tables = [
        {"constraints": {"pin": {**caching, "cache_ratio": ratio, **pin}}}
        for ratio, pin in zip(("0.3", "0.5"), pins, strict=True)
    ]
    instance = compile_instance(price(model(*tables), cluster(1, 2)))
    found = solve(instance, "cpsat", Settings(time_limit=20))
    assert found.status == (Status.OPTIMAL if feasible else Status.INFEASIBLE)


def test_collectives_by_library_output_and_sharding_type() -> None:
    """Tables of one kind and sharding type share a collective; replicas exchange nothing."""
    options = priced({}, {}, {"output": "sequence"}, {"kind": "dynamicemb"})

    def collective(table: int, name: str) -> str | None:
        index = int(options.collective[options.index(table, name)])
        return None if index < 0 else options.collectives[index]

    assert collective(0, "row_wise/HBM_ONLY") == "torchrec/pooled/row_wise"
    assert collective(1, "row_wise/CACHING/0.1") == "torchrec/pooled/row_wise"
    assert collective(2, "row_wise/HBM_ONLY") == "torchrec/sequence/row_wise"
    assert collective(3, "row_wise/HOST_ONLY/roundrobin") == "dynamicemb/pooled/row_wise"
    assert collective(0, "data_parallel/HBM_ONLY") is None
