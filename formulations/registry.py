"""The one table of formulations: the CLI, comparisons, batches and tests iterate over it."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from formulations.errors import InstanceError
from formulations.instance import Instance
from formulations.outcome import Outcome
from formulations.settings import Clock, Settings

Solver = Callable[[Instance, Settings, Clock], Outcome]


@dataclass(frozen=True)
class Formulation:
    """One way to solve an Instance.

    Attributes
    ----------
    name : str
    module : str
        Module holding ``solve(instance, settings, clock) -> Outcome``, imported on first use.
    exact : bool
        Whether it can prove optimality and infeasibility.
    summary : str
        One line for ``milp-planner list formulations``.
    """

    name: str
    module: str
    exact: bool
    summary: str

    def load(self) -> Solver:
        """Import the solve function."""
        solver: Solver = import_module(self.module).solve
        return solver


_ALL = (
    Formulation("auto", "formulations.auto", True, "picks by size: exact first, else scale"),
    Formulation("cpsat", "formulations.cpsat", True, "the exact model in CP-SAT"),
    Formulation("mip", "formulations.mip", True, "the exact model through PuLP (HiGHS or CBC)"),
    Formulation("scale", "formulations.scale", False, "bounds, packing, LNS for large instances"),
    Formulation("dp", "formulations.dp", False, "the published 2-D DP over memory bins"),
    Formulation("greedy", "formulations.greedy", False, "TorchRec's greedy proposers"),
    Formulation("uniform", "formulations.uniform", False, "TorchRec's uniform proposer"),
)

FORMULATIONS: dict[str, Formulation] = {f.name: f for f in _ALL}


def get(name: str) -> Formulation:
    """Look a formulation up by name.

    Raises
    ------
    InstanceError
        Naming the nearest valid name.
    """
    if name in FORMULATIONS:
        return FORMULATIONS[name]
    near = difflib.get_close_matches(name, FORMULATIONS, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise InstanceError(
        f"unknown formulation {name!r}{hint} (there are: {', '.join(FORMULATIONS)})"
    )
