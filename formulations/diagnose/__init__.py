"""Why nothing fits, and the least that would: every answer is a solved Instance of its own."""

from formulations.diagnose.capacity import Least, least_capacity
from formulations.diagnose.conflict import Conflict, conflict
from formulations.diagnose.diagnosis import Diagnosis, Drop, diagnose, fewest_drops

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
