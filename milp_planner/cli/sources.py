"""MODEL and CLUSTER arguments: bare names of what ships, or paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from milp_planner.inputs import Cluster, Model


def find(model: str, cluster: str, profile: str | None = None) -> tuple[Model, Cluster]:
    """Both inputs, read and checked; the cluster priced by another profile where one is given.

    Raises
    ------
    BadInput
        One sentence about the first mistake, with the nearest valid name.
    """
    from scenarios import catalog

    found = catalog.find_model(model), catalog.find_cluster(cluster)
    if profile is None:
        return found
    priced = {**found[1].to_dict(), "profile": profile}
    return found[0], type(found[1]).from_dict(priced, "--profile")
