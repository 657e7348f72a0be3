"""NVLink domains: the level that they add to the tree of links, and which sizes divide."""

from __future__ import annotations

from typing import Any

import pytest

from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster
from milp_planner.inputs.interconnect import all_to_all_bandwidth, reduce_scatter_bandwidth

GB = 10**9


def cluster(machines: int, ranks: int, domains: dict[str, Any], **links: Any) -> Cluster:
    """Equal machines with 400 GB/s inside and 50 GB/s per rank between domains."""
    given = {"intra_machine": "400GB/s", "inter_machine": "50GB/s", **links, "domains": domains}
    return Cluster.from_dict(
        {
            "name": "c", "machines": machines, "ranks_per_machine": ranks, "hbm": "80GiB",
            "ddr": "1TB", "interconnect": given,
        }
    )  # fmt: skip


def test_the_tree_has_a_level() -> None:
    """2 domains of 2 machines of 2 ranks: rank 400, machine 2 · 300, domain 4 · 50 GB/s."""
    graph = cluster(4, 2, {"machines": 2, "bandwidth": "300GB/s"}).graph()
    rates = {frozenset(link): graph.edges[link]["bandwidth"] for link in graph.edges}
    assert rates[frozenset((0, "switch 0"))] == 400 * GB
    assert rates[frozenset(("switch 1", "domain 0"))] == 600 * GB
    assert rates[frozenset(("domain 1", "fabric"))] == 200 * GB
    assert len(rates) == 8 + 4 + 2


def test_collectives_by_what_they_cross() -> None:
    """Inside a domain the network does not matter, but a slow domain switch does (2 · 2 of 4 parts
    over 200 GB/s); across domains there are 4 of 8 ranks on each side of 200 GB/s."""
    slow = cluster(4, 2, {"machines": 2, "bandwidth": "100GB/s"}).graph()
    assert all_to_all_bandwidth(slow, range(4)) == pytest.approx(200 * GB)
    graph = cluster(4, 2, {"machines": 2}).graph()
    assert all_to_all_bandwidth(graph, range(4)) == pytest.approx(400 * GB * 4 / 3)
    assert reduce_scatter_bandwidth(graph, range(4)) == pytest.approx(400 * GB * 4 / 3)
    assert all_to_all_bandwidth(graph, range(8)) == pytest.approx(200 * GB * 8 / 16)
    assert reduce_scatter_bandwidth(graph, range(8)) == pytest.approx(200 * GB * 8 / 4)


def test_one_domain_needs_no_network() -> None:
    """If all machines are in one domain, no inter_machine bandwidth is required."""
    graph = cluster(2, 2, {"machines": 2}, inter_machine=None).graph()
    assert all_to_all_bandwidth(graph, range(4)) == pytest.approx(400 * GB * 4 / 3)
    with pytest.raises(BadInput, match="needed with more than one domain"):
        cluster(4, 2, {"machines": 2}, inter_machine=None)


def test_unequal_domains_span_their_common_divisor() -> None:
    """96 ranks, 4 per machine, domains of 8 and 16 machines (TorchRec's issue 4768): spans of 8."""
    found = cluster(24, 4, {"machines": [8, 16]})
    assert found.span == 8
    assert [len(ranks) for ranks in found.row_groups] == [32, 32, 32]
    assert found.row_groups[1] == tuple(range(32, 64))


def test_a_single_domain_spans_one_machine() -> None:
    """Rows over the whole domain are already row-wise; a span of fewer machines is named."""
    assert cluster(6, 4, {"machines": 6}).span == 1
    assert cluster(6, 4, {"machines": 6, "span": 3}).span == 3


@pytest.mark.parametrize(
    ("domains", "sentence"),
    [
        ({"machines": 18}, "domains of 18 machines, which do not add up to the 24 machines; "
         "allowed: 1, 2, 3, 4, 6, 8, 12 or 24 for all domains, or a list"),
        ({"machines": [8, 8]}, "domains of 8 and 8 machines, which do not add up to the 24"),
        ({"machines": [8, 16], "span": 16}, "found 16 machines, which do not divide domains of 8 "
         "and 16 machines; allowed: 1, 2, 4 or 8"),
    ],
)  # fmt: skip
def test_what_does_not_divide_is_said(domains: dict[str, Any], sentence: str) -> None:
    """One sentence says what was found, what there is, and what divides it."""
    with pytest.raises(BadInput, match="domains") as error:
        cluster(24, 4, domains)
    assert sentence in str(error.value)


def test_domains_read_back() -> None:
    """A single number stands for all domains and survives writing and reading."""
    once = cluster(4, 2, {"machines": 2, "bandwidth": "300GB/s"})
    assert Cluster.from_dict(once.to_dict()) == once
