"""Plans with tables on SSD: brute force agrees, certificates close, the ledger counts the bytes."""

import pytest

from formulations import Settings
from formulations.instance.validate import validate
from milp_planner import plan, verify
from milp_planner.inputs import Cluster, Model
from milp_planner.plans.compile import compile_instance
from milp_planner.plans.ledger import ledger_of
from milp_planner.plans.plan_file import plan_from_dict, plan_to_dict
from milp_planner.pricing import price
from tests.formulations.brute_force import brute_force


def small(
    busy: float | None = None, ddr: str = "400MiB", size: str = "3GB"
) -> tuple[Model, Cluster]:
    """Three tables of 256 MB on two ranks of 200 MiB, on a machine with little host memory."""
    limits = {"sharding_types": ["table_wise", "row_wise"], "cache_ratios": ["1/10", "1/5"]}
    store = {"write_buffer": "16MiB"}
    tables = [
        {"name": f"t{i}", "rows": 1_000_000, "dim": 64, "pooling_factor": p,
         "constraints": limits, "key_value": store}
        for i, p in enumerate((1.0, 20.0, 5.0))
    ]  # fmt: skip
    workload = {"batch_per_rank": 64, "ssd_step_ms": busy}
    model = Model.from_dict({"name": "m", "workload": workload, "tables": tables})
    cluster = Cluster.from_dict(
        {
            "name": "c", "machines": 1, "ranks_per_machine": 2, "hbm": "200MiB", "ddr": ddr,
            "ssd": {"size": size, "bandwidth": "2GB/s"},
            "interconnect": {"intra_machine": "400GB/s"},
            "reservations": {"hbm_percent": 0, "kjt_multiple": 0, "min_headroom": 0},
        }
    )  # fmt: skip
    return model, cluster


CASES = {
    "room": ({}, True),
    "little host memory": ({"ddr": "200MiB"}, True),
    "drives for one table": ({"ddr": "200MiB", "size": "1.5GB"}, False),
    "drives for none": ({"size": "600MB"}, False),
    "time for two tables": ({"ddr": "200MiB", "busy": 3.0}, True),
    "time for one": ({"ddr": "200MiB", "busy": 2.0}, False),
}
"""Changes of the small case, and whether anything then fits."""


@pytest.mark.parametrize("case", CASES)
def test_brute_force_agrees(case: str) -> None:
    """The best plan within SSD's bytes and traffic is that of brute force, and certified."""
    changes, fits = CASES[case]
    model, cluster = small(**changes)
    instance = compile_instance(price(model, cluster))
    validate(instance)
    truth = brute_force(instance).objective
    assert (truth is not None) is fits
    found = plan(model, cluster, settings=Settings(time_limit=30, workers=1))
    assert found.outcome.objective == truth and verify(found).ok
    if fits:
        assert found.status == "optimal" and found.outcome.certified_bound == truth
    else:
        assert found.status == "infeasible"


def test_the_ledger_counts_ssd() -> None:
    """Live rows, what compaction may leave, and the drives' size; the file keeps all of it."""
    found = plan(*small(), settings=Settings(time_limit=30, workers=1))
    stored = [table.name for table in found.tables if table.mode == "SSD"]
    ledger = ledger_of(found)
    assert ledger is not None and stored
    live = len(stored) * 1_000_000 * (256 + 8)
    (drive,) = ledger.ssd
    assert drive.entries == {"ssd_rows": live, "stale_rows": 4 * live}
    assert (drive.whole, drive.room) == (3_000_000_000, 3_000_000_000 - 5 * live)
    again = plan_from_dict(plan_to_dict(found))
    assert again.tables == found.tables and verify(again).ok
