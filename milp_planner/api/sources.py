"""Models and clusters, given as objects or as the paths of their files."""

from __future__ import annotations

from pathlib import Path

from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.files import load_cluster, load_model

ModelSource = Model | str | Path
ClusterSource = Cluster | str | Path


def to_model(source: ModelSource) -> Model:
    """The model itself, or read from its YAML file.

    Raises
    ------
    BadInput
        When the file is missing or malformed, or ``source`` is neither.
    """
    if isinstance(source, Model):
        return source
    return load_model(_path(source, "model"))


def to_cluster(source: ClusterSource) -> Cluster:
    """The cluster itself, or read from its YAML file.

    Raises
    ------
    BadInput
        When the file is missing or malformed, or ``source`` is neither.
    """
    if isinstance(source, Cluster):
        return source
    return load_cluster(_path(source, "cluster"))


def _path(source: object, what: str) -> Path:
    if isinstance(source, (str, Path)):
        return Path(source)
    raise BadInput(
        f"a {what} must be a path or a {what.capitalize()}, found {type(source).__name__}"
    )
