"""Plans made again in Python: ``Plan.replan`` and its limits."""

from __future__ import annotations

from typing import Any

import pytest

from formulations.result.check import moved_bytes, moved_tables
from milp_planner import Model, Plan, plan, verify
from milp_planner.errors import BadInput
from milp_planner.features.plan.again import Moves
from tests.milp_planner.features.small import MODEL, cluster


@pytest.fixture(scope="module")
def before() -> Plan:
    """A proved plan on two ranks."""
    return plan(MODEL, cluster(), time_limit=10)


def rows(**more: int) -> Model:
    """The small model with other numbers of rows."""
    data: dict[str, Any] = MODEL.to_dict()
    for table in data["tables"]:
        table["rows"] = more.get(table["name"], table["rows"])
    return Model.from_dict(data)


def moved(again: Plan) -> tuple[int, int]:
    """Tables and bytes."""
    placement = again.outcome.placement
    assert placement is not None
    tables = moved_tables(again.instance, placement)
    return len(tables), moved_bytes(again.instance, placement, tables)


def test_the_same_again(before: Plan) -> None:
    """No move, the same objective, certified."""
    again = before.replan(time_limit=10)
    assert moved(again) == (0, 0)
    assert again.outcome.objective == before.outcome.objective
    assert again.outcome.certified_bound == again.outcome.objective


@pytest.mark.parametrize("most", [0, 1, Moves(bytes=0), Moves(share=0.3)])
def test_limits_hold(before: Plan, most: Moves | int) -> None:
    """Tables, bytes, or a share of these; the plan is verified under that question."""
    again = before.replan(model=rows(items=4_000_000), max_moved=most, time_limit=10)
    tables, size = moved(again)
    limit = again.instance.max_moved_bytes
    assert tables <= (most if isinstance(most, int) else 4)
    assert limit is None or size <= limit
    assert verify(again).ok


def test_what_may_not_move_enough_is_refused(before: Plan) -> None:
    """On one rank less something must move: with no move allowed that is infeasible, proved."""
    again = before.replan(cluster=cluster(1, hbm="1MiB", ddr="4MiB"), max_moved=0, time_limit=10)
    assert again.status == "infeasible"


def test_contradictions(before: Plan) -> None:
    """Two plans to start from, or limits without one."""
    with pytest.raises(BadInput, match="give one"):
        plan(MODEL, cluster(), before=before, today=before)
    with pytest.raises(BadInput, match="go with before"):
        plan(MODEL, cluster(), max_moved=3)
    with pytest.raises(BadInput, match="max_moved"):
        Moves(share=1.5)
