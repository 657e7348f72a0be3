"""Rows over several machines, TorchRec's ``num_nodes``: who has it, and what to say to others."""

from __future__ import annotations

import re

from milp_planner.drawing.units import listed
from milp_planner.errors import BadInput, FallsShort
from milp_planner.plans.placement import Plan, nodes_of

WITHOUT_NODES = (1, 9, 2)
"""The last TorchRec that was read and has no ``num_nodes``."""
NODES = (
    "num_nodes, which TorchRec has in pull requests 4681 to 4683 only (in no release up to 1.9.2)"
)


def over_nodes(plan: Plan) -> list[str]:
    """Tables whose rows are split over several machines by ``num_nodes``."""
    return [table.name for table in plan.tables if nodes_of(table, plan.cluster) > 1]


def refuse_nodes(plan: Plan, by: str) -> None:
    """FallsShort for rows over several machines, which ``by`` cannot run."""
    if names := over_nodes(plan):
        raise FallsShort(
            f"{listed(names, 3)}: rows over several machines need {NODES}; {by} has none: "
            "num_nodes: 1 in the tables' constraints plans without"
        )


def check_version(plan: Plan, stated: str) -> None:
    """FallsShort if a stated TorchRec cannot run the plan; BadInput if it is no version."""
    found = re.match(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?!\d)", stated.strip())
    if found is None:
        raise BadInput(f"--torchrec: found {stated!r}; allowed: a version such as 1.9.2")
    if tuple(int(part or 0) for part in found.groups()) <= WITHOUT_NODES:
        refuse_nodes(plan, f"TorchRec {stated.strip()}")
