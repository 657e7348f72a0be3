"""Warnings that claim certainty are right, and shipped inputs get none."""

from __future__ import annotations

from typing import Any

import pytest

from milp_planner import plan
from milp_planner.features.plan.doubts import doubts
from milp_planner.inputs import Cluster, Model
from scenarios import catalog

CLUSTER: dict[str, Any] = {
    "name": "c", "profile": "h100", "machines": 2, "ranks_per_machine": 2, "hbm": "80GiB",
    "ddr": "1TB", "interconnect": {"intra_machine": "450GB/s", "inter_machine": "50GB/s"},
}  # fmt: skip


def _model(*rows: int, **fields: Any) -> Model:
    tables = [{"name": f"t{i}", "rows": n, "dim": 128, **fields} for i, n in enumerate(rows)]
    return Model.from_dict({"name": "m", "workload": {"batch_per_rank": 64}, "tables": tables})


def _told(model: Model, **changes: Any) -> list[tuple[str, str]]:
    found = doubts(model, Cluster.from_dict({**CLUSTER, **changes}))
    return [(each.field, each.message) for each in found]


@pytest.mark.parametrize("cluster", [entry.name for entry in catalog.clusters()])
def test_no_shipped_cluster_is_doubted(cluster: str) -> None:
    """With a model that fits everywhere, no shipped cluster gets a warning."""
    assert doubts("criteo-kaggle", cluster) == ()


def test_forty_billion_rows_fit_nowhere() -> None:
    """20 TB of weights against 4 × 68 GiB and less than 2 TB: the warning has the table and both
    figures."""
    ((field, message),) = _told(_model(1_000_000, 40_000_000_000))
    assert field == "tables[1].rows" and "table t1 fits nowhere: it has 18.6 TiB" in message
    assert "c has 272.0 GiB of HBM and 1." in message and message.endswith("after reservations")


@pytest.mark.parametrize("rows", [[1_500_000_000] * 5, [500_000_000, 3_000_000_000]])
def test_what_is_told_is_so(rows: list[int]) -> None:
    """The warning appears exactly if the solve proves infeasibility (one case of either kind)."""
    told = _told(_model(*rows))
    found = plan(_model(*rows), Cluster.from_dict(CLUSTER), time_limit=20)
    assert (found.outcome.status.value == "infeasible") == bool(told), told


def test_all_together_fit_nowhere() -> None:
    """Five tables, each of which would fit alone: one warning about their sum."""
    ((field, message),) = _told(_model(*[1_500_000_000] * 5))
    assert field == "tables" and "together they need 3.5" in message


@pytest.mark.parametrize(
    "changes",
    [
        {"reservations": {"hbm_percent": 0.15}, "expected": ("reservations.hbm_percent", "15?")},
        {"reservations": {"ddr_percent": 0.5}, "expected": ("reservations.ddr_percent", "50?")},
        {"reservations": {"min_headroom": 0.05}, "expected": ("reservations.min_headroom", "5?")},
        {"ddr": "1GB", "expected": ("ddr", "the machine?")},
        {"hbm": "80TiB", "ddr": "800TiB", "expected": ("hbm", "has")},
        {"interconnect": {"intra_machine": "50GB/s", "inter_machine": "450GB/s"},
         "expected": ("interconnect.intra_machine", "swapped?")},
    ],
)  # fmt: skip
def test_likely_slips(changes: dict[str, Any]) -> None:
    """One sentence about each slip, and where it is."""
    changes = dict(changes)
    field, ending = changes.pop("expected")
    ((found, message),) = _told(_model(1_000_000), **changes)
    assert found == field and message.endswith(ending)
