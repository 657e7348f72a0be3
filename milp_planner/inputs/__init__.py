"""The input files: models and clusters, read strictly and checked."""

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
