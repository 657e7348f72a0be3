"""Why nothing fits, and the least change that would help: each answer is the optimum of an Instance
of its own."""

from formulations.diagnose.capacity import Least, least_capacity
from formulations.diagnose.diagnosis import (
    Conflict,
    Diagnosis,
    Drop,
    conflict,
    diagnose,
    fewest_drops,
)

__all__ = [
    "Conflict",
    "Diagnosis",
    "Drop",
    "Least",
    "conflict",
    "diagnose",
    "fewest_drops",
    "least_capacity",
]
