"""TorchRec's uniform proposer on an Instance: every table the same kind of option."""

from __future__ import annotations

from formulations.baselines.greedy import OPTIONS, run
from formulations.clock import Clock
from formulations.instance import Instance
from formulations.result.outcome import Outcome
from formulations.settings import Settings

__all__ = ["OPTIONS", "solve"]


def solve(instance: Instance, settings: Settings, clock: Clock) -> Outcome:
    """Place, for each kind of option all tables share, every table's best one; keep the best.

    Options as in :func:`formulations.baselines.greedy.solve`; the kind of an option is defined by
    :func:`formulations.baselines.partition.proposals.option_kind`.
    """
    return run("uniform", ("uniform",), instance, settings, clock)
