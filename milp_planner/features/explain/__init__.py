"""Answers about a plan: why it is so, what memory buys, what it takes to change it.

One question a file. Every answer is a frozen value that terminal, JSON and HTML share, and every
figure in it is a solved Instance or a bound that says where it comes from.
"""

from milp_planner.features.explain.budget import Budget
from milp_planner.features.explain.diff import DiffInfo, diff
from milp_planner.features.explain.frontier import FrontierInfo, exact_frontier, grid_frontier
from milp_planner.features.explain.replan import ReplanInfo, replan
from milp_planner.features.explain.robust import RobustInfo, robust
from milp_planner.features.explain.sensitivity import SensitivityInfo, sensitivity
from milp_planner.features.explain.smallest import (
    LeastInfo,
    MachinesInfo,
    fewest_machines,
    least_memory,
)
from milp_planner.features.explain.staircase import StaircaseInfo, staircase
from milp_planner.features.explain.why import WhyInfo, why

__all__ = [
    "Budget",
    "DiffInfo",
    "FrontierInfo",
    "LeastInfo",
    "MachinesInfo",
    "ReplanInfo",
    "RobustInfo",
    "SensitivityInfo",
    "StaircaseInfo",
    "WhyInfo",
    "diff",
    "exact_frontier",
    "fewest_machines",
    "grid_frontier",
    "least_memory",
    "replan",
    "robust",
    "sensitivity",
    "staircase",
    "why",
]
