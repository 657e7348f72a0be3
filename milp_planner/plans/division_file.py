"""The part of plan.json about other divisions of the cluster into sharding groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from formulations.instance.file import instance_from_dict, instance_to_dict
from formulations.instance.strict_json import Reader
from formulations.result.outcome_file import outcome_from_dict, outcome_to_dict
from milp_planner.errors import BadInput
from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.sharding_group import group_of
from milp_planner.inputs.two_d import TwoD
from milp_planner.plans.divisions import Division, Divisions

Pack = Callable[[dict[str, Any]], dict[str, Any]]


def divisions_to_dict(divisions: Divisions, packed: Pack) -> dict[str, Any]:
    """The requested division, and all others.

    Each other division has its two_d, instance and outcome, or the reason why it could not be
    priced.
    """
    return {
        "asked": divisions.asked.to_dict(),
        "others": [_to_dict(other, packed) for other in divisions.others],
    }


def _to_dict(other: Division, packed: Pack) -> dict[str, Any]:
    assert other.group.two_d is not None
    named = {"two_d": other.group.two_d.model_copy(update={"whole": None}).to_dict()}
    if other.instance is None or other.outcome is None:
        return {**named, "refused": other.refused}
    return {
        **named,
        "instance": packed(instance_to_dict(other.instance)),
        "outcome": packed(outcome_to_dict(other.instance, other.outcome)),
    }


def divisions_from_dict(
    document: Any, cluster: Cluster, unpacked: Callable[[Any, str], Any], what: str
) -> Divisions:
    """Read it back; ``cluster`` is the plan's own group.

    BadInput or InstanceError if it is malformed, or a division does not belong to the same whole
    cluster.
    """
    read = Reader(document, what, ("asked", "others"))
    whole = None if cluster.two_d is None else cluster.two_d.whole
    if whole is None:
        raise BadInput(f"{what}: its cluster is not a sharding group, so there are no others")
    others = []
    for number, each in enumerate(read.get("others", list)):
        where = f"{what}: others[{number}]"
        part = Reader(each, where, ("two_d", "instance", "outcome", "refused"))
        two_d = TwoD.from_dict(part.get("two_d", dict), where)
        group = group_of(whole.model_copy(update={"two_d": two_d}))
        if "refused" in each:
            others.append(Division(group, None, None, part.get("refused", str)))
            continue
        instance = instance_from_dict(unpacked(part.get("instance", dict), where), where)
        outcome = unpacked(part.get("outcome", dict), where)
        others.append(Division(group, instance, outcome_from_dict(instance, outcome, where)))
    return Divisions(TwoD.from_dict(read.get("asked", dict), what), tuple(others))
