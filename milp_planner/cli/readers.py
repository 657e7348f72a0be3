"""What arguments and options stand for: inputs, plans, the cache."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from milp_planner.errors import BadInput
from milp_planner.request import CACHE_VARIABLE

if TYPE_CHECKING:
    from milp_planner.features.plan.cache import PlanCache
    from milp_planner.inputs import Cluster, Model
    from milp_planner.request import Inputs
    from milp_planner.start.rows import StartSource


def find(request: Inputs) -> tuple[Model, Cluster]:
    """The model and the cluster of a request, by path or shipped name, with its changes."""
    from scenarios import catalog

    return request.changed(catalog.find_model(request.model), catalog.find_cluster(request.cluster))


def find_start(path: str | Path, model: Model, cluster: Cluster) -> StartSource:
    """A plan to start from, of any form, told by its content."""
    from milp_planner.integrations.stated import read_stated

    return read_stated(Path(path), model, cluster).plan


def find_cache(folder: Path | None, none: bool) -> PlanCache | None:
    """The cache in ``folder``, or in the folder that the environment names."""
    from milp_planner.features.plan.cache import to_cache

    if folder is not None and none:
        raise BadInput("--no-cache: contradicts --cache")
    return None if none else to_cache(folder or os.environ.get(CACHE_VARIABLE) or None)


def parse_formulations(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list of formulations."""
    from formulations import registry

    names = [part.strip() for part in text.split(",") if part.strip()]
    if not names:
        raise BadInput(f"--formulations {text!r}: needs at least one name")
    for name in names:
        registry.get(name)
        if names.count(name) > 1:
            raise BadInput(f"--formulations {text!r}: {name} is listed twice")
    return tuple(names)
