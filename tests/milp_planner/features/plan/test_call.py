"""``plan`` as a Python call."""

from __future__ import annotations

import pytest

import milp_planner
from formulations import InstanceError, Settings, Status
from formulations.result.check import check
from milp_planner import plan
from milp_planner.errors import BadInput
from tests.milp_planner.features.small import MODEL, cluster


def test_an_exact_plan_is_proved_and_checked() -> None:
    """Optimal in integers, accepted by the check, a row per table."""
    found = plan(MODEL, cluster(), formulation="cpsat", time_limit=30)
    assert found.outcome.status == Status.OPTIMAL
    assert found.outcome.placement is not None
    assert check(found.instance, found.outcome.placement).feasible
    assert [t.name for t in found.tables] == [t.name for t in MODEL.tables]


def test_fused_tables_share_their_ratio() -> None:
    """Two dynamicemb tables of one group get one ratio, as in the runtime."""
    found = plan(MODEL, cluster(hbm="2GiB"), formulation="cpsat", time_limit=30)
    groups: dict[str, set[object]] = {}
    for table in found.tables:
        if table.fusion_group is not None:
            groups.setdefault(table.fusion_group, set()).add(table.cache_ratio)
    assert groups and all(len(ratios) == 1 for ratios in groups.values())


def test_names_are_checked_before_any_work() -> None:
    """An unknown formulation or objective is refused with the nearest valid name."""
    with pytest.raises(InstanceError, match="did you mean 'cpsat'"):
        plan(MODEL, cluster(), formulation="cpstat")
    with pytest.raises(BadInput, match="did you mean step_time"):
        plan(MODEL, cluster(), objective="steptime")


def test_infeasible_carries_its_diagnosis() -> None:
    """The outcome proves it and says what is lacking; a stopped search asks nothing more."""
    tiny = cluster(hbm="64MiB", ddr="64MiB")
    found = plan(MODEL, tiny, formulation="cpsat", time_limit=20)
    assert found.outcome.status == Status.INFEASIBLE and found.tables == ()
    assert {"capacities", "drop", "conflict"} <= set(found.outcome.detail["diagnosis"])  # type: ignore[call-overload]
    settings = Settings(time_limit=20)
    settings.stop.set()
    stopped = plan(MODEL, tiny, formulation="cpsat", settings=settings)
    assert "diagnosis" not in stopped.outcome.detail


def test_public_names_are_lazy_and_complete() -> None:
    """Every name in __all__ can be imported; any other is an AttributeError."""
    assert all(getattr(milp_planner, name) is not None for name in milp_planner.__all__)
    with pytest.raises(AttributeError, match="no attribute 'plam'"):
        _ = milp_planner.plam  # type: ignore[attr-defined]
