"""Clusters: shorthands, numbering, and what embeddings may use.

NVLink domains: the level that they add to the tree of links, and which sizes divide.

Bandwidths of collectives against sums over every pair of ranks.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise
from typing import Any

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.interconnect import (
    Interconnect,
    all_to_all_bandwidth,
    reduce_scatter_bandwidth,
)
from tests.corpus import mistakes
from tests.milp_planner.inputs.builders import cluster, model, table

LINKS = {"intra_machine": "400GB/s", "inter_machine": "50GB/s"}


def listed(*machines: dict[str, Any]) -> Cluster:
    """A cluster of these machines."""
    return Cluster.from_dict({"name": "c", "machines": list(machines), "interconnect": LINKS})


def usable(*tables: dict[str, Any], hbm: int | str = 100_000, **reservations: Any) -> set[int]:
    """HBM that the embeddings of these tables may use on the ranks of a cluster."""
    read = Cluster.from_dict(cluster(hbm=hbm, reservations=reservations))
    return {*read.usable_hbm(Model.from_dict(model(*tables)))}


def test_numbers_of_machines_and_ranks_stand_for_lists() -> None:
    """machines: 2, and in a machine ranks: 2, with their companion fields."""
    long = {"ddr": 1_000_000, "ranks": [{"hbm": 100_000}, {"hbm": 100_000}]}
    short = {"ddr": "1MB", "ranks": 2, "hbm": 100_000}
    assert Cluster.from_dict(cluster()) == listed(long, short) == listed(long, long)


def test_ranks_are_numbered_machine_by_machine() -> None:
    """Machines of different sizes partition the ranks in order."""
    read = listed(
        {"ddr": 0, "ranks": 1, "hbm": "1MB"}, {"ddr": 0, "ranks": [{"hbm": "2MB"}, {"hbm": 0}]}
    )
    assert read.num_ranks == 3
    assert read.machine_ranks == ((0,), (1, 2))
    assert [rank.hbm_bytes for rank in read.ranks] == [1_000_000, 2_000_000, 0]


def test_usable_hbm_by_hand() -> None:
    """15% of 100,000, 6 × 100 dense, 20 × 8 × batch 4 × 3.5 ids and 60 more leave 82,100 bytes. A
    fraction of a byte is not usable; a reservation above the HBM, and no HBM, leave 0; multiples
    and percentage of 0 reserve nothing."""
    tables = (table(name="a", pooling_factor=2.5), table(name="b"))
    assert usable(*tables, dense_parameter_bytes=100, hbm_bytes=60) == {82_100}
    assert usable(hbm=100_001) == {85_000}
    assert usable(hbm_bytes="1MB") == usable(table(), hbm=0) == {0}
    off = dict.fromkeys(("hbm_percent", "min_headroom", "dense_multiple", "kjt_multiple"), 0)
    assert usable(table(), dense_parameter_bytes=100, **off) == {100_000}


def test_usable_ddr_by_hand() -> None:
    """5% of headroom by default; 12.5% and 1000 bytes of a million leave 874,000."""
    read = Model.from_dict(model(table()))
    assert Cluster.from_dict(cluster()).usable_ddr(read) == (950_000,) * 2
    held = {"ddr_percent": "12.5%", "ddr_bytes": 1000}
    assert Cluster.from_dict(cluster(reservations=held)).usable_ddr(read) == (874_000,) * 2


def test_data_loaders_by_hand() -> None:
    """Two ranks per machine, 3 workers, 2 batches each of 4 samples of 1,000 bytes take 48,000
    bytes of a machine; by default a sample has one id of 8 bytes."""
    for sample, left in ((1000, 950_000 - 48_000), (0, 950_000 - 2 * 3 * 2 * 4 * 8)):
        held = {"loader_workers": 3, "bytes_per_sample": sample}
        read = Model.from_dict({**model(table()), "host_memory": held})
        assert Cluster.from_dict(cluster()).usable_ddr(read) == (left,) * 2


@given(st.integers(1024, 2**50), st.integers(0, 100), st.integers(0, 2**50))
def test_reserving_more_never_leaves_more(hbm: int, percent: int, further: int) -> None:
    """Usable HBM never exceeds the HBM and does not rise with reservations."""
    less, more = (
        usable(hbm=hbm, hbm_percent=percent, hbm_bytes=size).pop() for size in (0, further)
    )
    assert 0 <= more <= less <= hbm
    assert less == hbm * (100 - max(percent, 5)) // 100


def test_single_rank_needs_no_interconnect() -> None:
    """A single rank exchanges with nobody."""
    read = Cluster.from_dict(cluster(machines=1, ranks_per_machine=1, interconnect=None))
    assert list(read.graph().nodes) == [0]


def test_outside_embeddings_replace_the_assumed_share() -> None:
    """Unstated: 15%. Measured: the peak and the headroom, with 2 · 2 GiB more at four samples than
    at two. In parts: 4 · dense, and context."""
    read = Cluster.from_dict(cluster(hbm="100GiB", reservations={"kjt_multiple": 0}))
    gib = 2**30
    grows = {"measured_batch": 2, "activation_bytes_per_sample": 2 * gib}
    says = [
        (None, 85),
        ({"measured_peak": "20GiB"}, 75),
        ({"measured_peak": "20GiB", **grows}, 71),
        ({"parameter_bytes": "2GiB", "activation_bytes_per_sample": 0}, 95 - 8 - 2),
        ({"parameter_bytes": "1GiB", "context": "0GiB", "parameter_multiple": 3}, 92),
    ]
    for said, left in says:
        given = Model.from_dict({**model(table()), "outside_embeddings": said})
        assert read.usable_hbm(given) == (left * gib,) * 4
    here = Cluster.from_dict(
        cluster(hbm="100GiB", reservations={"outside_embeddings": "30GiB", "min_headroom": 10})
    )
    assert here.usable_hbm(given) == (60 * gib,) * 4


GB = 10**9


def cluster_in_domains(machines: int, ranks: int, domains: dict[str, Any], **links: Any) -> Cluster:
    """Equal machines with 400 GB/s inside and 50 GB/s per rank between domains."""
    given = {**LINKS, **links, "domains": domains}
    return Cluster.from_dict(
        cluster(machines=machines, ranks_per_machine=ranks, interconnect=given)
    )


def test_the_tree_has_a_level() -> None:
    """2 domains of 2 machines of 2 ranks: rank 400, machine 2 · 300, domain 4 · 50 GB/s."""
    graph = cluster_in_domains(4, 2, {"machines": 2, "bandwidth": "300GB/s"}).graph()
    rates = {frozenset(link): graph.edges[link]["bandwidth"] for link in graph.edges}
    assert rates[frozenset((0, "switch 0"))] == 400 * GB
    assert rates[frozenset(("switch 1", "domain 0"))] == 600 * GB
    assert rates[frozenset(("domain 1", "fabric"))] == 200 * GB
    assert len(rates) == 8 + 4 + 2


def test_collectives_by_what_they_cross() -> None:
    """Inside a domain the network does not matter, but a slow domain switch does (2 · 2 of 4 parts
    over 200 GB/s); across domains there are 4 of 8 ranks on each side of 200 GB/s."""
    slow = cluster_in_domains(4, 2, {"machines": 2, "bandwidth": "100GB/s"}).graph()
    assert all_to_all_bandwidth(slow, range(4)) == pytest.approx(200 * GB)
    graph = cluster_in_domains(4, 2, {"machines": 2}).graph()
    assert all_to_all_bandwidth(graph, range(4)) == pytest.approx(400 * GB * 4 / 3)
    assert reduce_scatter_bandwidth(graph, range(4)) == pytest.approx(400 * GB * 4 / 3)
    assert all_to_all_bandwidth(graph, range(8)) == pytest.approx(200 * GB * 8 / 16)
    assert reduce_scatter_bandwidth(graph, range(8)) == pytest.approx(200 * GB * 8 / 4)


def test_one_domain_needs_no_network() -> None:
    """If all machines are in one domain, no inter_machine bandwidth is required."""
    graph = cluster_in_domains(2, 2, {"machines": 2}, inter_machine=None).graph()
    assert all_to_all_bandwidth(graph, range(4)) == pytest.approx(400 * GB * 4 / 3)
    with pytest.raises(BadInput, match="needed with more than one domain"):
        cluster_in_domains(4, 2, {"machines": 2}, inter_machine=None)


def test_unequal_domains_span_their_common_divisor() -> None:
    """96 ranks, 4 per machine, domains of 8 and 16 machines (TorchRec's issue 4768): spans of 8."""
    found = cluster_in_domains(24, 4, {"machines": [8, 16]})
    assert found.span == 8
    assert [len(ranks) for ranks in found.row_groups] == [32, 32, 32]
    assert found.row_groups[1] == tuple(range(32, 64))


def test_a_single_domain_spans_one_machine() -> None:
    """Rows over the whole domain are already row-wise; a span of fewer machines is named."""
    assert cluster_in_domains(6, 4, {"machines": 6}).span == 1
    assert cluster_in_domains(6, 4, {"machines": 6, "span": 3}).span == 3


@pytest.mark.parametrize(
    ("domains", "sentence"), mistakes(__file__, "what does not divide is said")
)
def test_what_does_not_divide_is_said(domains: dict[str, Any], sentence: str) -> None:
    """One sentence says what was found, what there is, and what divides it."""
    with pytest.raises(BadInput, match="domains") as error:
        cluster_in_domains(24, 4, domains)
    assert sentence in str(error.value)


def test_domains_read_back() -> None:
    """A single number stands for all domains and survives writing and reading."""
    once = cluster_in_domains(4, 2, {"machines": 2, "bandwidth": "300GB/s"})
    assert Cluster.from_dict(once.to_dict()) == once


INTRA, INTER = 400 * GB, 50 * GB


def links(*sizes: int, intra: int = INTRA, inter: int = INTER) -> nx.Graph[int | str]:
    """Machines with these numbers of ranks."""
    numbers = iter(range(sum(sizes)))
    machines = [[next(numbers) for _ in range(size)] for size in sizes]
    read = Interconnect(intra_machine=f"{intra}B/s", inter_machine=f"{inter}B/s")  # type: ignore[arg-type]
    return read.graph(machines)


def test_four_machines_by_hand() -> None:
    """4 × 8: through 400 GB/s 8·24/32 buffers of an all-to-all, 24/32 of a reduce-scatter."""
    graph = links(8, 8, 8, 8)
    assert all_to_all_bandwidth(graph, range(32)) == pytest.approx(400 * GB / 6)
    own_link = 400 * GB * 32 / 31
    fabric = 400 * GB * 32 / 24
    assert reduce_scatter_bandwidth(graph, range(32)) == pytest.approx(min(own_link, fabric))


def test_single_rank_is_free() -> None:
    """A reduce-scatter of one rank exchanges nothing."""
    assert reduce_scatter_bandwidth(links(2), [1]) == float("inf")


def test_unconnected_ranks() -> None:
    """Ranks without a path between them cannot exchange."""
    graph = links(2)
    graph.add_node(99)
    with pytest.raises(ValueError, match="not connected"):
        all_to_all_bandwidth(graph, [0, 99])


def test_several_machines_need_an_outside_bandwidth() -> None:
    """Two machines need more than the links inside them."""
    inside = Interconnect(intra_machine="1GB/s")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="inter_machine"):
        inside.graph([[0], [1]])


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.integers(1, 1000),
    st.integers(1, 1000),
    st.data(),
)
def test_all_to_all_equals_the_sum_over_pairs(
    sizes: list[int], intra: int, inter: int, data: st.DataObject
) -> None:
    """Sending b/n along the path of every ordered pair gives the same load of the busiest link."""
    graph = links(*sizes, intra=intra, inter=inter)
    everyone = range(sum(sizes))
    ranks = data.draw(st.sets(st.sampled_from(everyone), min_size=1))
    load: Counter[tuple[object, object]] = Counter()
    for sender in ranks:
        for receiver in ranks - {sender}:
            path = nx.shortest_path(graph, sender, receiver)
            load.update(pairwise(path))
    times = [
        Fraction(count, len(ranks) * graph.edges[link]["bandwidth"]) for link, count in load.items()
    ]
    expected = float(1 / max(times)) if times else float("inf")
    assert all_to_all_bandwidth(graph, ranks) == pytest.approx(expected)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(1, 50), st.integers(1, 50))
def test_reduce_scatter_is_never_slower_than_all_to_all(
    sizes: list[int], intra: int, inter: int
) -> None:
    """Summing before a link is crossed cannot cost bandwidth."""
    graph = links(*sizes, intra=intra, inter=inter)
    ranks = range(sum(sizes))
    slow = all_to_all_bandwidth(graph, ranks)
    assert reduce_scatter_bandwidth(graph, ranks) >= slow * (1 - 1e-12)
