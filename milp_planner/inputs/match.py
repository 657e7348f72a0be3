"""Whether a model's constraints make sense on a cluster."""

from __future__ import annotations

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
    for number, table in enumerate(model.tables):
        limits = table.constraints
        named = {"ranks": limits.ranks, "pin.ranks": limits.pin.ranks if limits.pin else None}
        for field, ranks in named.items():
            wrong = [rank for rank in ranks or () if rank >= cluster.num_ranks]
            if wrong:
                raise BadInput(
                    f"model {model.name}: tables[{number}].constraints.{field} "
                    f"(table {table.name}): found rank {wrong[0]}; "
                    f"allowed: 0 to {cluster.num_ranks - 1} of cluster {cluster.name}"
                )
