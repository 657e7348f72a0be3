"""TorchRec's planning service (from 1.9) with this project's planner in it.

``MilpPlannerProvider`` builds it for ``PlannerVariant.LINEAR_PROGRAMMING``, so that TorchRec's own
``ProductionPlannerOrchestrator`` and ``DryRunOrchestrator`` work with it unchanged;
``MilpPlanReporter`` keeps bound and gap of every plan.
"""

from importlib.util import find_spec

import torchrec

from milp_planner.errors import MissingExtra

if find_spec("torchrec.distributed.planner.provider") is None:
    raise MissingExtra(
        f"TorchRec {torchrec.__version__} has no planning service, it came with 1.9; "
        "run `pip install --no-deps torchrec==1.9.2`"
    )

from milp_planner.integrations.torchrec.service.cache import FolderPlans
from milp_planner.integrations.torchrec.service.provider import MilpPlannerProvider, hardware_of
from milp_planner.integrations.torchrec.service.reports import MilpPlanReporter, PlanReport
from milp_planner.integrations.torchrec.service.reservation import MilpPlannerConfig
from milp_planner.integrations.torchrec.service.skus import DryRun, SkuRow, dry_run

__all__ = [
    "DryRun",
    "FolderPlans",
    "MilpPlanReporter",
    "MilpPlannerConfig",
    "MilpPlannerProvider",
    "PlanReport",
    "SkuRow",
    "dry_run",
    "hardware_of",
]
