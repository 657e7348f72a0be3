"""TorchRec's planning service (from 1.9) with this project's planner in it.

``MilpPlannerProvider`` builds it for ``PlannerVariant.LINEAR_PROGRAMMING``, so that TorchRec's own
``ProductionPlannerOrchestrator`` and ``DryRunOrchestrator`` work with it unchanged;
``DiskPlanCache`` and ``MilpPlanReporter`` fill two more of the service's seams.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from milp_planner.errors import MissingExtra
from milp_planner.integrations.torchrec import require_torchrec

if TYPE_CHECKING:
    from milp_planner.integrations.torchrec.service.hardware import hardware_of
    from milp_planner.integrations.torchrec.service.plan_cache import DiskPlanCache
    from milp_planner.integrations.torchrec.service.provider import MilpPlannerProvider
    from milp_planner.integrations.torchrec.service.reporter import MilpPlanReporter, PlanReport
    from milp_planner.integrations.torchrec.service.skus import DryRun, SkuRow, dry_run

_HOMES = {
    "DiskPlanCache": "plan_cache",
    "DryRun": "skus",
    "MilpPlanReporter": "reporter",
    "MilpPlannerProvider": "provider",
    "PlanReport": "reporter",
    "SkuRow": "skus",
    "dry_run": "skus",
    "hardware_of": "hardware",
}

__all__ = [
    "DiskPlanCache",
    "DryRun",
    "MilpPlanReporter",
    "MilpPlannerProvider",
    "PlanReport",
    "SkuRow",
    "dry_run",
    "hardware_of",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_service()
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def require_service() -> None:
    """Make sure that TorchRec is here and has a planning service.

    Raises
    ------
    MissingExtra
        Saying what to install.
    """
    require_torchrec()
    if find_spec("torchrec.distributed.planner.provider") is None:
        import torchrec

        raise MissingExtra(
            f"TorchRec {torchrec.__version__} has no planning service, it came with 1.9; "
            "run `pip install --no-deps torchrec==1.9.2`"
        )
