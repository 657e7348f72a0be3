"""Whether a model's constraints make sense on a cluster."""

from __future__ import annotations

from collections.abc import Iterator

from milp_planner.errors import BadInput
from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.model import Model


def check_match(model: Model, cluster: Cluster) -> None:
    """Refuse ranks that the cluster does not have.

    Raises
    ------
    BadInput
        One sentence with table, field, the rank found and the ranks allowed.
    """
    for where, rank in _named(model):
        if rank >= cluster.num_ranks:
            raise BadInput(
                f"model {model.name}: {where}: found rank {rank}; allowed: 0 to "
                f"{cluster.num_ranks - 1} of cluster {cluster.name}"
            )


def ranks_needed(model: Model) -> int:
    """Ranks of the smallest cluster that has every rank the model's constraints name."""
    return 1 + max((rank for _, rank in _named(model)), default=0)


def _named(model: Model) -> Iterator[tuple[str, int]]:
    """Every rank that a constraint names, with its field."""
    for number, table in enumerate(model.tables):
        limits = table.constraints
        named = {"ranks": limits.ranks, "pin.ranks": limits.pin.ranks if limits.pin else None}
        for field, ranks in named.items():
            where = f"tables[{number}].constraints.{field} (table {table.name})"
            yield from ((where, rank) for rank in ranks or ())
