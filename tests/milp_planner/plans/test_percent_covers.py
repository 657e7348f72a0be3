"""A percentage that covers the exchange's buffers: two constraints, and the larger one decides."""

from __future__ import annotations

from typing import Any

import pytest

from milp_planner import plan
from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.plans.compile import compile_instance
from milp_planner.plans.ledger import ledger_of
from milp_planner.pricing import price
from milp_planner.pricing.entries import MOMENTS
from milp_planner.pricing.outside import at_moment, exchange_bytes
from tests.milp_planner.pricing.build import cluster, model

MIB = 2**20
GIVEN = {"hbm_percent": 25, "kjt_multiple": 0, "min_headroom": 5}


def inputs(batch: int, covers: str, **held: Any) -> tuple[Model, Cluster]:
    """A table of 740 MiB without state on one rank of 1000 MiB, a quarter of which is reserved."""
    table = {
        "rows": 740 * MIB // 256, "optimizer": "sgd", "pooling_factor": 1,
        "constraints": {"modes": ["HBM_ONLY"], "sharding_types": ["table_wise"]},
    }  # fmt: skip
    reservations = {**GIVEN, "percent_covers": covers, **held}
    asked = cluster(1, 1, hbm="1000MiB", ddr="1GiB", reservations=reservations)
    return model(table, batch_per_rank=batch), asked


def status(batch: int, covers: str) -> str:
    """Status of the plan."""
    return str(plan(*inputs(batch, covers), time_limit=10).outcome.status.value)


def test_the_larger_of_the_two_decides() -> None:
    """740 of 750 MiB fit beside the percentage if buffers are within it: of 1000 MiB, 50 stay free
    and 210 are left for buffers. Buffers above that count for themselves."""
    assert status(100_000, "outside") == "infeasible"  # the buffers alone exceed 10 MiB
    assert status(100_000, "buffers") == "optimal"
    assert status(600_000, "buffers") == "infeasible"  # the buffers alone exceed 210 MiB
    assert status(1, "outside") == status(1, "buffers") == "optimal"


def test_the_constraints_by_hand() -> None:
    """Rows have 75% of 1000 MiB, every moment 95% of it less its exchange."""
    asked = inputs(100_000, "buffers")
    options = price(*asked)
    instance = compile_instance(options)
    rooms = {r.name: r.capacity.tolist() for r in instance.resources}
    assert rooms.pop("hbm@rows") == [750 * MIB]
    exchange = exchange_bytes(asked[0], 1)
    assert rooms["hbm"][0] in {950 * MIB - at_moment(exchange, moment) for moment in MOMENTS}
    column = [r.name for r in instance.resources].index("hbm@rows")
    assert instance.shard_use[:, column].tolist() == [740 * MIB]


def test_the_ledger_counts_buffers_once() -> None:
    """No percentage is drawn beside the buffers, and what is shown is what is charged."""
    made = plan(*inputs(100_000, "buffers"), time_limit=10)
    ledger = ledger_of(made)
    assert ledger is not None
    (place,) = ledger.hbm
    assert "reserved" not in place.entries
    assert place.headroom == 50 * MIB
    assert place.room >= 0


def test_a_reservation_without_a_percentage_is_refused() -> None:
    """There is nothing that could cover the buffers; unknown words are refused, too."""
    with pytest.raises(BadInput, match="percent_covers: buffers needs hbm_percent"):
        inputs(1, "buffers", hbm_percent=None)
    with pytest.raises(BadInput, match="percent_covers"):
        inputs(1, "all")
