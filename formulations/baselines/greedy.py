"""The greedy heuristics that TorchRec ships, on an Instance.

Its default planner proposes by grid search, greedily by the most expensive shard, greedily by the
sum over shards, and uniformly; a greedy partitioner places each proposal, and the best rating
wins (TorchRec 1.8.0, ``EmbeddingShardingPlanner``). The formulation ``greedy`` is the first three
unless told otherwise. Other formulations start from its plan.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from formulations.baselines.partition.partitioner import BalancedPartitioner, Partitioner, SortBy
from formulations.baselines.partition.proposals import PROPOSERS, Found, outcome_of, search
from formulations.clock import Clock
from formulations.errors import UnsupportedInstance
from formulations.instance import Instance
from formulations.result.outcome import Outcome, StoppedBy
from formulations.result.placement import Placement
from formulations.settings import OwnSettings, Settings, list_of, one_of, whole


class PartitionerName(StrEnum):
    """TorchRec's partitioners."""

    GREEDY = "greedy"
    MEMORY_BALANCED = "memory_balanced"


OPTIONS = {
    "proposers": list_of(PROPOSERS), "sort_by": one_of(SortBy),
    "partitioner": one_of(PartitionerName),
    "threshold": whole(),
}  # fmt: skip

#: As a starting heuristic, greedy may take this share of the time left, up to this many seconds.
SHARE, MOST = 0.1, 5.0
#: Proposals placed that count as one unit of work.
PROPOSALS = 100


def solve(instance: Instance, settings: Settings, clock: Clock) -> Outcome:
    """Place TorchRec's greedy proposals and keep the best.

    Options (``settings.options``): ``proposers``, a list from ``grid``, ``depth``, ``total``,
    ``uniform`` (default: the first three); ``sort_by``, the order in which tables are placed,
    ``storage`` (default, as TorchRec's) or ``perf``; ``partitioner``, ``greedy`` (default) or
    ``memory_balanced``; ``threshold``, the number of worse proposals in a row after which a greedy
    proposer stops (default: it never stops for that). ``work_limit`` counts the proposals that are
    placed.

    Fusion groups are ignored while planning, as TorchRec ignores them; see
    :func:`formulations.baselines.partition.proposals.outcome_of` for what is returned then.

    Raises
    ------
    InstanceError
        For an option that is not one of these.
    """
    options = OwnSettings("greedy", settings.options, OPTIONS)
    proposers = options.names("proposers", ("grid", "depth", "total"))
    sort_by = options.choice("sort_by", SortBy.STORAGE)
    balanced = (
        options.choice("partitioner", PartitionerName.GREEDY) == PartitionerName.MEMORY_BALANCED
    )
    partitioner = BalancedPartitioner(instance) if balanced else Partitioner(instance, sort_by)
    threshold = options.integer("threshold", 0) if options.has("threshold") else None
    result = Found()
    for proposer in proposers:
        proposals = PROPOSERS[proposer](instance, partitioner.facts)
        patience = threshold if proposer in ("depth", "total") else None
        search(partitioner, proposals, settings, clock, found=result, threshold=patience)
        if result.stopped_by != StoppedBy.EXHAUSTED:
            break
    return outcome_of(
        instance,
        "greedy",
        result,
        why_nothing="no proposal could be placed; that proves nothing",
        proposers=list(proposers),
        sort_by=sort_by,
    )


def starting_plan(instance: Instance, settings: Settings, clock: Clock) -> Placement | None:
    """The greedy heuristic's plan; None where it finds none or does not cover the instance.

    CP-SAT itself may need tens of seconds for a first plan once many shards choose their rank.
    """
    amount = min(MOST, SHARE * clock.remaining())
    if clock.counts:
        quick = replace(settings, time_limit=None, work_limit=max(1.0, amount * PROPOSALS))
    else:
        quick = replace(settings, time_limit=amount)
    quick = replace(quick, options={}, on_progress=None, hint=None)
    own = Clock(quick)
    try:
        return solve(instance, quick, own).placement
    except UnsupportedInstance:
        return None
    finally:
        clock.spend(own.work / PROPOSALS)
