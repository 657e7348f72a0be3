"""Which points of a sweep leave more memory than others, and which instances differ in it alone."""

from __future__ import annotations

from typing import Any

import pytest

from milp_planner.plans.compile import compile_for
from scenarios import catalog
from scenarios.batch.neighbours import leaves_as_much, shape_of, without_memory
from scenarios.batch.vary import vary_cluster, vary_model


@pytest.mark.parametrize(
    ("more", "less", "so"),
    [
        ({"hbm": 9, "ddr": 5}, {"hbm": 8, "ddr": 5}, True),
        ({"hbm": 9, "ddr": 4}, {"hbm": 8, "ddr": 5}, False),
        ({"hbm_percent": "9/2"}, {"hbm_percent": "10"}, True),
        ({"hbm_percent": "10"}, {"hbm_percent": "9/2"}, False),
        ({"hbm": 9, "batch": 2}, {"hbm": 8, "batch": 1}, False),
        ({"hbm": 9}, {"ddr": 9}, False),
        ({}, {}, True),
        ({"cluster.hbm": "40GiB"}, {"cluster.hbm": "8GiB"}, True),
        ({"cluster.hbm": "8GiB"}, {"cluster.hbm": "40GiB"}, False),
        ({"cluster.hbm": "+8GiB"}, {"cluster.hbm": "+4GiB"}, False),
        ({"reservations.hbm_percent": "5%"}, {"reservations.hbm_percent": "10%"}, True),
        ({"cluster.machines.0.ddr": "2TB"}, {"cluster.machines.0.ddr": "1TB"}, False),
        ({"workload.dedup": True}, {"workload.dedup": True}, True),
    ],
)
def test_more_of_everything(more: dict[str, Any], less: dict[str, Any], so: bool) -> None:
    """Larger memories and smaller reservations, by any path; all other axes are equal."""
    assert leaves_as_much(more, less) is so
    others = {"batch", "workload.dedup", "cluster.machines.0.ddr"}
    assert without_memory(more).keys() == more.keys() & others


def test_shapes_are_equal_where_memory_differs() -> None:
    """HBM, DDR and reservations change no option and no price, even where other moments of a step
    limit them; a larger batch does."""
    model = catalog.find_model("dlrmv4-yambda5b")
    cluster = catalog.find_cluster("8xb200-tight")

    def shape(batch: int = 0, **axes: Any) -> str:
        varied = vary_model(model, {"batch": batch} if batch else {})
        return shape_of(compile_for(varied, vary_cluster(cluster, axes), "step_time").instance)

    assert shape() == shape(hbm=2**35) == shape(ddr=2**41) == shape(fragmentation="3")
    assert shape() != shape(batch=64)
