"""The Instance: what the mathematics may know, how it is built, read, written and validated."""

from formulations.instance.instance import (
    MAX_ACTIVITY,
    MAX_VALUE,
    BlockView,
    Current,
    Instance,
    IntArray,
    Objective,
    Pin,
    Resource,
    Scope,
    Where,
)

__all__ = [
    "MAX_ACTIVITY",
    "MAX_VALUE",
    "BlockView",
    "Current",
    "Instance",
    "IntArray",
    "Objective",
    "Pin",
    "Resource",
    "Scope",
    "Where",
]
