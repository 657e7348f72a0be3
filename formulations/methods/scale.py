"""Search and bounds together, where a single model is too large: the conductor alone."""

from __future__ import annotations

from formulations.clock import Clock
from formulations.instance import Instance
from formulations.result.outcome import Outcome
from formulations.search.conductor import conduct
from formulations.search.parameters import KINDS
from formulations.settings import Settings

#: The numbers that steer the search.
OPTIONS = KINDS


def solve(instance: Instance, settings: Settings, clock: Clock) -> Outcome:
    """Search and prove; see :func:`formulations.solve.solve`."""
    return conduct(instance, settings, clock, "scale")
