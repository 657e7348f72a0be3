"""Bandwidths of collectives against sums over every pair of ranks."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from milp_planner.inputs.interconnect import (
    Interconnect,
    all_to_all_bandwidth,
    reduce_scatter_bandwidth,
)

GB = 10**9
INTRA, INTER = 400 * GB, 50 * GB


def links(*sizes: int, intra: int = INTRA, inter: int = INTER) -> nx.Graph[int | str]:
    """Machines with these numbers of ranks."""
    numbers = iter(range(sum(sizes)))
    machines = [[next(numbers) for _ in range(size)] for size in sizes]
    read = Interconnect(intra_machine=f"{intra}B/s", inter_machine=f"{inter}B/s")  # type: ignore[arg-type]
    return read.graph(machines)


def test_one_machine_by_hand() -> None:
    """8 ranks at 400 GB/s: 7/8 of a buffer leaves each, so both collectives run at 400·8/7 GB/s."""
    graph = links(8)
    assert all_to_all_bandwidth(graph, range(8)) == pytest.approx(400 * GB * 8 / 7)
    assert reduce_scatter_bandwidth(graph, range(8)) == pytest.approx(400 * GB * 8 / 7)


def test_four_machines_by_hand() -> None:
    """4 × 8: through 400 GB/s go 8·24/32 buffers of an all-to-all and 24/32 of one of a
    reduce-scatter."""
    graph = links(8, 8, 8, 8)
    assert all_to_all_bandwidth(graph, range(32)) == pytest.approx(400 * GB / 6)
    own_link = 400 * GB * 32 / 31
    fabric = 400 * GB * 32 / 24
    assert reduce_scatter_bandwidth(graph, range(32)) == pytest.approx(min(own_link, fabric))


def test_subset_inside_a_machine_ignores_the_fabric() -> None:
    """Ranks of one machine do not use the slow links between machines."""
    graph = links(4, 4, inter=1)
    assert all_to_all_bandwidth(graph, [4, 5]) == pytest.approx(800 * GB)


def test_single_rank_is_free() -> None:
    """A collective of one rank exchanges nothing."""
    assert all_to_all_bandwidth(links(2), [1]) == float("inf")
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
