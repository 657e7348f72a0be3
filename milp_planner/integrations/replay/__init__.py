"""What a trainer makes of our plan: a plan is worth what runs.

A trainer that has a planner of its own reads types and kernels and decides the ranks itself. Each
is a module with a :class:`Trainer`: what it reads, which planner it calls with which constants,
hence what will run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.constraints import PinSpec
from milp_planner.inputs.problems import choice
from milp_planner.inputs.table import Table
from milp_planner.pricing.options import Choice

Pins = Mapping[str, PinSpec]

TRAINERS = {
    "torchrec": "whole",
    "torchrec-callback": "whole",
    "torchrec-reshard": "whole",
    "dlrmv4": "dlrmv4",
    "tzrec": "tzrec",
    "dynamicemb": "dynamicemb",
}
"""The module of each trainer, by the name of the format that it reads."""


@dataclass(frozen=True)
class Ran:
    """One way in which a trainer runs what it reads."""

    pins: dict[str, PinSpec]
    """Type, mode, width and ranks of every table."""
    settings: dict[str, str] = field(default_factory=dict)
    """Further settings of the trainer that lead to it; empty: its defaults."""
    left: tuple[str, ...] = ()
    """Sentences about what the trainer decides later, which the pins take from the plan."""
    kept: str = ""
    """A sentence: within which limits of what is not known exactly it stays so; empty: any."""


@dataclass(frozen=True)
class Trainer:
    """What a trainer makes of a plan; by default, one that takes it as it is."""

    runs: Callable[[Pins, Pins, Model, Cluster], Iterator[Ran]]
    """The ways to run what a file asks for, that of the default settings first: from what the file
    fixes, what the plan has, model and cluster. FallsShort, in the trainer's words, if it stops."""
    decides: bool = False
    """Whether a planner of its own decides ranks."""
    why: str = ""
    """Why what it runs may cost more than the best plan, and what runs any; empty if it runs any.
    """
    steady: Callable[[Ran, Pins, Model, Cluster], Ran] = lambda ran, *_: ran
    """The same way, from what the file fixes, model and cluster, with the settings that keep it
    best while what is not known exactly varies."""
    can_run: Callable[[Table, Choice], bool] = lambda *_: True
    """Whether the trainer can be made to hold a table by an option, on some ranks."""
    priced_otherwise: Callable[[Model], list[str]] = lambda _: []
    """Sentences about defaults of the trainer without which the plan was priced."""
    grid: Callable[[Table], dict[str, Any]] = lambda _: {}
    """The values of the trainer's own that a table's constraints must allow, by field."""


def get(name: str) -> Trainer:
    """The trainer that reads a format; BadInput names the nearest one."""
    if name not in TRAINERS:
        trainers = [each for each in TRAINERS if not each.startswith("torchrec-")]  # ways to export
        raise BadInput(f"unknown trainer {name!r}; {choice(name, trainers)}")
    found: Trainer = import_module(f"{__name__}.{TRAINERS[name]}").TRAINER
    return found
