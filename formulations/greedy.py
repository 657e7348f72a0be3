"""The greedy heuristics that TorchRec ships, on an Instance.

Its default planner proposes by grid search, greedily by the most expensive shard, greedily by the
sum over shards, and uniformly; a greedy partitioner places each proposal, and the best rating
wins (TorchRec 1.8.0, ``EmbeddingShardingPlanner``). This formulation is the first three;
:mod:`formulations.uniform` the last.
"""

from __future__ import annotations

from itertools import chain

from formulations.errors import InstanceError
from formulations.instance import Instance
from formulations.options import Options
from formulations.outcome import Outcome
from formulations.partition.outcome import outcome_of
from formulations.partition.partitioner import Partitioner, SortBy
from formulations.partition.proposers import PROPOSERS
from formulations.partition.search import search
from formulations.settings import Clock, Settings


def solve(instance: Instance, settings: Settings, clock: Clock) -> Outcome:
    """Place TorchRec's greedy proposals and keep the best.

    Options (``settings.options``): ``proposers``, a list out of ``grid``, ``depth``, ``total``,
    ``uniform`` (default: the first three); ``sort_by``, the order in which tables are placed,
    ``storage`` (default, as TorchRec's) or ``perf``. ``work_limit`` counts proposals placed.

    Fusion groups are ignored while planning, as TorchRec ignores them; see
    :func:`formulations.partition.outcome.outcome_of` for what is returned then.

    Raises
    ------
    InstanceError
        For an unknown option or proposer.
    """
    return run("greedy", ("grid", "depth", "total"), instance, settings, clock)


def run(
    name: str, default: tuple[str, ...], instance: Instance, settings: Settings, clock: Clock
) -> Outcome:
    """Run a list of TorchRec's proposers under a formulation's name."""
    options = Options(name, settings.options, {"proposers", "sort_by"})
    proposers = options.names("proposers", default)
    for proposer in proposers:
        if proposer not in PROPOSERS:
            raise InstanceError(
                f"{name}: unknown proposer {proposer!r} (there are: {', '.join(PROPOSERS)})"
            )
    sort_by = options.choice("sort_by", SortBy.STORAGE)
    partitioner = Partitioner(instance, sort_by)
    batches = chain.from_iterable(PROPOSERS[p](instance, partitioner.facts) for p in proposers)
    result = search(partitioner, batches, settings, clock)
    return outcome_of(
        instance,
        name,
        result,
        why_nothing="no proposal could be placed; that proves nothing",
        proposers=list(proposers),
        sort_by=sort_by,
    )
