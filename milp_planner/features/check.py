"""``check``: what is wrong with a model and a cluster, all of it, without solving."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from milp_planner.errors import BadInput, Problem
from milp_planner.plans.compile import ClusterSource, ModelSource, to_cluster, to_model
from milp_planner.pricing import price
from milp_planner.pricing.profile import load_profile

Read = TypeVar("Read")


def check(
    model: ModelSource, cluster: ClusterSource, *, profile: str | None = None
) -> tuple[Problem, ...]:
    """Every problem of a model and a cluster: what :func:`milp_planner.plan` would refuse.

    Whether the tables fit into the memory is not asked: that takes a plan.

    Parameters
    ----------
    model, cluster
        Objects, paths of their files, or names of shipped ones.
    profile : str, optional
        Hardware profile that prices the plan, a name or a file; default: the cluster's.

    Returns
    -------
    tuple of Problem
        Those of the model first, then of the cluster and of its profile. Where all three are
        right by themselves: those of the tables on this cluster. Empty when there are none.
    """
    problems: list[Problem] = []

    def told(read: Callable[[], Read]) -> Read | None:
        try:
            return read()
        except BadInput as error:
            problems.extend(error.problems)
            return None

    tables = told(lambda: to_model(model))
    place = told(lambda: to_cluster(cluster))
    name = profile or (place.profile if place is not None else None)
    prices = None if name is None else told(lambda: load_profile(name))
    if tables is not None and place is not None and prices is not None:
        told(lambda: price(tables, place, prices))
    return tuple(problems)
