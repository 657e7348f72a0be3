"""The four calls: :func:`plan`, :func:`compare`, :func:`verify`, :func:`audit`.

Each takes paths or objects, returns a value with everything the command line prints, and writes
nothing. The command line is these calls plus drawings.
"""

from milp_planner.api.auditing import audit
from milp_planner.api.comparing import compare
from milp_planner.api.planning import plan
from milp_planner.api.verifying import verify

__all__ = ["audit", "compare", "plan", "verify"]
