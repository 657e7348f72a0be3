"""Provably optimal placement of embedding tables on GPU clusters.

Describe tables and a cluster; the planner prices every way to place every table, finds the best
combination, proves it, and checks it without a solver::

    from milp_planner import plan

    best = plan("model.yaml", "cluster.yaml", objective="step_time")

Everything public is loaded on first use, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from milp_planner.api import audit, compare, plan, verify
    from milp_planner.inputs import Cluster, Model

__all__ = ["Cluster", "Model", "audit", "compare", "plan", "verify"]

_HOME = {
    "Model": "milp_planner.inputs",
    "Cluster": "milp_planner.inputs",
    "plan": "milp_planner.api",
    "compare": "milp_planner.api",
    "verify": "milp_planner.api",
    "audit": "milp_planner.api",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("milp-planner")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
