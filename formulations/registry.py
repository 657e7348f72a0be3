"""The one table of formulations: the CLI, comparisons, batches and tests iterate over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module

from formulations.clock import Clock
from formulations.errors import InstanceError, meant
from formulations.instance import Instance
from formulations.result.outcome import Outcome
from formulations.settings import OwnSettings, Settings

Solver = Callable[[Instance, Settings, Clock], Outcome]


@dataclass(frozen=True)
class Formulation:
    """One way to solve an Instance.

    Attributes
    ----------
    name : str
    module : str
        Module holding ``solve(instance, settings, clock)`` and ``OPTIONS``, the kinds of
        ``settings.options`` by name; imported on first use.
    proves : str
        What it can prove by itself: ``optimum`` (or that no plan exists), ``optimum or gap``
        (a bound always, the optimum where plan and bound meet), ``gap`` (a bound in floating
        point; either only for small instances) or ``nothing``.
    summary : str
        One line for ``milp-planner list formulations``.
    """

    name: str
    module: str
    proves: str
    summary: str

    def load(self) -> Solver:
        """Import the function."""
        solver: Solver = import_module(self.module).solve
        return solver

    def check(self, options: Mapping[str, object]) -> None:
        """Refuse options that its module's ``OPTIONS`` do not contain, and wrong values.

        Raises
        ------
        InstanceError
            Naming the option, what was found and what is allowed.
        """
        if options:
            OwnSettings(self.name, options, import_module(self.module).OPTIONS)


_ALL = (
    Formulation(
        "auto", "formulations.methods.auto", "optimum or gap",
        "the exact model or the search, by instance",
    ),
    Formulation("cpsat", "formulations.methods.exact", "optimum", "the exact model in CP-SAT"),
    Formulation(
        "mip", "formulations.methods.mip", "gap", "the exact model through PuLP (HiGHS or CBC)"
    ),
    Formulation(
        "scale", "formulations.methods.scale", "optimum or gap",
        "bounds, annealing and LNS, of any size",
    ),
    Formulation(
        "dp", "formulations.baselines.dp", "nothing", "the published 2-D DP over memory bins"
    ),
    Formulation(
        "greedy", "formulations.baselines.greedy", "nothing", "TorchRec's greedy proposers"
    ),
)  # fmt: skip

FORMULATIONS: dict[str, Formulation] = {f.name: f for f in _ALL}

#: Formulations of before, and what to ask instead.
GONE = {
    "uniform": "ask for greedy with --set proposers=uniform",
    "distemb": "benchmarks/distemb has distributed-embeddings' strategies",
}


def get(name: str) -> Formulation:
    """Look a formulation up by name.

    Raises
    ------
    InstanceError
        Naming the nearest valid name.
    """
    if name in FORMULATIONS:
        return FORMULATIONS[name]
    if name in GONE:
        raise InstanceError(f"formulation {name!r} is gone: {GONE[name]}")
    hint = meant(name, FORMULATIONS)
    raise InstanceError(
        f"unknown formulation {name!r}{hint} (there are: {', '.join(FORMULATIONS)})"
    )
