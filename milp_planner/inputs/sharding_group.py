"""One sharding group of a cluster, as a cluster of its own.

All groups exchange at the same time, so a group gets its ranks' share of every link and of every
machine's host memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from milp_planner.errors import CHECK, BadInput, Problem
from milp_planner.inputs.cluster import Cluster, Machine, Rank
from milp_planner.inputs.interconnect import Interconnect, Run
from milp_planner.inputs.model import Model
from milp_planner.inputs.table import Table
from milp_planner.inputs.two_d import TwoD, sharding_groups

SYNCED = ("none", "sgd", "rowwise_adagrad", "adagrad")
"""Optimizers that TorchRec's 2D supports: from any state it reads the tensor ``sum``."""


def group_of(cluster: Cluster) -> Cluster:
    """The group that ``two_d`` of a cluster names; the cluster itself if undivided or a group.

    BadInput if something is left to choose, or if the groups are not alike.
    """
    two_d = cluster.two_d
    if two_d is None or two_d.whole is not None:
        return cluster
    if not two_d.named:
        raise _wrong(
            cluster, "leaves size, layout or strategy to be chosen, which plan does; name all three"
        )
    size, whole = two_d.sharding_group_size, cluster.model_copy(update={"two_d": None})
    assert isinstance(size, int)
    if whole.num_ranks % size:
        raise _wrong(
            cluster, f"found groups of {size} ranks, which do not divide the {whole.num_ranks} "
            f"ranks; {_allowed(whole, two_d)}",
        )  # fmt: skip
    why = unfit(whole, size, two_d.layout)
    if why:
        raise _wrong(
            cluster, f"found {two_d.layout} groups of {size} ranks: {why}; {_allowed(whole, two_d)}"
        )
    return _group(whole, two_d, sharding_groups(whole.num_ranks, size, two_d.layout)[0])


def is_group_of_its_whole(cluster: Cluster) -> bool:
    """Whether a cluster that claims to be a sharding group is the group that its whole yields."""
    two_d = cluster.two_d
    if two_d is None or two_d.whole is None:
        return True
    asked = two_d.model_copy(update={"whole": None})
    return group_of(two_d.whole.model_copy(update={"two_d": asked})) == cluster


def unfit(whole: Cluster, size: int, layout: str) -> str:
    """Why the ranks of a cluster cannot be divided into groups of a size; empty if they can.

    All groups need the same machines and domains, so that one plan fits all.
    """
    groups = sharding_groups(whole.num_ranks, size, layout)
    home = [machine for machine, ranks in enumerate(whole.machine_ranks) for _ in ranks]
    every = whole.ranks
    first = _shape(whole, home, every, groups[0])
    run = whole.span * len(whole.machines[0].ranks)
    wide = f"row groups of {run} ranks ({whole.span} machines of a domain) do not divide them"
    if any(_shape(whole, home, every, ranks) != first for ranks in groups[1:]):
        return wide if whole.span > 1 and size % run else "their machines or domains differ"
    links = _links(whole, sorted({home[rank] for rank in groups[0]}))
    domains = None if links is None else links.domains
    span = 1 if domains is None or domains.span is None else domains.span
    return wide if span > 1 and math.gcd(*domains.machines) % span else ""  # type: ignore[union-attr]


def unsynced(model: Model, cluster: Cluster) -> dict[str, Problem]:
    """A problem for each table that TorchRec's 2D would not keep equal on its replicas."""
    if cluster.replicas == 1 or not model.workload.trains:
        return {}
    found = ((t.name, _unsynced(t, model.optimizer_of(t))) for t in model.tables)
    where = f"model {model.name}"
    return {name: Problem(f"table {name!r} in 2D: {why}", "", where) for name, why in found if why}


def _unsynced(table: Table, optimizer: str) -> str:
    if table.kind != "torchrec":
        return f"found a table of {table.kind}, which sync() does not average; allowed: torchrec"
    if table.key_value.virtual:
        return "found a virtual table, which sync() does not average; allowed: tables in HBM or DDR"
    if optimizer not in SYNCED:
        return (
            f"found {optimizer}, whose state DMPCollection cannot average (it raises KeyError: "
            f"'sum'); allowed: {', '.join(SYNCED)}"
        )
    return ""


def _group(whole: Cluster, two_d: TwoD, ranks: Run) -> Cluster:
    """The cluster of these ranks."""
    inside = set(ranks)
    chosen = [
        (number, [rank for rank in there if rank in inside])
        for number, there in enumerate(whole.machine_ranks)
        if not inside.isdisjoint(there)
    ]
    every = whole.ranks
    machines = tuple(
        Machine(ddr_bytes=_ddr(whole, number, held), ranks=tuple(every[r] for r in held))
        for number, held in chosen
    )
    numbers = [number for number, _ in chosen]
    ddr = max(_share(whole, whole.reservations.ddr_bytes, *each) for each in chosen)
    kept = whole.reservations.model_copy(update={"ddr_bytes": ddr})
    count = whole.num_ranks // len(ranks)
    name = f"{whole.name}/{count}x{len(ranks)}-{two_d.layout}-{two_d.strategy}"
    changes = {
        "name": name if count > 1 else whole.name,
        "machines": machines,
        "reservations": kept,
        "interconnect": _links(whole, numbers),
        "two_d": two_d.model_copy(update={"whole": whole}),
    }
    return whole.model_copy(update=changes)


def _ddr(whole: Cluster, number: int, held: Sequence[int]) -> int:
    """Share of some ranks in their machine's DDR, rounded down."""
    machine = whole.machines[number]
    return machine.ddr_bytes * len(held) // len(machine.ranks)


def _share(whole: Cluster, amount: int, number: int, held: Sequence[int]) -> int:
    """Share of some ranks in an amount of their machine, rounded up."""
    return -(-amount * len(held) // len(whole.machines[number].ranks))


def _links(whole: Cluster, machines: Sequence[int]) -> Interconnect | None:
    """The links of some machines, with the domains restricted to these."""
    links = whole.interconnect
    if links is None or links.domains is None:
        return links
    sizes = _domains(whole, machines)
    span = links.domains.span
    if span is not None and machines[-1] - machines[0] >= len(machines):  # every n-th machine only
        span = max(1, span * len(machines) // len(whole.machines))
    domains = links.domains.model_copy(update={"machines": sizes, "span": span})
    return links.model_copy(update={"domains": domains})


def _domains(whole: Cluster, machines: Sequence[int]) -> Run:
    """Number of the machines in each domain that has any of them."""
    assert whole.interconnect is not None
    inside = set(machines)
    counts = (len(inside & {*d}) for d in whole.interconnect.domain_machines(len(whole.machines)))
    return tuple(count for count in counts if count)


def _shape(whole: Cluster, home: Sequence[int], every: Sequence[Rank], ranks: Run) -> object:
    """The properties of a group that decide prices and capacities: machines, ranks, domains."""
    held: dict[int, list[int]] = {}
    for rank in ranks:
        held.setdefault(home[rank], []).append(rank)
    machines = [
        (_ddr(whole, number, there), [every[rank] for rank in there])
        for number, there in held.items()
    ]
    alone = whole.interconnect is None or whole.interconnect.domains is None
    return machines, () if alone else _domains(whole, [*held])


def _allowed(whole: Cluster, two_d: TwoD) -> str:
    """Sizes at which the groups of a layout are alike."""
    sizes = [n for n in range(1, whole.num_ranks + 1) if whole.num_ranks % n == 0]
    good = [str(n) for n in sizes if not unfit(whole, n, two_d.layout)]
    return f"allowed for {two_d.layout} groups: {', '.join(good)} ranks"


def _wrong(cluster: Cluster, what: str) -> BadInput:
    return BadInput.of([Problem(what, "two_d", f"cluster {cluster.name}")], CHECK)
