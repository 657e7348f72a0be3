"""Shipped models and clusters, by bare name."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from formulations.runtime.regular_file import STANDARD_INPUT
from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.files import load_cluster, load_model
from milp_planner.inputs.problems import nearest
from scenarios import literature
from scenarios.generator import from_text

GENERATED = "generated:"
"""Prefix of a generated model, as in ``generated:tables=1000,seed=0,kind=torchrec``."""

Loaded = TypeVar("Loaded", Model, Cluster)


@dataclass(frozen=True)
class Entry:
    """One shipped file.

    Attributes
    ----------
    name : str
        Bare name, which is the file's name without its ending.
    path : Path
        Path of the installed file.
    """

    name: str
    path: Path


def models() -> tuple[Entry, ...]:
    """The shipped models, by name."""
    return _entries("models")


def clusters() -> tuple[Entry, ...]:
    """The shipped clusters, by number of machines, then by name."""
    return tuple(
        sorted(_entries("clusters"), key=lambda entry: (_machines(entry.name), entry.name))
    )


def find_model(name: str) -> Model:
    """A model from a bare name, a path, ``generated:tables=1000,seed=0,kind=torchrec``, or a task
    of the literature (:mod:`scenarios.literature`).

    A name with a folder or an ending is read as a path; so is the name of an existing file, unless
    a shipped model has it. ``-`` is standard input.

    Raises
    ------
    BadInput
        When there is no such model (the message has the nearest name), or the file is wrong.
    """
    if name.startswith(GENERATED):
        return from_text(name.removeprefix(GENERATED))
    if name.startswith(literature.PREFIXES):
        return literature.task(name)
    return _find(name, "model", models(), load_model)


def find_cluster(name: str) -> Cluster:
    """A cluster from a bare name or a path, as for ``find_model``.

    Raises
    ------
    BadInput
        When there is no such cluster (the message has the nearest name), or the file is wrong.
    """
    return _find(name, "cluster", clusters(), load_cluster)


def _find(
    name: str, what: str, entries: tuple[Entry, ...], load: Callable[[str | Path], Loaded]
) -> Loaded:
    for entry in entries:
        if entry.name == name:
            return load(entry.path)
    path = Path(name)
    if is_path(name) or path.suffix.lower() in (".yaml", ".yml", ".json"):
        return load(path)
    names = [entry.name for entry in entries]
    close = nearest(name, names)
    hint = f"; did you mean {close}?" if close else ""
    raise BadInput(
        f"no {what} is called {name!r} and there is no such file; shipped: {', '.join(names)}{hint}"
    )


def is_path(name: str) -> bool:
    """Whether a name that nothing shipped has means a file: standard input, a path with a folder,
    or whatever is there."""
    return name == STANDARD_INPUT or os.sep in name or Path(name).exists()


def _entries(folder: str) -> tuple[Entry, ...]:
    root = Path(str(files("scenarios"))) / folder
    found = sorted(root.glob("*.yaml"), key=lambda path: path.stem)
    return tuple(Entry(path.stem, path) for path in found)


def _machines(name: str) -> int:
    """Number of machines in a cluster's name: 4 in 4x8xh100, 1 in 8xh100."""
    parts = name.split("x")
    return int(parts[0]) if len(parts) > 2 and parts[1].isdigit() else 1
