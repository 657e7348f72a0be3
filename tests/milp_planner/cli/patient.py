"""A formulation for tests that has a plan at once and then searches until it is told to stop."""

import os
import signal

from formulations import Instance, Outcome, Settings
from formulations.baselines.greedy import solve as greedy
from formulations.clock import Clock
from formulations.result.outcome import StoppedBy


def solve(instance: Instance, settings: Settings, clock: Clock) -> Outcome:
    """Return greedy's plan, after pressing Ctrl-C itself and waiting until the stop arrives."""
    found = greedy(instance, settings, clock)
    os.kill(os.getpid(), signal.SIGINT)
    if not settings.stop.wait(30):
        raise TimeoutError("nobody said stop")
    return found.with_(stopped_by=StoppedBy.INTERRUPTED)
