"""The ways to divide a cluster into sharding groups, with the plan and bound of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from typing import Any

from formulations import Instance, Outcome, Status
from formulations.instance.file import instance_from_dict, instance_to_dict
from formulations.instance.strict_json import Reader
from formulations.result.outcome_file import outcome_from_dict, outcome_to_dict
from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.sharding_group import group_of, unfit
from milp_planner.inputs.two_d import TwoD
from milp_planner.pricing import Options, price
from milp_planner.pricing.exchange import links_of
from milp_planner.pricing.profile import Profile


@dataclass(frozen=True, eq=False)
class Division:
    """One division: its group, and its best known plan and bound."""

    group: Cluster
    instance: Instance | None
    outcome: Outcome | None
    """Without a placement if a bound alone ruled the division out; None, like the instance, if it
    could not be priced."""
    refused: str = ""
    """Why it could not be priced, in a sentence."""


@dataclass(frozen=True, eq=False)
class Divisions:
    """All requested divisions, except the plan's own."""

    asked: TwoD
    others: tuple[Division, ...]


def best_cost(outcome: Outcome) -> int | None:
    """The cost of the best known plan, before any of it was traded for goals."""
    return outcome.objective if outcome.before_goals is None else outcome.before_goals


def least_elsewhere(divisions: Divisions) -> float | None:
    """Certified lower bound on the cost of plans of all other divisions.

    Infinite if none has a plan; None if one has no certified bound.
    """
    bounds = [_certified(other.outcome) for other in divisions.others if other.outcome is not None]
    known = [bound for bound in bounds if bound is not None]
    return min(known, default=inf) if len(known) == len(bounds) else None


def _certified(outcome: Outcome) -> float | None:
    if outcome.status == Status.INFEASIBLE and outcome.certificate is not None:
        return inf
    return outcome.certified_bound


def is_open(cluster: Cluster) -> bool:
    """Whether a cluster leaves its division into sharding groups to be chosen."""
    two_d = cluster.two_d
    return two_d is not None and two_d.whole is None and not two_d.named


def groups_of(cluster: Cluster) -> Iterator[Cluster]:
    """A group of every division that a cluster allows, the largest groups first.

    Divisions that are the same count as one: a single group, or layouts whose groups and links are
    equal. If the size is open, only sizes whose groups are alike are offered. BadInput if a named
    size does not divide the ranks.
    """
    asked = cluster.two_d
    assert asked is not None
    whole = cluster.model_copy(update={"two_d": None})
    known = []
    for choice in asked.choices(whole.num_ranks):
        size = choice.sharding_group_size
        assert isinstance(size, int)
        some = asked.sharding_group_size == "auto" or asked.layout == "auto"
        if some and whole.num_ranks % size == 0 and unfit(whole, size, choice.layout):
            continue
        group = group_of(cluster.model_copy(update={"two_d": choice}))
        how = choice.strategy if group.replicas > 1 and not whole.cpu_only else ""
        key = group.machines, group.interconnect, links_of(group), how
        if key not in known:
            known.append(key)
            yield group


def options_of(model: Model, cluster: Cluster, profile: Profile) -> Options:
    """Priced options; if the division is open, those of the first division that can be priced.

    BadInput if there is none.
    """
    refused: BadInput | None = None
    for group in groups_of(cluster) if is_open(cluster) else [cluster]:
        try:
            return price(model, group, profile)
        except BadInput as error:
            refused = refused or error
    assert refused is not None
    raise refused


def words_of(group: Cluster) -> str:
    """A division in words: ``4 groups of 16 ranks, strided, fully sharded``."""
    two_d, count = group.two_d, group.replicas
    ranks = f"{group.num_ranks} rank{'s' * (group.num_ranks != 1)}"
    if two_d is None or count == 1:
        return f"one group of {ranks}"
    parts = [f"{count} groups of {ranks}", two_d.layout]
    parts += ["fully sharded"] if two_d.strategy == "fully_sharded" else []
    return ", ".join(parts)


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
