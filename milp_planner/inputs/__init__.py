"""The input files: models and clusters, read strictly and checked; loaded on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from milp_planner.inputs.cluster import Cluster, Machine, Rank, Reservations
    from milp_planner.inputs.interconnect import Interconnect
    from milp_planner.inputs.model import Model, Table, Workload

__all__ = [
    "Cluster",
    "Interconnect",
    "Machine",
    "Model",
    "Rank",
    "Reservations",
    "Table",
    "Workload",
]

_HOME = {
    "cluster": ("Cluster", "Machine", "Rank", "Reservations"), "interconnect": ("Interconnect",),
    "model": ("Model", "Table", "Workload"),
}  # fmt: skip


def __getattr__(name: str) -> object:
    for module, names in _HOME.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
