"""The Instance, the only input of the mathematics: building, reading, writing, validating it."""

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
