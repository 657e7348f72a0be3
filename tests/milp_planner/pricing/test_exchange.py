"""Exchange time by hand, and the bottlenecks of a cluster."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from milp_planner.inputs import Cluster
from milp_planner.pricing import exchange
from milp_planner.pricing.exchange import Links, links_of

TWO_MACHINES = Links(
    all_to_all=10.0,
    reduce_scatter=20.0,
    local=100.0,
    local_all_to_all=50.0,
    across=5.0,
    all_reduce=4.0,
    groups=2,
    ranks=16,
)


def cluster(machines: int, ranks: int) -> Cluster:
    """Equal machines with 400 GB/s inside and 50 GB/s per rank between them."""
    return Cluster.from_dict(
        {
            "name": "c", "machines": machines, "ranks_per_machine": ranks, "hbm": "80GiB",
            "ddr": "1TB",
            "interconnect": {"intra_machine": "400GB/s", "inter_machine": "50GB/s"},
        }
    )  # fmt: skip


def test_links_of_one_machine() -> None:
    """A rank keeps an eighth of its buffer and sends the rest at 400 GB/s."""
    links = links_of(cluster(1, 8))
    assert links.all_to_all == pytest.approx(400e9 * 8 / 7)
    assert links.reduce_scatter == pytest.approx(400e9 * 8 / 7)
    assert links.all_reduce == pytest.approx(200e9 * 8 / 7)
    assert links.local == links.reduce_scatter
    assert (links.across, links.groups, links.ranks) == (inf, 1, 8)


def test_links_of_two_machines_are_the_network_cards() -> None:
    """Half of every buffer leaves the machine, at 50 GB/s per rank."""
    links = links_of(cluster(2, 8))
    assert links.all_to_all == pytest.approx(100e9)
    assert links.local_all_to_all == pytest.approx(400e9 * 8 / 7)
    assert links.across == 50e9


def test_a_single_rank_exchanges_for_free() -> None:
    """Nothing moves: every bandwidth is infinite and every time is 0."""
    links = links_of(cluster(1, 1))
    sent = np.array([1e9])
    assert exchange.whole_rows_seconds(sent, links).tolist() == [0.0]
    assert exchange.row_wise_seconds(sent, np.array([True]), links).tolist() == [0.0]
    assert exchange.data_parallel_seconds(sent, np.array([1e9]), 9.0, links).tolist() == [9.0]


def test_row_wise_scatters_pooled_and_swaps_sequences() -> None:
    """100 bytes at 20 and at 10 bytes per second."""
    sent, pooled = np.array([100.0, 100.0]), np.array([True, False])
    assert exchange.row_wise_seconds(sent, pooled, TWO_MACHINES).tolist() == [5.0, 10.0]


def test_table_row_wise_goes_in_two_steps() -> None:
    """100 bytes inside the machine, then 10 between machines."""
    sent, across = np.array([100.0, 100.0]), np.array([10.0, 10.0])
    found = exchange.table_row_wise_seconds(sent, across, np.array([True, False]), TWO_MACHINES)
    assert found.tolist() == [1.0 + 2.0, 2.0 + 2.0]


def test_data_parallel_reduces_and_updates() -> None:
    """40 bytes of gradient at 4 bytes per second and nine passes at 10."""
    found = exchange.data_parallel_seconds(np.array([40]), np.array([10.0]), 9.0, TWO_MACHINES)
    assert found.tolist() == [10.0 + 36.0]


def test_batched_copy_is_passes_over_memory() -> None:
    """2.455 times the buffer."""
    found = exchange.batched_copy_seconds(np.array([100.0]), np.array([10.0]), 2.455)
    assert found.tolist() == [pytest.approx(24.55)]
