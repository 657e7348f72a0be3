"""The links between ranks as a tree, and the bandwidth of collectives on it.

Every rank is connected to the switch of its machine, every machine to the switch of its NVLink
domain if there are domains, and these to the fabric. In a tree there is one path between two ranks,
so the bytes that each link must carry are known, and a balanced collective takes as long as its
most loaded link, the bottleneck.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from milp_planner.inputs.problems import problem_at
from milp_planner.inputs.spec import Bandwidth, Spec, as_tuple

if TYPE_CHECKING:
    import networkx as nx

FABRIC = "fabric"
Run = tuple[int, ...]


def _one_or_list(value: Any) -> Any:
    """A number stands for a list of one number, used for all domains."""
    return (value,) if isinstance(value, int) else as_tuple(value)


_COUNT = {"type": "integer", "minimum": 1}


class Domains(Spec):
    """NVLink domains: machines whose ranks reach each other without the network."""

    machines: Annotated[
        tuple[Annotated[int, Field(ge=1)], ...],
        BeforeValidator(_one_or_list),
        Field(min_length=1),
        WithJsonSchema({"anyOf": [_COUNT, {"type": "array", "items": _COUNT, "minItems": 1}]}),
    ]
    """Number of machines of each domain, in order: one number for all domains, or a list with one
    for each."""
    bandwidth: Bandwidth | None = None
    """One rank's bandwidth to the other machines of its domain; by default as inside its machine.
    """
    span: Annotated[int, Field(ge=1)] | None = None
    """Machines over which table-row-wise and grid shards split rows (TorchRec's ``pod_size``), one
    number for the job. It divides the machines of every domain; by default it is their greatest
    common divisor, or 1 if there is a single domain."""

    def sizes(self, machines: int) -> Run:
        """Number of machines of each domain, for ``machines`` in all; a problem if these do not
        fit."""
        if len(self.machines) == 1 and machines % self.machines[0] == 0:
            return self.machines * (machines // self.machines[0])
        if sum(self.machines) == machines:
            return self.machines
        found = f"domains of {_listed(self.machines, 'and')} machines"
        raise problem_at(
            f"found {found}, which do not add up to the {machines} machines; allowed: "
            f"{_listed(_divisors(machines))} for all domains, or a list of one number per domain",
            "interconnect", "domains", "machines",
        )  # fmt: skip

    def refilled(self, machines: int) -> Domains:
        """Domains like the first for another number of machines; the last takes the remainder."""
        full, rest = divmod(machines, self.machines[0])
        sizes = (self.machines[0],) * full + ((rest,) if rest else ())
        return self.model_copy(update={"machines": sizes})

    def spanned(self, machines: int) -> int:
        """Machines of a table-row-wise group; a problem if they do not divide every domain."""
        sizes = self.sizes(machines)
        common = math.gcd(*sizes)
        if self.span is None:
            return common if len(sizes) > 1 else 1
        if common % self.span:
            raise problem_at(
                f"found {self.span} machines, which do not divide domains of "
                f"{_listed(sorted(set(sizes)), 'and')} machines; allowed: "
                f"{_listed(_divisors(common))}",
                "interconnect", "domains", "span",
            )  # fmt: skip
        return self.span


def runs_of(machine_ranks: Sequence[Run], span: int) -> tuple[Run, ...]:
    """Ranks of each run of ``span`` machines."""
    return tuple(
        tuple(rank for ranks in machine_ranks[first : first + span] for rank in ranks)
        for first in range(0, len(machine_ranks), span)
    )


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]


def _listed(numbers: Sequence[int], last: str = "or") -> str:
    """Numbers as text: 1, 2, 4 or 8."""
    texts = [str(number) for number in numbers]
    return f" {last} ".join(part for part in (", ".join(texts[:-1]), texts[-1]) if part)


class Interconnect(Spec):
    """Links in bytes per second, per rank and direction."""

    intra_machine: Bandwidth
    """One rank's bandwidth to the other ranks of its machine (NVLink, Infinity Fabric, PCIe)."""
    inter_machine: Bandwidth | None = None
    """One rank's share of its machine's network cards; needed between machines (or between domains,
    if there are any)."""
    domains: Domains | None = None
    """NVLink domains of several machines; if absent, NVLink does not leave a machine."""

    def domain_machines(self, machines: int) -> tuple[Run, ...]:
        """Number of machines of each domain, for ``machines`` in all; 1 each without domains."""
        sizes = (1,) * machines if self.domains is None else self.domains.sizes(machines)
        ends = accumulate(sizes, initial=0)
        return tuple(tuple(range(first, end)) for first, end in pairwise(ends))

    @property
    def in_domain(self) -> int:
        """One rank's bandwidth to the other machines of its domain."""
        return (self.domains and self.domains.bandwidth) or self.intra_machine

    def graph(self, machine_ranks: Sequence[Sequence[int]]) -> nx.Graph:
        """The links as a graph: integers are ranks, strings are switches and the fabric.

        A tree whose edges carry ``bandwidth`` in bytes per second and direction: a rank to its
        machine's switch at ``intra_machine``, that switch to its domain's at the domain's bandwidth
        times the machine's ranks, and to the fabric at ``inter_machine`` times all ranks below,
        because all their network cards serve it. ValueError if something has to cross the fabric
        but there is no ``inter_machine`` bandwidth.
        """
        import networkx as nx

        graph: nx.Graph[int | str] = nx.Graph()
        domains = self.domain_machines(len(machine_ranks))
        if len(domains) > 1 and self.inter_machine is None:
            raise ValueError("several machines need an inter_machine bandwidth")
        for machine, ranks in enumerate(machine_ranks):
            for rank in ranks:
                graph.add_edge(rank, f"switch {machine}", bandwidth=self.intra_machine)
        for number, machines in enumerate(domains):
            top = f"switch {machines[0]}"
            if self.domains is not None:
                top = f"domain {number}"
                for machine in machines:
                    rate = self.in_domain * len(machine_ranks[machine])
                    graph.add_edge(f"switch {machine}", top, bandwidth=rate)
            if self.inter_machine is not None:
                below = sum(len(machine_ranks[machine]) for machine in machines)
                graph.add_edge(top, FABRIC, bandwidth=self.inter_machine * below)
        return graph


def all_to_all_bandwidth(graph: nx.Graph, ranks: Iterable[int]) -> float:
    """Bytes per second at which every rank exchanges its buffer with all of ``ranks``.

    Every rank holds b bytes and sends b/n to each of the n ranks (its own part stays). A link that
    separates k of the ranks from the other n − k carries k·(n − k)·b/n each way, so the exchange
    takes max over links of k·(n − k)·b/(n·bandwidth) seconds. No schedule is faster, since those
    bytes have no other path; a fluid schedule that keeps all flows in proportion reaches it. The
    result is b divided by that time, infinite for a single rank. ValueError if two of the ranks are
    not connected.
    """
    return _inverse([k * (n - k) / (n * rate) for _, k, n, rate in _cuts(graph, [ranks])])


def reduce_scatter_bandwidth(graph: nx.Graph, ranks: Iterable[int]) -> float:
    """Bytes per second of a reduce-scatter (or of an all-gather, its mirror image).

    Every rank holds b bytes, and one n-th of the sum ends on each rank. The k ranks on one side of
    a link can add up their parts before they send them, so b·(n − k)/n bytes must cross one way and
    b·k/n the other; the larger one counts. Hierarchical and ring algorithms reach this on a tree.
    On a rank's own link it is the known b·(n − 1)/n. Result and error as in
    :func:`all_to_all_bandwidth`.
    """
    return _inverse([max(k, n - k) / (n * rate) for _, k, n, rate in _cuts(graph, [ranks])])


def concurrent_bandwidth(graph: nx.Graph, sets: Sequence[Run]) -> float:
    """Bytes per second at which every set of ranks reduce-scatters a buffer, all at the same time.

    A link carries max(k, n − k)/n of a buffer for every set of n ranks of which it separates k, as
    in :func:`milp_planner.inputs.interconnect.reduce_scatter_bandwidth`; the sum of these over its
    bandwidth counts.
    """
    load: dict[int | str, float] = defaultdict(float)
    for node, k, n, rate in _cuts(graph, sets):
        load[node] += max(k, n - k) / n / rate
    return _inverse([*load.values()])


def _path(above: dict[int | str, int | str], node: int | str) -> Iterator[int | str]:
    """A node and those above it, without the root."""
    while node in above:
        yield node
        node = above[node]


def _cuts(
    graph: nx.Graph, sets: Iterable[Iterable[int]]
) -> Iterator[tuple[int | str, int, int, int]]:
    """For every set and link that separates it: node below, ranks there, all, and bandwidth."""
    import networkx as nx

    root = next(iter(graph))
    above = dict(nx.bfs_predecessors(graph, root))
    for ranks in map(set, sets):
        if lost := ranks - above.keys() - {root}:
            raise ValueError(f"rank {min(lost)} is not connected to rank {root}")
        below = Counter(node for rank in ranks for node in _path(above, rank))
        for node, k in below.items():
            if k < len(ranks):
                yield node, k, len(ranks), graph.edges[node, above[node]]["bandwidth"]


def _inverse(load: list[float]) -> float:
    return 1 / max(load) if load else float("inf")
