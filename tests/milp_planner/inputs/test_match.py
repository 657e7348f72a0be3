"""Constraints of a model against the ranks of a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.constraints import mismatches, ranks_needed
from tests.milp_planner.inputs.builders import cluster, model, table


@pytest.mark.parametrize(
    ("constraints", "field"), [({"ranks": [0, 4]}, "ranks"), ({"pin": {"ranks": [4]}}, "pin.ranks")]
)
def test_rank_outside_the_cluster(constraints: dict[str, Any], field: str) -> None:
    """A rank that the cluster lacks is refused, with the ranks that it has."""
    read = Model.from_dict(model(table(name="a"), table(constraints=constraints)))
    expected = f"tables[1].constraints.{field} (table t): found rank 4; allowed: 0 to 3"
    found = mismatches(read, Cluster.from_dict(cluster()))
    assert list(found) == ["t"] and expected in str(found["t"])


def test_ranks_inside_the_cluster() -> None:
    """The first and the last rank are allowed."""
    read = Model.from_dict(model(table(constraints={"ranks": [0, 3], "pin": {"ranks": [3]}})))
    assert mismatches(read, Cluster.from_dict(cluster())) == {}
    assert ranks_needed(read) == 4 and ranks_needed(Model.from_dict(model(table()))) == 1
