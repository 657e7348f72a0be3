"""Places embedding tables on GPU clusters and proves how near the best each placement is.

Describe tables and a cluster; the planner prices every way to place every table, searches for the
best combination, proves how near it is, and checks all that without a solver::

    from milp_planner import plan

    best = plan("model.yaml", "cluster.yaml", objective="step_time")
    best.save("plan.json")

Everything public is loaded on first use, so that importing the package costs nothing.
"""

from milp_planner.version import __version__

TYPE_CHECKING = False  # typing takes milliseconds, in which the program cannot yet hear Ctrl-C
if TYPE_CHECKING:
    from milp_planner.features.audit.call import audit
    from milp_planner.features.explain.call import explain
    from milp_planner.features.plan.call import check, plan
    from milp_planner.features.report.page import report
    from milp_planner.features.verify import verify
    from milp_planner.inputs import Cluster, Model
    from milp_planner.integrations.exports import write as export
    from milp_planner.integrations.replay.judge import judge
    from milp_planner.integrations.replay.plan_for import plan_for
    from milp_planner.plans.placement import Plan
    from milp_planner.plans.plan_file import read_plan
    from milp_planner.request.questions import Asked
    from milp_planner.request.values import Moves
    from scenarios.compare.call import compare


__all__ = [
    "Asked",
    "Cluster",
    "Model",
    "Moves",
    "Plan",
    "__version__",
    "audit",
    "check",
    "compare",
    "explain",
    "export",
    "judge",
    "plan",
    "plan_for",
    "read_plan",
    "report",
    "verify",
]

_HOME = {
    "Model": ("milp_planner.inputs", "Model"),
    "Cluster": ("milp_planner.inputs", "Cluster"),
    "Asked": ("milp_planner.request.questions", "Asked"),
    "Moves": ("milp_planner.request.values", "Moves"),
    "Plan": ("milp_planner.plans.placement", "Plan"),
    "audit": ("milp_planner.features.audit.call", "audit"),
    "check": ("milp_planner.features.plan.call", "check"),
    "compare": ("scenarios.compare.call", "compare"),
    "explain": ("milp_planner.features.explain.call", "explain"),
    "export": ("milp_planner.integrations.exports", "write"),
    "judge": ("milp_planner.integrations.replay.judge", "judge"),
    "plan": ("milp_planner.features.plan.call", "plan"),
    "plan_for": ("milp_planner.integrations.replay.plan_for", "plan_for"),
    "read_plan": ("milp_planner.plans.plan_file", "read_plan"),
    "report": ("milp_planner.features.report.page", "report"),
    "verify": ("milp_planner.features.verify", "verify"),
}


def __getattr__(name: str) -> object:
    if name == "simulate":
        raise AttributeError("simulate is gone: benchmarks/simulator, in the repository, has it")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module, found = _HOME[name]
    return getattr(import_module(module), found)
