"""Sharding groups: TorchRec's layouts, one group as a cluster, and sizes that do not divide.

Ratio grids, limits and pins.

Changes of inputs by path.
"""

from fractions import Fraction
from typing import Any

import pytest

from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.changes import apply, changed
from milp_planner.inputs.constraints import TENTHS, Constraints, PinSpec
from milp_planner.inputs.interconnect import concurrent_bandwidth, reduce_scatter_bandwidth
from milp_planner.inputs.sharding_group import group_of, is_group_of_its_whole
from milp_planner.inputs.two_d import TwoD, replica_sets, sharding_groups
from tests.corpus import mistakes
from tests.milp_planner.pricing.build import cluster, model, uneven_cluster

LINKS = {"intra_machine": "400GB/s", "inter_machine": "50GB/s"}
UNEVEN = {**LINKS, "domains": {"machines": [8, 16]}}


def divided(size: Any, layout: str, machines: int = 8, ranks: int = 8, **fields: Any) -> Cluster:
    """Equal machines divided into groups."""
    two_d = {"sharding_group_size": size, "layout": layout, "strategy": "default"}
    return cluster(machines, ranks, two_d=two_d, **fields)


def test_layouts_are_those_of_torchrec() -> None:
    """64 ranks in groups of 16: as TorchRec's remapping gives them (ranks 0, 4, … and 0, 1, …)."""
    assert sharding_groups(64, 16, "strided")[0] == tuple(range(0, 64, 4))
    assert replica_sets(64, 16, "strided")[0] == (0, 1, 2, 3)
    assert sharding_groups(64, 16, "contiguous")[1] == tuple(range(16, 32))
    assert replica_sets(64, 16, "contiguous")[0] == (0, 16, 32, 48)


@pytest.mark.parametrize(
    ("size", "layout", "machines", "each"),
    [
        (16, "strided", 8, 2),
        (16, "contiguous", 2, 8),
        (4, "strided", 4, 1),
        (4, "contiguous", 1, 4),
    ],
)
def test_a_group_has_its_ranks_share_of_each_machine(
    size: int, layout: str, machines: int, each: int
) -> None:
    """8 machines of 8 ranks: a group's machines, its ranks on each, and DDR in proportion."""
    group = group_of(divided(size, layout, ddr="1024GB"))
    assert [len(machine.ranks) for machine in group.machines] == [each] * machines
    assert {machine.ddr_bytes for machine in group.machines} == {128 * 10**9 * each}
    assert group.replicas == 64 // size


def test_reserved_ddr_is_shared_too() -> None:
    """Of 30 bytes reserved on a machine of 8 ranks, 2 ranks reserve 7.5, rounded up."""
    group = group_of(divided(16, "strided", reservations={"ddr_bytes": 30}))
    assert group.reservations.ddr_bytes == 8


def test_a_group_is_read_back_and_recognised() -> None:
    """A group is read back from its dictionary; memory unlike the cluster's is noticed."""
    group = group_of(divided(16, "contiguous"))
    assert Cluster.from_dict(group.to_dict()) == group
    assert group_of(group) is group
    assert is_group_of_its_whole(group)
    document = group.to_dict()
    document["machines"][0]["ddr"] += 2**30
    assert not is_group_of_its_whole(Cluster.from_dict(document))


def test_issue_4768() -> None:
    """96 ranks, 4 per machine, domains of 8 and 16 machines, 2 worlds: strided groups of 48 ranks
    span 8 machines of 2 ranks; contiguous groups do not divide."""
    group = group_of(divided(48, "strided", 24, 4, interconnect=UNEVEN))
    assert (len(group.machines), len(group.machines[0].ranks), group.span) == (24, 2, 8)
    assert [len(ranks) for ranks in group.row_groups] == [16, 16, 16]
    why = (
        "found contiguous groups of 48 ranks: row groups of 32 ranks (8 machines of a domain) do "
        "not divide them; allowed for contiguous groups: 1, 2, 4, 8, 16, 32, 96 ranks"
    )
    with pytest.raises(BadInput) as error:
        group_of(divided(48, "contiguous", 24, 4, interconnect=UNEVEN))
    assert why in str(error.value)


def test_a_span_stated_for_the_whole() -> None:
    """Domains of 4 machines of 2 ranks, span 4: groups on every second machine span 2 of them;
    contiguous groups of one machine cannot span 4."""
    links = {**LINKS, "domains": {"machines": 4, "span": 4}}
    assert group_of(divided(4, "strided", 8, 2, interconnect=links)).span == 2
    with pytest.raises(BadInput, match="row groups of 8 ranks"):
        group_of(divided(2, "contiguous", 8, 2, interconnect=links))


def test_groups_must_be_alike() -> None:
    """With machines of 4 and 2 ranks, groups of 3 would have different machines."""
    two_d = {"sharding_group_size": 3, "layout": "strided", "strategy": "default"}
    group = group_of(uneven_cluster(two_d=two_d))
    assert [len(machine.ranks) for machine in group.machines] == [2, 1]
    with pytest.raises(BadInput, match="their machines or domains differ; allowed for contiguous"):
        group_of(uneven_cluster(two_d={**two_d, "layout": "contiguous"}))


def test_what_is_refused() -> None:
    """Sizes that do not divide, an open division, replicas that are never averaged."""
    with pytest.raises(BadInput, match="groups of 24 ranks, which do not divide the 64 ranks"):
        group_of(divided(24, "strided"))
    with pytest.raises(BadInput, match="leaves size, layout or strategy to be chosen"):
        group_of(divided("auto", "strided"))
    with pytest.raises(BadInput, match=r"two_d\.sync_interval: found never"):
        cluster(two_d={"strategy": "default", "sync_interval": "never"})


def test_choices() -> None:
    """All divisors, the largest first, in all layouts and strategies; never averaging leaves one
    strategy."""
    made = [*TwoD().choices(6)]
    assert [c.sharding_group_size for c in made[::4]] == [6, 3, 2, 1]
    assert len({(c.layout, c.strategy) for c in made}) == 4
    named = TwoD.from_dict({"layout": "strided", "sync_interval": "never"})
    assert {c.strategy for c in named.choices(6)} == {"fully_sharded"}


def test_all_replica_sets_share_the_links() -> None:
    """2 machines of 2 ranks. Replicas side by side use their own links; across machines, both sets
    of two send half a buffer each over 100 GB/s; a single set follows the formula for one."""
    graph = cluster(2, 2).graph()
    assert concurrent_bandwidth(graph, [(0, 1), (2, 3)]) == pytest.approx(2 * 400e9)
    assert concurrent_bandwidth(graph, [(0, 2), (1, 3)]) == pytest.approx(100e9)
    one = reduce_scatter_bandwidth(graph, (0, 1, 2))
    assert concurrent_bandwidth(graph, [(0, 1, 2)]) == pytest.approx(one)
    assert concurrent_bandwidth(graph, [(0,), (1,)]) == float("inf")


@pytest.mark.parametrize(
    ("written", "count"), [("tenths", 9), ("twentieths", 19), ("fiftieths", 49), ("hundredths", 99)]
)
def test_named_grids(written: str, count: int) -> None:
    """A named grid has every proper fraction of its kind."""
    grid = Constraints.from_dict({"cache_ratios": written}).cache_ratios
    assert grid == tuple(Fraction(i, count + 1) for i in range(1, count + 1))
    assert (grid == TENTHS) == (count == 9)


def test_constraints_as_written() -> None:
    """A grid in any order and notation is read as ascending exact ratios; one name needs no
    brackets; a pin that the limits allow stays, in which a rank may hold several shards."""
    read = Constraints.from_dict({
        "cache_ratios": [0.5, "1/3", "10%"], "modes": "CACHING", "sharding_types": "row_wise",
        "ranks": [0, 1], "pin": {"mode": "CACHING", "ranks": [1, 1]},
    })  # fmt: skip
    assert read.cache_ratios == (Fraction(1, 10), Fraction(1, 3), Fraction(1, 2))
    assert (read.modes, read.sharding_types) == (("CACHING",), ("row_wise",))
    assert read.pin == PinSpec(mode="CACHING", ranks=(1, 1))


MODEL = model({"rows": 1000, "dim": 8}, {"rows": 33, "dim": 8, "name": "user.x"})
PLACE = cluster(2, 2, hbm="24GiB", ddr="100GiB")


def of(path: str, value: Any) -> tuple[Model, Cluster]:
    """The inputs after one change."""
    return changed(MODEL, PLACE, {path: value})


@pytest.mark.parametrize("path", ["hbm", "cluster.hbm", "cluster.machines.ranks.hbm",
                                  "machines.*.ranks.*.hbm"])  # fmt: skip
@pytest.mark.parametrize(
    ("value", "gib"),
    [("96GiB", 96), (2**30, 1), ("+8GiB", 32), ("-8GiB", 16), ("-1TB", 0), ("×1.5", 36),
     ("*1/2", 12), ("+50%", 36), ("-25%", 18)],
)  # fmt: skip
def test_memory_is_set_added_to_and_scaled(path: str, value: Any, gib: int) -> None:
    """For all ranks, by any spelling of the path; the model stays the same object."""
    kept, place = of(path, value)
    assert {rank.hbm_bytes for rank in place.ranks} == {gib * 2**30}
    assert kept is MODEL and place.name == PLACE.name


def test_one_machine_and_one_table() -> None:
    """By number and by name, which may contain dots; what is not named stays."""
    _, place = of("cluster.machines.1.ddr", "1GiB")
    assert [m.ddr_bytes for m in place.machines] == [PLACE.machines[0].ddr_bytes, 2**30]
    grown, place = of("tables.user.x.rows", "×1.2")
    assert [t.rows for t in grown.tables] == [1000, 40] and place is PLACE  # 39.6, rounded up
    some = of("tables.user*.constraints.modes", ["HOST_ONLY"])[0]
    assert [t.constraints.modes for t in some.tables] == [None, ("HOST_ONLY",)]


def test_the_first_change_of_a_field_counts() -> None:
    """So a pattern can stand for all other tables."""
    grown, _ = changed(MODEL, PLACE, {"tables.user.x.rows": "+0%", "tables.*.rows": "+100%"})
    assert [t.rows for t in grown.tables] == [2000, 33]


def test_a_number_repeats_the_first_machine_or_rank() -> None:
    """Before single ones change, in whatever order they are given."""
    _, place = changed(
        MODEL, PLACE, {"hbm": "1GiB", "cluster.machines": 3, "ranks_per_machine": "4"}
    )
    assert [len(m.ranks) for m in place.machines] == [4, 4, 4]
    assert {rank.hbm_bytes for rank in place.ranks} == {2**30}
    assert len(changed(MODEL, PLACE, {"machines": 1})[1].machines) == 1


def test_fields_go_by_their_own_name() -> None:
    """Those of the workload, of reservations, of a division that was not given, and of links."""
    grown, place = changed(MODEL, PLACE, {
        "dedup": "true", "workload.batch_per_rank": "+50%", "hbm_percent": 10, "strategy": "auto",
        "intra_machine": "×2",
    })  # fmt: skip
    assert grown.workload.dedup
    assert grown.workload.batch_per_rank == 3 * MODEL.workload.batch_per_rank // 2
    assert place.reservations.hbm_percent == 10 and place.two_d is not None
    assert place.interconnect is not None and PLACE.interconnect is not None
    assert place.interconnect.intra_machine == 2 * PLACE.interconnect.intra_machine


@pytest.mark.parametrize(
    ("path", "value", "words"), mistakes(__file__, "what cannot be changed is said")
)
def test_what_cannot_be_changed_is_said(path: str, value: Any, words: str) -> None:
    """In one sentence with the nearest name."""
    with pytest.raises(BadInput, match=words):
        of(path, value)


def test_a_curve_is_scaled_up_to_one() -> None:
    """The second number of every point, and a rate in its own unit."""
    data = {"profile": {"caching": {"points": [[0, 0.4], [1, 0.8]]}, "hbm": "100B/s"}}
    apply(data, {"profile.caching": "×2", "profile.hbm": "×1.5"})
    assert data["profile"] == {"caching": {"points": [[0, 0.8], [1, 1.0]]}, "hbm": "150B/s"}
