"""The ways to divide a cluster into sharding groups, and what is known of each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from formulations import Instance, Outcome, Status
from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.sharding_group import group_of, unfit
from milp_planner.inputs.two_d import TwoD
from milp_planner.pricing import Options, price
from milp_planner.pricing.exchange import links_of
from milp_planner.pricing.profile import Profile


@dataclass(frozen=True, eq=False)
class Division:
    """One division: its group, and the best plan and bound known of it."""

    group: Cluster
    instance: Instance | None
    outcome: Outcome | None
    """Without a placement where a bound alone ruled it out; None, as the instance, where nothing
    could be priced."""
    refused: str = ""
    """Why not, in a sentence."""


@dataclass(frozen=True, eq=False)
class Divisions:
    """All divisions that were asked for but the one that a plan is of."""

    asked: TwoD
    others: tuple[Division, ...]


def best_cost(outcome: Outcome) -> int | None:
    """What the best plan known costs, before anything was given up for goals."""
    return outcome.objective if outcome.before_goals is None else outcome.before_goals


def least_elsewhere(divisions: Divisions) -> float | None:
    """Below what no other division has a plan, certified: infinite where none has any; None where
    nothing is certified of one."""
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

    Divisions that differ in words only are one: a single group, or layouts whose groups and links
    are equal. Of sizes left open, those whose groups are alike. BadInput where a named size does
    not divide the ranks.
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
    """Priced options; where the division is open, of the first one that can be priced.

    BadInput where there is none.
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
