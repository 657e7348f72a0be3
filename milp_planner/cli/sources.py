"""MODEL and CLUSTER arguments: bare names of what ships, or paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from milp_planner.inputs import Cluster, Model


def find(model: str, cluster: str) -> tuple[Model, Cluster]:
    """Both inputs, read and checked.

    Raises
    ------
    BadInput
        One sentence about the first mistake, with the nearest valid name.
    """
    from scenarios import catalog

    return catalog.find_model(model), catalog.find_cluster(cluster)
