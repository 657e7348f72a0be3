"""One scenario, as it is sent to the process that solves it, and the key of its result.

A scenario names its inputs; model, prices and Instance are made by the process that solves it.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from formulations import registry
from formulations.errors import InstanceError
from formulations.settings import Settings
from milp_planner.errors import BadInput
from milp_planner.features.plan.cache import versions
from milp_planner.inputs import Cluster, Model
from milp_planner.pricing.profile import load_profile
from milp_planner.request import Aims
from scenarios import catalog
from scenarios.batch.evidence import Shared
from scenarios.batch.suite import Suite, ordered
from scenarios.batch.vary import vary_cluster, vary_model

_Names = tuple[str, str, str, tuple[tuple[str, Any], ...], tuple[str, ...], int]


@dataclass(frozen=True)
class Scenario:
    """One solve of a suite, as a small value that can be sent between processes.

    Attributes
    ----------
    model, cluster : str
        Names or paths, as in the suite.
    folder : str
        Folder that relative paths start from.
    axes : tuple of (str, value)
        Value of each swept axis, as plain JSON.
    only_tables : tuple of str
    hot_ids : int
    asked : Aims
        What is asked of the plan.
    polish, certificate : bool
    keeps_plan : bool
        Whether the record contains the plan; the key does not depend on it.
    shared : Shared or None
        What others found that helps; the record then contains the outcome, for others. None: it
        shares nothing. The key does not depend on it.
    cache : str
        Folder of cached outcomes; empty: none. The key does not depend on it.
    """

    model: str
    cluster: str
    folder: str
    axes: tuple[tuple[str, Any], ...]
    only_tables: tuple[str, ...]
    hot_ids: int
    asked: Aims
    polish: bool
    certificate: bool
    keeps_plan: bool = False
    shared: Shared | None = None
    cache: str = ""

    def inputs(self) -> tuple[Model, Cluster]:
        """Read model and cluster and apply the axes.

        Raises
        ------
        BadInput
            When a file is wrong, or applying the axes gives an invalid input.
        """
        return _inputs(*self._names())

    def _names(self) -> _Names:
        return (
            self.model, self.cluster, self.folder, self.axes, self.only_tables, self.hot_ids
        )  # fmt: skip

    def settings(self) -> Settings:
        """Settings of the solve, with one worker, because batches run many solves at a time."""
        base = Settings(workers=1, polish=self.polish, certificate=self.certificate)
        return self.asked.settings(base)

    def label(self) -> dict[str, Any]:
        """The fields that identify the scenario for people, with which a record starts."""
        return {
            "model": self.model,
            "cluster": self.cluster,
            "axes": dict(self.axes),
            "objective_kind": self.asked.objective,
            "formulation": self.asked.formulation,
            "options": self.asked.options,
            "seed": self.asked.seed,
        }

    def key(self) -> str:
        """SHA-256 (hexadecimal) of inputs, objective, formulation, settings and versions.

        If the inputs cannot be read, the error is hashed instead, because a failure is a result
        too.
        """
        try:
            content: object = _content(*self._names())
        except BadInput as error:
            content = str(error)
        document = {
            "label": self.label(),
            "inputs": content,
            "settings": {**self.settings().describe(), "certificate": self.certificate},
            "versions": versions(),
        }
        canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


def expand(suite: Suite, folder: str | Path = ".") -> list[Scenario]:
    """Every scenario of a suite, in the order of its file, without duplicates.

    Raises
    ------
    BadInput
        When a model or cluster of the suite does not exist or is wrong.
    """
    base = str(Path(folder).resolve())
    for model in dict.fromkeys(model for model, _ in suite.places):
        catalog.find_model(_located(model, base))
    for cluster in dict.fromkeys(cluster for _, cluster in suite.places):
        catalog.find_cluster(_located(cluster, base))
    return list(dict.fromkeys(cross(suite, base)))


def cross(suite: Suite, folder: str) -> Iterator[Scenario]:
    """Every scenario of a suite, without reading its inputs, which may be wrong or missing."""
    given = {axis: values for axis, values in suite.sweep.to_dict().items() if values}
    swept = {axis: given[axis] for axis in sorted(given, key=ordered)}
    points = [tuple(zip(swept, p, strict=True)) for p in itertools.product(*swept.values())]
    for (model, cluster), axes, objective, seed, formulation in itertools.product(
        suite.places, points, suite.objectives, suite.seeds, suite.formulations
    ):
        for options in _options(suite, formulation):
            asked = Aims.of(
                {
                    "objective": objective, "formulation": formulation, "seed": seed,
                    "time_limit": suite.time_limit, "work_limit": suite.work_limit,
                    "gap": suite.gap, "options": options,
                }
            )  # fmt: skip
            yield Scenario(
                model, cluster, folder, axes, suite.only_tables, suite.hot_ids, asked,
                suite.polish, suite.certificate,
            )  # fmt: skip


def _options(suite: Suite, formulation: str) -> Iterator[dict[str, Any]]:
    """Every combination of the settings that the suite gives to one formulation."""
    own = settings_for(formulation, Settings(options=suite.settings)).options
    values: list[Any] = list(own.values())
    for chosen in itertools.product(*values):
        yield dict(zip(own, chosen, strict=True))


def settings_for(name: str, settings: Settings) -> Settings:
    """The settings of one formulation; options such as ``dp.variant`` are limited to its own."""
    own: dict[str, object] = {}
    for key, value in settings.options.items():
        owner, dot, option = key.partition(".")
        if not dot:
            raise InstanceError(f"option {key!r}: when several formulations run, write NAME.{key}")
        if registry.get(owner).name == name:
            own[option] = value
    return replace(settings, options=own)


def _located(name: str, folder: str) -> str:
    """Make a path relative to the suite absolute; a name is returned unchanged."""
    beside = Path(folder) / name
    looks_like_path = Path(name).suffix.lower() in (".yaml", ".yml", ".json")
    if name.startswith(catalog.GENERATED) or not (looks_like_path or len(Path(name).parts) > 1):
        return name
    return str(beside)


@lru_cache(maxsize=8)
def _inputs(
    model: str,
    cluster: str,
    folder: str,
    axes: tuple[tuple[str, Any], ...],
    only: tuple[str, ...],
    hot_ids: int,
) -> tuple[Model, Cluster]:
    read = catalog.find_model(_located(model, folder))
    ranks = catalog.find_cluster(_located(cluster, folder))
    values = dict(axes)
    varied = vary_cluster(ranks, values)
    return vary_model(read, values, only, hot_ids, varied.num_ranks), varied


@lru_cache(maxsize=8)
def _content(*names: Any) -> dict[str, str]:
    model, cluster = _inputs(*names)
    return {
        "model": model.fingerprint(),
        "cluster": cluster.fingerprint(),
        "profile": load_profile(cluster.profile).fingerprint(),
    }
