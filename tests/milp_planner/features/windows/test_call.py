"""Plans over windows: deaths and batches by the ledger, and what is advised."""

from __future__ import annotations

from typing import Any

import pytest

import milp_planner
from milp_planner.errors import BadInput
from milp_planner.features.windows.call import Run, over_windows
from milp_planner.features.windows.loads import Window
from milp_planner.plans.growth import growth_of
from milp_planner.plans.ledger import ledger_of
from milp_planner.plans.placement import Plan
from tests.milp_planner.pricing.build import cluster, model

SEQUENCE: dict[str, Any] = {
    "rows": 90_000, "dim": 128, "output": "sequence", "sequence_length": 400,
}  # fmt: skip


def planned(sharding: str, **fields: Any) -> Plan:
    """Two sequence tables on eight ranks of 1 GiB, both sharded like this, nothing outside."""
    tables = [
        {**SEQUENCE, "constraints": {"sharding_types": [sharding], "modes": "HBM_ONLY"}, **fields}
        for _ in range(2)
    ]
    site = cluster(
        hbm="1GiB", reservations={"hbm_percent": 0, "kjt_multiple": 0, "min_headroom": 5}
    )
    return milp_planner.plan(model(*tables), site, time_limit=5)


@pytest.fixture(scope="module")
def plans() -> dict[str, Plan]:
    """All row-wise, and all column-wise."""
    return {"rows": planned("row_wise"), "columns": planned("column_wise")}


def window(name: str, rows: float, steps: int = 100) -> Window:
    """A window of one load for all tables."""
    return Window(name, {"rows": int(rows)}, steps)


def returned(plan: Plan) -> float:
    """Rows that the hottest rank returns as planned."""
    return sum(Run("p", plan).rows.values())


def test_the_planned_load_is_the_ledger(plans: dict[str, Plan]) -> None:
    """At the planned load every rank has its ledger's bytes; column-wise tables follow no load."""
    for plan in plans.values():
        ledger = ledger_of(plan)
        assert ledger is not None
        places = Run("p", plan).places({"t0": 1.0, "t1": 1.0})
        assert [p.used for p in places] == [p.used for p in ledger.hbm]
    assert Run("p", plans["columns"]).rows == {}


def test_it_dies_where_the_ledgers_burst_is_exceeded(plans: dict[str, Plan]) -> None:
    """The headroom goes just beyond the burst that the ledger calls the last to fit, HBM later; at
    twice the load, fewer samples fit."""
    plan = plans["rows"]
    grown = growth_of(plan)
    assert grown is not None and grown.burst is not None
    most = returned(plan) * grown.burst.at / grown.burst.now
    windows = [
        window("fits", most * 0.999),
        window("tight", most * 1.001),
        window("dead", most * 2),
    ]
    [found] = over_windows({"p": plan}, windows, 1).plans
    assert (found.tight, found.dies) == ("tight", "dead")
    assert found.fits == (True, False, False)
    assert found.needs is not None
    assert found.needs > 2**30
    [alone] = over_windows({"p": plan}, [window("a", most)], 1).plans
    [twice] = over_windows({"p": plan}, [window("a", most), window("b", 2 * most)], 1).plans
    assert alone.largest is not None and twice.largest is not None
    assert alone.largest == pytest.approx(plan.model.workload.batch_per_rank, rel=0.02)
    assert twice.largest < alone.largest * 0.75


def test_one_table_alone(plans: dict[str, Plan]) -> None:
    """A column for one table scales that table only: its outputs are the rows that it names."""
    run = Run("p", plans["rows"])
    one = int(run.rows["t0"])
    [found] = over_windows({"p": run.plan}, [Window("w", {"t0": one}, 1)], 1).plans
    assert found.fits == (True,)
    both = run.places({"t0": 2.0, "t1": 1.0}), run.places({"t0": 2.0, "t1": 2.0})
    assert max(p.used for p in both[0]) < max(p.used for p in both[1])


def test_changing_plans_pays_if_it_is_cheap(plans: dict[str, Plan]) -> None:
    """Many steps of the faster plan until the window in which it dies, then the other; with a dear
    change, the other throughout. Without it, no way is left."""
    cost = {n: p.outcome.objectives["step_time"] for n, p in plans.items()}
    assert cost["rows"] < cost["columns"], "the test needs the fragile plan to be the faster"
    windows = [window("a", returned(plans["rows"]) / 2, 10**7), window("b", 10**8, 10)]
    found = over_windows(plans, windows, 1)
    assert found.alone == "columns"
    assert [(s.plan, s.first) for s in found.stretches] == [("rows", "a"), ("columns", "b")]
    saved = (cost["columns"] - cost["rows"]) / 1e9 * 10**7 / 60_000 - 1
    assert found.saved == pytest.approx(saved)
    dear = over_windows(plans, windows, 10**6)
    assert [s.plan for s in dear.stretches] == ["columns"]
    assert dear.saved == 0
    lost = over_windows({"rows": plans["rows"]}, windows, 1)
    assert lost.stuck and lost.alone is None and lost.minutes is None


def test_rows_need_a_table_that_follows_them(plans: dict[str, Plan]) -> None:
    """A load is refused for a plan in which no table follows it."""
    with pytest.raises(BadInput, match="row-wise sequence table"):
        over_windows({"columns": plans["columns"]}, [window("a", 5)], 1)
