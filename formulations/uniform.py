"""TorchRec's uniform proposer on an Instance: every table the same kind of option."""

from __future__ import annotations

from formulations.greedy import OPTIONS, run
from formulations.instance import Instance
from formulations.outcome import Outcome
from formulations.settings import Clock, Settings

__all__ = ["OPTIONS", "solve"]


def solve(instance: Instance, settings: Settings, clock: Clock) -> Outcome:
    """Place, for each kind of option all tables share, every table's best one; keep the best.

    Options as in :func:`formulations.greedy.solve`; the kind of an option is defined by
    :func:`formulations.partition.proposers.option_kind`.
    """
    return run("uniform", ("uniform",), instance, settings, clock)
