"""Recommend a rule for a table, with the reason in a sentence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cuda_routing.balance import Balance, balances
from cuda_routing.distributions import KeyLoad
from cuda_routing.errors import RoutingError
from cuda_routing.rules import Rule

ALLOWED = (Rule.ROUNDROBIN, Rule.HASH_ROUNDROBIN, Rule.CONTINUOUS, Rule.HASH_INDEPENDENT)
"""Rules in order of preference if they are equally even: the runtime's default first, ours last."""
WORTH_CHANGING = 0.05
EVEN_ENOUGH = 1.2
HOT_KEY = 1.1
BUCKET_CAPACITY = 128


@dataclass(frozen=True)
class Recommendation:
    """The recommended rule for a table, and further advice.

    Attributes
    ----------
    rule : Rule
    reason : str
        Why this rule, with its figures.
    advice : str or None
        What to do about load that no rule can balance.
    balances : dict of Rule to Balance
        Balance under every rule considered.
    """

    rule: Rule
    reason: str
    advice: str | None
    balances: dict[Rule, Balance]


def recommend(
    load: KeyLoad,
    ranks: int,
    *,
    allowed: Iterable[Rule | int | str] = ALLOWED[:3],
    bucket_capacity: int = BUCKET_CAPACITY,
) -> Recommendation:
    """Pick the rule whose busiest rank has the lowest load; within 5%, keep the simpler rule.

    Parameters
    ----------
    load : KeyLoad
    ranks : int
    allowed : iterable of rules
        Default: the three of dynamicemb. Add ``hash_independent`` where the runtime knows it.
    bucket_capacity : int
        Bucket capacity of the local hash table: with a power-of-two number of ranks above it,
        hash_roundrobin leaves part of every local table unreachable, and another rule that is as
        even is preferred.
    """
    wanted = {Rule.parse(rule) for rule in allowed}
    rules = [r for r in ALLOWED if r in wanted and (r is not Rule.CONTINUOUS or load.rows)]
    return choose(balances(load, ranks, rules), bucket_capacity=bucket_capacity)


def choose(found: dict[Rule, Balance], *, bucket_capacity: int = BUCKET_CAPACITY) -> Recommendation:
    """Pick among rules whose balance is known; see :func:`recommend`.

    Raises
    ------
    RoutingError
        There is no rule to choose from.
    """
    order = [rule for rule in ALLOWED if rule in found]
    if not order:
        raise RoutingError("no rule to choose from: continuous needs the number of rows")
    ranks = found[order[0]].ranks
    if correlated(ranks, bucket_capacity) and len(order) > 1:
        order.sort(key=lambda rule: rule is Rule.HASH_ROUNDROBIN)
    least = min(found[rule].max_over_mean for rule in order)
    rule = next(r for r in order if found[r].max_over_mean <= least * (1 + WORTH_CHANGING))
    return Recommendation(rule, _reason(rule, found), _advice(found[rule]), found)


def correlated(ranks: int, bucket_capacity: int = BUCKET_CAPACITY) -> bool:
    """Whether hash_roundrobin leaves buckets of the local table unreachable at this many ranks."""
    return ranks > bucket_capacity and ranks & (ranks - 1) == 0


def _reason(rule: Rule, found: dict[Rule, Balance]) -> str:
    chosen = found[rule].max_over_mean
    worst = max(found, key=lambda other: found[other].max_over_mean)
    if worst is rule or found[worst].max_over_mean <= chosen * (1 + WORTH_CHANGING):
        return f"every rule loads the busiest rank about {chosen:.2f} times the mean"
    return (
        f"busiest rank {chosen:.2f} times the mean, against "
        f"{found[worst].max_over_mean:.2f} under {worst.dist_type}"
    )


def _advice(chosen: Balance) -> str | None:
    if chosen.max_over_mean <= EVEN_ENOUGH:
        return None
    hot = chosen.hottest_key_share
    if hot * chosen.ranks > HOT_KEY:
        return (
            f"one key alone draws {hot:.0%} of the lookups, which no rule can split: "
            "de-duplicate before the exchange, or shard this table column_wise"
        )
    return "several hot keys share a rank: de-duplicate before the exchange"
