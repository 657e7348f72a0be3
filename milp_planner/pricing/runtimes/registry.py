"""The runtimes of :data:`milp_planner.kinds.KINDS`, by kind of table and by option."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from milp_planner.kinds import KINDS
from milp_planner.pricing.units import Places

if TYPE_CHECKING:
    from milp_planner.pricing.job import OptionColumns
    from milp_planner.pricing.runtimes.room import Runtime


def runtimes() -> tuple[Runtime, ...]:
    """All runtimes; an option's ``runtime`` column is an index of them."""
    return tuple(each for modules in KINDS.values() for each in _loaded(modules))


@cache
def _loaded(modules: tuple[str, ...]) -> tuple[Runtime, ...]:
    return tuple(import_module(module).RUNTIME for module in modules)


def home(kind: str, virtual: bool = False) -> Runtime:
    """The runtime that decides how a table can be cut."""
    return takers(kind, virtual)[0]


def takers(kind: str, virtual: bool = False) -> tuple[Runtime, ...]:
    """The runtimes that offer options of a table."""
    return tuple(each for each in _loaded(KINDS[kind]) if each.takes(virtual))


def named(name: str) -> Runtime:
    """The runtime of an option."""
    return next(each for each in runtimes() if each.name == name)


def index_of(name: str) -> int:
    """Its index among :func:`runtimes`."""
    return [each.name for each in runtimes()].index(name)


def by_runtime(options: OptionColumns) -> Iterator[tuple[Runtime, Places]]:
    """Each runtime that occurs, and the places of its options, all if no other occurs."""
    every, there = runtimes(), np.unique(options.runtime).tolist()
    for index in there:
        alone = len(there) == 1
        yield every[index], slice(None) if alone else np.flatnonzero(options.runtime == index)


def kernel_of(
    kind: str, sharding: str, mode: str, cpu_only: bool = False, virtual: bool = False
) -> str:
    """Name of the kernel in a trainer's configuration."""
    runtime = next(each for each in takers(kind, virtual) if each.runs(mode, virtual))
    return runtime.kernel(sharding, mode, cpu_only, virtual)
