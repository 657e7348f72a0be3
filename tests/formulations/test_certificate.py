"""The certificate: valid for any multipliers, exact in integers, and read back strictly."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formulations.build import Block, InstanceBuilder, Shard
from formulations.certificate import (
    Certificate,
    bound_of,
    certificate_from_dict,
    certificate_to_dict,
    proves_infeasible,
)
from formulations.errors import InstanceError
from formulations.instance import Instance, Objective, Where
from tests.formulations.brute_force import brute_force
from tests.formulations.strategies import instances

LOOSE = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))


def one_rank_two_tables() -> Instance:
    """Two tables on one rank of 10: fast and large (cost 1, use 8) or slow and small (5, 3)."""
    builder = InstanceBuilder([[0]], ["p"], [("hbm", "rank", 10)], Objective.BUSIEST_RANK)
    for table in "ab":
        builder.add_table(table)
        builder.add_option("fast", [Block(Where.EVERY_RANK, [Shard({"hbm": 8}, [1])])])
        builder.add_option("slow", [Block(Where.EVERY_RANK, [Shard({"hbm": 3}, [5])])])
    return builder.build()


@st.composite
def multipliers(draw: st.DrawFn, instance: Instance, kind: str) -> Certificate:
    """Any legal certificate for an instance, good or bad."""
    denominator = draw(st.integers(1, 12))
    count = {Objective.TOTAL: 0, Objective.BUSIEST_RANK: 1, Objective.STEP_TIME: 2}
    rows = min(count[instance.objective], len(instance.phases)) if kind == "bound" else 0
    weights = []
    for _ in range(rows):
        cuts = sorted(draw(st.integers(0, denominator)) for _ in range(instance.num_ranks - 1))
        edges = [0, *cuts, denominator]
        weights.append(tuple(b - a for a, b in pairwise(edges)))
    return Certificate(
        kind=kind,
        denominator=denominator,
        prices={
            r.name: tuple(draw(st.integers(0, 15)) for _ in r.capacity) for r in instance.resources
        },
        weights=tuple(weights),
        cutoff=draw(st.one_of(st.none(), st.integers(0, 40))) if kind == "bound" else None,
    )


@LOOSE
@given(st.data(), instances())
def test_no_bound_exceeds_the_optimum(data: st.DataObject, instance: Instance) -> None:
    """Whatever the multipliers and the cutoff, the bound never exceeds the optimum."""
    truth = brute_force(instance).objective
    certificate = data.draw(multipliers(instance, "bound"))
    try:
        bound = bound_of(instance, certificate)
    except InstanceError:
        assert truth is None
        return
    assert truth is None or bound <= truth


@LOOSE
@given(st.data(), instances())
def test_no_multipliers_refute_a_feasible_instance(data: st.DataObject, instance: Instance) -> None:
    """A proof of infeasibility never exists for an instance that has a plan."""
    certificate = data.draw(multipliers(instance, "infeasible"))
    if brute_force(instance).objective is not None:
        assert not proves_infeasible(instance, certificate)


def test_bound_by_hand() -> None:
    """At λ = 4/5 each table's cheapest value is 7.4, so the bound is 14.8 − 8 = 6.8, rounded up."""
    certificate = Certificate("bound", 5, {"hbm": (4,)}, ((5,),))
    assert bound_of(one_rank_two_tables(), certificate) == 7
    free = replace(certificate, prices={"hbm": (0,)})
    assert bound_of(one_rank_two_tables(), free) == 2


def test_cutoff_drops_options_and_caps_the_bound() -> None:
    """With cutoff 5 the slow options go, and nothing above 5 is claimed."""
    certificate = Certificate("bound", 1, {"hbm": (1,)}, ((1,),), cutoff=5)
    assert bound_of(one_rank_two_tables(), certificate) == 5
    assert bound_of(one_rank_two_tables(), replace(certificate, cutoff=None)) == 6


def test_all_options_dropped_leaves_the_cutoff() -> None:
    """When the cutoff drops every option of a table, plans cost at least the cutoff."""
    certificate = Certificate("bound", 1, {"hbm": (0,)}, ((1,),), cutoff=1)
    assert bound_of(one_rank_two_tables(), certificate) == 1


def test_infeasible_by_hand() -> None:
    """Two tables of at least 3 on 5 bytes: at price 1 they cost 6 > 5, on 6 bytes they do not."""
    for capacity, proved in ((5, True), (6, False)):
        builder = InstanceBuilder([[0]], ["p"], [("hbm", "rank", capacity)])
        for table in "ab":
            builder.add_table(table)
            builder.add_option("o", [Block(Where.ANY_RANK, [Shard({"hbm": 3}, [1])])])
        certificate = Certificate("infeasible", 1, {"hbm": (1,)})
        assert proves_infeasible(builder.build(), certificate) is proved


def test_fusion_takes_the_best_common_level() -> None:
    """Two fused tables, each cheap at another level: the bound pays for one of them."""
    builder = InstanceBuilder([[0]], ["p"], [], Objective.TOTAL)
    for table, costs in (("a", (1, 9)), ("b", (9, 2))):
        builder.add_table(table)
        for level, cost in enumerate(costs):
            builder.add_option(
                f"o{level}", [Block(Where.EVERY_RANK, [Shard({}, [cost])])], fusion=("g", level)
            )
    assert bound_of(builder.build(), Certificate("bound", 1, {})) == 10


def test_two_groups_over_the_same_tables() -> None:
    """Each table may join F or T at any level; the minimum runs over pairs of levels."""
    builder = InstanceBuilder([[0]], ["p"], [], Objective.TOTAL)
    costs = {"a": {("F", 0): 1, ("F", 1): 8, ("T", 0): 6}, "b": {("F", 1): 2, ("T", 0): 3}}
    for table, options in costs.items():
        builder.add_table(table)
        for fusion, cost in options.items():
            builder.add_option(
                f"{fusion}", [Block(Where.EVERY_RANK, [Shard({}, [cost])])], fusion=fusion
            )
    assert bound_of(builder.build(), Certificate("bound", 1, {})) == 4


def test_uneven_and_distinct_by_hand() -> None:
    """Prices that differ by rank: a distinct pair takes the two cheapest of the allowed ranks."""
    builder = InstanceBuilder([[0, 1], [2]], ["p"], [("hbm", "rank", 9)], Objective.BUSIEST_RANK)
    builder.add_table("t")
    builder.add_option(
        "o",
        [Block(Where.ANY_RANK, [Shard({"hbm": 1}, [3])], count=2, distinct=True, among=[0, 2])],
    )
    builder.add_table("u")
    builder.add_option(
        "o", [Block(Where.EVERY_RANK, [Shard({}, [1], repeat=2), Shard({"hbm": 2}, [5])])]
    )
    certificate = Certificate("bound", 4, {"hbm": (1, 0, 2)}, ((1, 1, 2),))
    # t: (3·1 + 1) + (3·2 + 2) = 12; u: 1 + 1 + (5·2 + 2·2) = 16; λ·capacity = 27.
    assert bound_of(builder.build(), certificate) == -(-(12 + 16 - 27) // 4)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"prices": {"hbm": (-1,)}}, "negative"),
        ({"prices": {"hbm": (1, 1)}}, "2 prices"),
        ({"prices": {}}, "resources"),
        ({"weights": ((4,),)}, "adding up to"),
        ({"weights": ()}, "0 rows"),
        ({"denominator": 0}, "denominator"),
        ({"kind": "wish"}, "kind"),
        ({"kind": "infeasible", "weights": ()}, "no bound"),
    ],
)
def test_wrong_certificates_are_refused(change: dict[str, object], sentence: str) -> None:
    """Multipliers that do not fit the instance are an error in one sentence."""
    good = Certificate("bound", 5, {"hbm": (4,)}, ((5,),))
    with pytest.raises(InstanceError, match=sentence):
        bound_of(one_rank_two_tables(), replace(good, **change))  # type: ignore[arg-type]


def test_round_trip() -> None:
    """A certificate survives JSON, whatever the size of its integers."""
    certificate = Certificate("bound", 2**60, {"hbm": (4, 2**61)}, ((2**60, 0),), cutoff=7)
    data = json.loads(json.dumps(certificate_to_dict(certificate)))
    assert certificate_from_dict(data) == certificate


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("denominator", 1.0),
        ("denominator", True),
        ("prices", [1]),
        ("prices", {"hbm": [0.5]}),
        ("weights", [["1"]]),
        ("version", 9),
        ("children", [{}]),
        ("cutoff", "3"),
    ],
)
def test_strict_reading(key: str, value: object) -> None:
    """Anything but integers of the known version is refused."""
    data = certificate_to_dict(Certificate("bound", 1, {"hbm": (1,)}, ((1,),)))
    with pytest.raises(InstanceError):
        certificate_from_dict({**data, key: value})
