"""Models and clusters from objects and paths."""

from pathlib import Path

import pytest

from milp_planner.errors import BadInput
from milp_planner.plans.compile import to_cluster, to_model
from tests.milp_planner.cli.conftest import CLUSTER
from tests.milp_planner.cli.conftest import MODEL as MODEL_TEXT
from tests.milp_planner.features.small import MODEL, cluster


def test_objects_are_taken_as_they_are() -> None:
    """Objects are neither copied nor read again."""
    here = cluster()
    assert to_model(MODEL) is MODEL and to_cluster(here) is here


def test_paths_are_read(tmp_path: Path) -> None:
    """Text and Path name a file."""
    (tmp_path / "m.yaml").write_text(MODEL_TEXT)
    (tmp_path / "c.yaml").write_text(CLUSTER)
    assert to_model(str(tmp_path / "m.yaml")) == to_model(tmp_path / "m.yaml")
    assert to_cluster(tmp_path / "c.yaml").num_ranks == 2


def test_anything_else_is_one_sentence() -> None:
    """A dictionary is not a model; the sentence says what is accepted."""
    with pytest.raises(BadInput, match="must be a path or a Model, found dict"):
        to_model({})  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="must be a path or a Cluster, found Model"):
        to_cluster(MODEL)  # type: ignore[arg-type]
