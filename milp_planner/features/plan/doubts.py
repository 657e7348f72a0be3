"""Values that a model or a cluster may have, but that are probably mistakes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from formulations import Instance
from formulations.instance.facts import option_facts
from milp_planner.drawing.units import show_bytes
from milp_planner.errors import Problem
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.files import read_document
from milp_planner.inputs.problems import Loc, show_path
from milp_planner.plans.compile import (
    ClusterSource,
    ModelSource,
    compile_instance,
    to_cluster,
    to_model,
)
from milp_planner.plans.divisions import options_of
from milp_planner.plans.forced import forced_overflow, without_ratio
from milp_planner.pricing.profile import load_profile

LARGEST_HBM = 2**40
"""Bytes of HBM that no accelerator exceeds (the largest on sale have 288 GB)."""
Doubt = tuple[str, Loc]
"""A sentence, and the field it is about."""


def doubts(
    model: ModelSource, cluster: ClusterSource, *, profile: str | None = None
) -> tuple[Problem, ...]:
    """Values that :func:`milp_planner.plan` accepts, though it would find no plan or a useless one.

    Parameters
    ----------
    model, cluster, profile
        As for :func:`milp_planner.check`, which must have found no problem in them.

    Returns
    -------
    tuple of Problem
        First tables that fit nowhere, alone or all together, or whose shared cache has no ratio
        that all may have; these are certain. Then values that look as if they were in another
        unit, or a share instead of a percentage.
    """
    tables, place = to_model(model), to_cluster(cluster)
    assumed = None if profile else place.assumed_profile
    options = options_of(tables, place, load_profile(profile or place.profile))
    place = options.cluster
    instance, forced = compile_instance(options), forced_overflow(options)
    found = [placed(cluster, *each) for each in _of_cluster(place)]
    if assumed is not None:
        found.append(placed(cluster, assumed, ()))
    large: Iterable[Doubt] = _too_large(tables, place, instance)
    if forced is not None:  # more precise: it says where, when, and how much is not rows
        large = [(f"no plan exists: {forced}", ("tables",))]
    if (unlike := without_ratio(options)) is not None:
        large = [*large, (f"no plan exists: {unlike[0]}", ("tables", unlike[1]))]
    return (*(placed(model, *each) for each in large), *found)


def placed(source: object, sentence: str, path: Loc) -> Problem:
    """A Problem with file and line if the source is a YAML file that has the field."""
    field = show_path(path)
    if not isinstance(source, str | Path) or not Path(source).is_file():
        return Problem(sentence, field)
    file, line = read_document(Path(source)).place(path)
    return Problem(sentence, field, file, line)


def _too_large(model: Model, cluster: Cluster, instance: Instance) -> Iterator[Doubt]:
    """A table whose every option exceeds some memory of the whole cluster, or all tables together.

    HBM that a table saves it needs as DDR, so the sum of the tables' least HBM + DDR counts.
    """
    use = option_facts(instance).use
    room = np.array([int(resource.capacity.sum()) for resource in instance.resources])
    there = (
        f"{cluster.name} has {show_bytes(int(room[0]))} of HBM and {show_bytes(int(room[-1]))} of "
        "DDR after reservations"
    )
    least = np.zeros(len(room) - 1, dtype=np.int64)  # the last resource is DDR
    for index, table in enumerate(model.tables):
        mine = use[instance.table_options[index] : instance.table_options[index + 1]]
        least += (mine[:, :-1] + mine[:, -1:]).min(axis=0)
        if not (mine > room).any(axis=1).all():
            continue
        sentence = (
            f"table {table.name} fits nowhere: it has {show_bytes(table.weight_bytes)} of weights, "
            f"and {there}"
        )
        yield sentence, ("tables", index, "rows")
        return
    over = least > room[:-1] + room[-1]
    if over.any():
        needed = show_bytes(int(least[over].max()))
        sentence = f"the tables fit nowhere: together they need {needed} at least, and {there}"
        yield sentence, ("tables",)


def _of_cluster(cluster: Cluster) -> Iterator[Doubt]:
    held = cluster.reservations
    for name in ("hbm_percent", "ddr_percent", "min_headroom", "fragmentation"):
        percent = getattr(held, name)
        if percent is not None and 0 < percent < 1:
            meant = f"did you mean {float(100 * percent):g}?"
            sentence = f"found {float(percent):g}, which reserves {float(percent):g}%; {meant}"
            yield sentence, ("reservations", name)
    yield from _of_memory(cluster)
    links = cluster.interconnect
    inside, between = (links.intra_machine, links.inter_machine) if links else (0, None)
    if between is not None and between > inside:
        sentence = (
            f"found {show_bytes(inside)} a second within a machine, less than the "
            f"{show_bytes(between)} between machines; are the two swapped?"
        )
        yield sentence, ("interconnect", "intra_machine")


def _of_memory(cluster: Cluster) -> Iterator[Doubt]:
    """Memory sizes that no machine has."""
    hbm = max(rank.hbm_bytes for rank in cluster.ranks)
    if hbm > LARGEST_HBM:
        yield f"found {show_bytes(hbm)} a rank, more than any accelerator has", ("hbm",)
    pairs = ((m.ddr_bytes, max(rank.hbm_bytes for rank in m.ranks)) for m in cluster.machines)
    for ddr, most in pairs:
        if 0 < ddr < most:
            sentence = (
                f"found {show_bytes(ddr)} of host memory, less than the {show_bytes(most)} of HBM "
                "of one rank; is it the memory of the machine?"
            )
            yield sentence, ("ddr",)
            return
