"""The default: the exact model where it can prove, beside bounds and search.

Where every shard's place is fixed, ``cpsat`` proves thousands of tables in seconds and runs alone.
Everything else goes to the conductor (:mod:`formulations.search.conductor`), where, on small
instances, the exact model runs from the first second beside compiled search.
"""

from __future__ import annotations

from formulations.clock import Clock
from formulations.evidence.certify import kept_to_prove
from formulations.instance import Instance
from formulations.methods import exact, scale
from formulations.presolve import placement_variables, presolve
from formulations.result.outcome import Outcome
from formulations.search.conductor import conduct
from formulations.settings import Settings

#: The options of both formulations, each of which reads its own.
OPTIONS = {**exact.OPTIONS, **scale.OPTIONS}


def chosen(instance: Instance) -> str:
    """The formulation that does the work: ``cpsat`` where every shard's place is fixed."""
    return "cpsat" if placement_variables(instance, presolve(instance)) == 0 else "scale"


def solve(instance: Instance, settings: Settings, clock: Clock) -> Outcome:
    """Solve with ``cpsat`` or with everything together; see ``formulations.solve``."""
    if chosen(instance) == "cpsat":
        with clock.holding_back(kept_to_prove(instance, settings)):
            return exact.solve(instance, settings, clock)
    return conduct(instance, settings, clock, "auto")
