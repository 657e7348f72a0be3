"""An infeasible Outcome is an answer: why nothing fits, and the least that would."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from formulations import Instance, Outcome, Settings, Status
from formulations.diagnose import diagnose
from formulations.instance import MAX_VALUE
from milp_planner.inputs import Cluster, Model

#: Seconds spent on the diagnosis at most, whatever the solve was given.
MOST_SECONDS = 60.0


def with_diagnosis(instance: Instance, outcome: Outcome, settings: Settings) -> Outcome:
    """An infeasible outcome with ``detail["diagnosis"]``; any other outcome unchanged.

    Its questions (least capacity of every resource, fewest tables to drop, a smallest conflict)
    are solved within the solve's own time limit again, a minute at most. ``proof`` says what the
    infeasibility rests on: a ``certificate`` that ``verify`` re-derives, or the ``solver``'s word.
    """
    if outcome.status != Status.INFEASIBLE or settings.stop.is_set():
        return outcome
    limit = min(settings.time_limit or MOST_SECONDS, MOST_SECONDS)
    own = replace(settings, time_limit=limit, options={}, work_limit=None, hint=None)
    found = diagnose(instance, own, groups=_groups(instance)).to_dict()
    source = outcome.bound_source
    found["proof"] = {
        "kind": "solver" if outcome.certificate is None else "certificate",
        "method": None if source is None else source.method,
        "exact": None if source is None else source.exact,
    }
    return outcome.with_(detail={**outcome.detail, "diagnosis": found})


def with_advice(outcome: Outcome, model: Model, cluster: Cluster) -> Outcome:
    """The same outcome with ``diagnosis["advice"]``: what to write into the cluster's file.

    A capacity is what embeddings may use; the file has whole memories, of which reservations are
    taken off. ``advice`` maps ``hbm`` (of every rank) and ``ddr`` (of every machine) to the least
    bytes whose usable part is the least capacity.
    """
    diagnosis = outcome.detail.get("diagnosis")
    if not isinstance(diagnosis, Mapping):
        return outcome
    advice: dict[str, Any] = {}
    for entry in diagnosis["capacities"]:
        if entry["least"] is not None and entry["resource"] in ("hbm", "ddr"):
            advice[entry["resource"]] = memory_for(
                entry["resource"], entry["least"], model, cluster
            )
    return outcome.with_(detail={**outcome.detail, "diagnosis": {**diagnosis, "advice": advice}})


def memory_for(tier: str, usable: int, model: Model, cluster: Cluster) -> int | None:
    """Least memory, in bytes, of which embeddings may use that much; None: not even 2^53 - 1 is.

    Turns :meth:`Cluster.usable_hbm` and :meth:`Cluster.usable_ddr` round. Where ranks reserve
    different amounts of their own, the largest counts.

    Parameters
    ----------
    tier : str
        ``hbm`` (of a rank) or ``ddr`` (of a machine).
    usable : int
        Bytes.
    """
    held = cluster.reservations
    percent = held.hbm_percent if tier == "hbm" else held.ddr_percent
    free = 1 - percent / 100
    if free == 0:
        return None
    fixed = Fraction(held.ddr_bytes)
    if tier == "hbm":
        fixed = cluster.fixed_hbm(model) + max(rank.reserved_bytes for rank in cluster.ranks)
    memory = math.ceil((usable + fixed) / free)
    return memory if memory < MAX_VALUE else None


def _groups(instance: Instance) -> dict[str, list[str]]:
    """Resources ``hbm:NAME`` are one memory seen by several collectives: they grow together."""
    groups: dict[str, list[str]] = {}
    for resource in instance.resources:
        groups.setdefault(resource.name.partition(":")[0], []).append(resource.name)
    return groups
