"""The links between ranks as a graph, and what they allow a collective.

The graph is a tree: every rank hangs on the switch of its machine, every switch on the fabric.
In a tree there is one path between two ranks, so the bytes each link must carry are known, and a
balanced collective takes as long as its most loaded link. That link is the bottleneck.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from milp_planner.inputs.spec import Bandwidth, Spec

if TYPE_CHECKING:
    import networkx as nx

FABRIC = "fabric"


class Interconnect(Spec):
    """Links in bytes per second, per rank and direction."""

    intra_machine: Bandwidth
    """One rank's link to the other ranks of its machine (NVLink, Infinity Fabric, PCIe)."""
    inter_machine: Bandwidth | None = None
    """One rank's share of its machine's network cards; needed with more than one machine."""

    def graph(self, machine_ranks: Sequence[Sequence[int]]) -> nx.Graph:
        """The links as a graph: integers are ranks, text is switches and the fabric.

        Parameters
        ----------
        machine_ranks
            Rank numbers of each machine, as ``Cluster.machine_ranks`` has them.

        Returns
        -------
        networkx.Graph
            A tree whose edges carry ``bandwidth`` in bytes per second and direction: a rank to
            its machine's switch at ``intra_machine``, a switch to the fabric at
            ``inter_machine`` times the machine's ranks, because all its network cards serve it.

        Raises
        ------
        ValueError
            When there are several machines but no ``inter_machine`` bandwidth.
        """
        import networkx as nx

        if len(machine_ranks) > 1 and self.inter_machine is None:
            raise ValueError("several machines need an inter_machine bandwidth")
        graph: nx.Graph[int | str] = nx.Graph()
        for machine, ranks in enumerate(machine_ranks):
            switch = f"switch {machine}"
            for rank in ranks:
                graph.add_edge(rank, switch, bandwidth=self.intra_machine)
            if self.inter_machine is not None:
                graph.add_edge(switch, FABRIC, bandwidth=self.inter_machine * len(ranks))
        return graph


def all_to_all_bandwidth(graph: nx.Graph, ranks: Iterable[int]) -> float:
    """Bytes per second at which every rank exchanges its buffer with all of ``ranks``.

    Every rank holds b bytes and sends b/n to each of the n ranks (its own part stays). A link
    that separates k of the ranks from the other n − k carries k·(n − k)·b/n each way, so the
    exchange takes max over links of k·(n − k)·b/(n·bandwidth) seconds. No schedule is faster,
    since those bytes have no other path; a fluid schedule that keeps all flows in proportion
    reaches it. The result is b divided by that time.

    Returns
    -------
    float
        Bytes of a rank's whole buffer per second; infinite for a single rank.

    Raises
    ------
    ValueError
        When two of the ranks are not connected.
    """
    load = [
        k * (total - k) / (total * bandwidth) for k, total, bandwidth in _cuts(graph, set(ranks))
    ]
    return _inverse(load)


def reduce_scatter_bandwidth(graph: nx.Graph, ranks: Iterable[int]) -> float:
    """Bytes per second of a reduce-scatter (or of an all-gather, its mirror image).

    Every rank holds b bytes, and one n-th of the sum ends on each rank. The k ranks on one side
    of a link can add up their parts before they send them, so b·(n − k)/n bytes must cross one
    way and b·k/n the other; the larger one counts. Hierarchical and ring algorithms reach this
    on a tree. On a rank's own link it is the known b·(n − 1)/n.

    Returns
    -------
    float
        Bytes of a rank's whole buffer per second; infinite for a single rank.

    Raises
    ------
    ValueError
        When two of the ranks are not connected.
    """
    load = [
        max(k, total - k) / (total * bandwidth) for k, total, bandwidth in _cuts(graph, set(ranks))
    ]
    return _inverse(load)


def _cuts(graph: nx.Graph, ranks: set[int]) -> Iterator[tuple[int, int, int]]:
    """For every link that separates the ranks: how many below it, how many in all, bandwidth."""
    import networkx as nx

    if len(ranks) < 2:
        return
    root = next(iter(ranks))
    below = dict.fromkeys(graph, 0) | dict.fromkeys(ranks, 1)
    edges = list(nx.dfs_edges(graph, root))
    reached = {root}.union(child for _, child in edges)
    if not ranks <= reached:
        raise ValueError(f"rank {min(ranks - reached)} is not connected to rank {root}")
    for parent, child in reversed(edges):
        below[parent] += below[child]
    for parent, child in edges:
        if 0 < below[child] < len(ranks):
            yield below[child], len(ranks), graph.edges[parent, child]["bandwidth"]


def _inverse(load: list[float]) -> float:
    return 1 / max(load) if load else float("inf")
