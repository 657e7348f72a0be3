"""The objective as the phases of an Instance: TorchRec's rating, or its critical path.

``busiest_rank`` is what TorchRec's planner minimises (``NoopPerfModel``): the largest sum of
``Perf.total`` over a rank's shards. ``critical_path`` is reported by its statistics but not
minimised by its planner (``stats._calculate_critical_path``): ranks wait for each other after
forward and after backward compute, and after each collective; every pair of module and sharding
type has one forward and one backward. It does not include prefetch and input distribution.
``critical_path_with_ids`` adds, for every module, the longest exchange of ids on any rank, the
first of two objectives that TorchRec's pull request 3575 describes. Like TorchRec's estimate,
``Perf.input_dist_comms``, it counts all ids of the table for every row-wise shard.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from torchrec.distributed.planner.enumerators import EmbeddingEnumerator
from torchrec.distributed.planner.estimator.estimator import EmbeddingPerfEstimator
from torchrec.distributed.planner.perf_models import NoopPerfModel
from torchrec.distributed.planner.shard_estimators import (
    EmbeddingPerfEstimator as DelegatingPerfEstimator,
)
from torchrec.distributed.planner.stats import _calculate_critical_path
from torchrec.distributed.planner.types import (
    Enumerator,
    Perf,
    Shard,
    SharderDataMap,
    ShardEstimator,
    ShardingOption,
    Storage,
    Topology,
)

from formulations import Objective, Outcome
from formulations.result.outcome import standing
from milp_planner.drawing.units import listed
from milp_planner.pricing.options import PHASES, SYNC

RatingName = Literal["busiest_rank", "critical_path", "critical_path_with_ids"]
Cost = tuple[int, ...]

_FIELDS = ("fwd_compute", "fwd_comms", "bwd_compute", "bwd_comms", "prefetch_compute")

PICOSECONDS = 1_000_000_000
"""Picoseconds in the millisecond that TorchRec's estimators count in."""


@dataclass(frozen=True)
class Phased:
    """Phases of an objective, and the cost of a shard in each."""

    phases: tuple[str, ...]
    objective: Objective
    cost: Callable[[ShardingOption, Perf], Cost]
    """From a shard's option and estimate to picoseconds per phase."""
    beside: Callable[[ShardingOption, Shard], Cost] | None = None
    """Picoseconds of a last phase, which TorchRec does not estimate."""

    def of(self, option: ShardingOption, shard: Shard) -> Cost:
        """Picoseconds of a shard in every phase; ValueError if an estimate is not finite."""
        more = () if self.beside is None else self.beside(option, shard)
        return (*self.cost(option, shard.perf), *more)


def phased(name: RatingName, search_space: Sequence[ShardingOption]) -> Phased:
    """Phases and costs of a rating for the options of a model."""
    if name == "critical_path":
        return _critical_path(search_space)
    if name == "critical_path_with_ids":
        return _with_ids(_critical_path(search_space), search_space)
    return Phased(PHASES, Objective.BUSIEST_RANK, lambda _, perf: picoseconds(perf))


def with_sync(rating: Phased, sync: Callable[[ShardingOption, Shard], int]) -> Phased:
    """The rating with one more phase: picoseconds of averaging a shard with its replicas."""
    return replace(
        rating, phases=(*rating.phases, SYNC), beside=lambda option, shard: (sync(option, shard),)
    )


def torchrec_rating(name: RatingName, plan: list[ShardingOption], topology: Topology) -> float:
    """TorchRec's own figure for options with ranks, in milliseconds."""
    if name != "busiest_rank":
        path = float(_calculate_critical_path(plan).total()) if plan else 0.0
        return path + (_ids(plan) if name == "critical_path_with_ids" else 0.0)
    return float(NoopPerfModel(topology=topology).rate(plan=plan))


def _critical_path(search_space: Sequence[ShardingOption]) -> Phased:
    keys = dict.fromkeys(map(_collective, search_space))
    column = {key: 2 + 2 * index for index, key in enumerate(keys)}
    names = ["fwd_compute", "bwd_compute"]
    for index, (path, _, kind) in enumerate(keys):
        names += [f"{way}_comms/{index}:{path or '(root)'}:{kind}" for way in ("fwd", "bwd")]

    def cost(option: ShardingOption, perf: Perf) -> Cost:
        forward, forward_comms, backward, backward_comms, _ = picoseconds(perf)
        parts = [0] * len(names)
        parts[0], parts[1] = forward, backward
        first = column[_collective(option)]
        parts[first : first + 2] = forward_comms, backward_comms
        return tuple(parts)

    return Phased(tuple(names), Objective.STEP_TIME, cost)


def _with_ids(path: Phased, search_space: Sequence[ShardingOption]) -> Phased:
    """The critical path with one more phase for the ids of every module."""
    modules = {key: i for i, key in enumerate(dict.fromkeys(map(_module, search_space)))}
    names = [f"input_dist/{i}:{name or '(root)'}" for (name, _), i in modules.items()]

    def cost(option: ShardingOption, perf: Perf) -> Cost:
        parts = [0] * len(names)
        parts[modules[_module(option)]] = _whole("input_dist_comms", perf)
        return (*path.cost(option, perf), *parts)

    return replace(path, phases=(*path.phases, *names), cost=cost)


def _ids(plan: list[ShardingOption]) -> float:
    """Milliseconds of the longest exchange of ids of any rank, summed over modules."""
    times: dict[tuple[str, int], dict[int, float]] = {}
    for option in plan:
        ranks = times.setdefault(_module(option), {})
        for shard in option.shards:
            assert shard.rank is not None and shard.perf is not None
            ranks[shard.rank] = ranks.get(shard.rank, 0.0) + shard.perf.input_dist_comms
    return float(sum(max(ranks.values()) for ranks in times.values()))


def _module(option: ShardingOption) -> tuple[str, int]:
    path, module = option.module
    return path, id(module)


def _collective(option: ShardingOption) -> tuple[str, int, str]:
    """What distinguishes collectives in TorchRec: the module, its path, and the sharding type."""
    return *_module(option), option.sharding_type


def picoseconds(perf: Perf) -> tuple[int, ...]:
    """A shard's estimate (milliseconds) as picoseconds, one integer for each of :data:`PHASES`.

    Each phase is rounded to the nearest picosecond (half to even), so a shard's sum is off by at
    most 2.5 ps. ``input_dist_comms`` is left out, as in TorchRec's own ``Perf.total``. ValueError
    if an estimate is not a finite number.
    """
    return tuple(_whole(name, perf) for name in _FIELDS)


def _whole(field: str, perf: Perf) -> int:
    value = float(getattr(perf, field))
    if not math.isfinite(value):
        raise ValueError(f"its estimate {value} ms is not finite; allowed: finite times")
    return round(value * PICOSECONDS)


def milliseconds(picos: int) -> float:
    """Picoseconds as TorchRec's milliseconds."""
    return picos / PICOSECONDS


def whole_bytes(storage: Storage) -> dict[str, int]:
    """A shard's use of ``hbm``, ``ddr`` and ``ssd`` in whole bytes, rounded up."""
    return {
        "hbm": math.ceil(storage.hbm),
        "ddr": math.ceil(storage.ddr),
        "ssd": math.ceil(storage.ssd),
    }


@dataclass(frozen=True)
class Guilty:
    """The rank that the others wait for."""

    rank: int
    """Under ``busiest_rank`` the busiest one; else the one whose peaks make up most of the path.
    The lowest of those that tie."""
    milliseconds: float
    """The time for which it holds up the others: its sum, or the sum of the phases in which it is
    slowest."""
    tables: tuple[tuple[str, float], ...]
    """Tables with their cost in those phases on this rank, ms, highest first."""

    def sentence(self, most: int = 3) -> str:
        """One line: rank, time, and the tables that cost most."""
        named = listed([f"{name} {cost:.6f}" for name, cost in self.tables], most)
        return f"rank {self.rank} holds it up: {self.milliseconds:.6f} ms ({named})"


def guilty(objective: RatingName, plan: Sequence[ShardingOption]) -> Guilty | None:
    """The slowest rank of a plan whose shards have estimates and ranks; None for an empty plan."""
    entries = [(option, shard) for option in plan for shard in option.shards]
    if not entries:
        return None
    rating = phased(objective, plan)
    cost = np.array([rating.cost(option, shard.perf) for option, shard in entries])
    if rating.objective == Objective.BUSIEST_RANK:
        cost = cost.sum(axis=1, keepdims=True)
    ranks = np.array([shard.rank for _, shard in entries])
    loads = np.zeros((ranks.max() + 1, cost.shape[1]), dtype=np.int64)
    np.add.at(loads, ranks, cost)
    slowest = loads.argmax(axis=0)
    peaks = np.bincount(slowest, weights=loads.max(axis=0))
    rank = int(peaks.argmax())
    held = cost[:, slowest == rank].sum(axis=1) * (ranks == rank)
    tables: dict[str, int] = {}
    for (option, _), amount in zip(entries, held, strict=True):
        if amount:
            tables[option.name] = tables.get(option.name, 0) + int(amount)
    ordered = sorted(tables.items(), key=lambda item: (-item[1], item[0]))
    return Guilty(
        rank, milliseconds(int(peaks[rank])), tuple((t, milliseconds(c)) for t, c in ordered)
    )


def summary(
    outcome: Outcome,
    rating: float | None = None,
    objective: RatingName = "busiest_rank",
    held_up_by: Guilty | None = None,
) -> str:
    """A few lines: the plan's objective, the bound for any plan, and its source.

    The outcome is of an Instance written from TorchRec (picoseconds); ``rating`` is TorchRec's own
    figure for the same plan in milliseconds.
    """
    verdict_line = f"{standing(outcome)} ({outcome.formulation}, {outcome.seconds:.2f} s)"
    lines = [f"--- milp-planner: {verdict_line} ---"]
    if outcome.objective is not None:
        text = f"{objective.replace('_', ' ')} {milliseconds(outcome.objective):.6f} ms"
        if rating is not None:
            text += f" (TorchRec's rating {rating:.6f} ms)"
        lines.append(text)
    lines.append(_bound(outcome))
    if held_up_by is not None:
        lines.append(held_up_by.sentence())
    return "\n".join(lines)


def _bound(outcome: Outcome) -> str:
    """The certified bound, then the better bound that a solver proved."""
    if outcome.bound is None:
        return "bound: not known"
    gap = f", gap {outcome.gap:.4%}" if outcome.gap is not None else ""
    certified = "nothing certified"
    if outcome.certified_bound is not None:
        certified = f"certified bound {milliseconds(outcome.certified_bound):.6f} ms"
    if outcome.bound == outcome.certified_bound:
        return certified + gap
    whose = f" by {outcome.bound_source.method}" if outcome.bound_source else ""
    return f"{certified}; bound {milliseconds(outcome.bound):.6f} ms{whose}{gap}"


class OncePerSize(ShardEstimator):
    """Let an estimator price one shard of every size of an option, and copy its results.

    ``inner`` must estimate a shard's performance from option and shard size only.
    """

    def __init__(self, inner: ShardEstimator) -> None:
        self.inner = inner

    def estimate(
        self, sharding_options: list[ShardingOption], sharder_data_map: SharderDataMap
    ) -> None:
        """Set ``perf`` of every shard, in place."""
        reduced = [_representatives(option) for option in sharding_options]
        self.inner.estimate(reduced, sharder_data_map)
        for option, few in zip(sharding_options, reduced, strict=True):
            option.is_weighted = few.is_weighted
            perf = {tuple(shard.size): shard.perf for shard in few.shards}
            for shard in option.shards:
                found = perf[tuple(shard.size)]
                shard.perf = None if found is None else replace(found)


def _representatives(option: ShardingOption) -> ShardingOption:
    """The same option with the first shard of every size."""
    few = copy.copy(option)
    few.shards = list({tuple(shard.size): shard for shard in reversed(option.shards)}.values())
    few.shards.reverse()
    return few


_DEFAULTS = (EmbeddingPerfEstimator, DelegatingPerfEstimator)
"""TorchRec's default estimator, and the class that its provider (1.9) uses for it."""


def speed_up(enumerator: Enumerator) -> None:
    """Wrap TorchRec's default performance estimator inside its own enumerator, in place."""
    if type(enumerator) is not EmbeddingEnumerator:
        return
    enumerator._estimators = [
        OncePerSize(estimator) if type(estimator) in _DEFAULTS else estimator
        for estimator in enumerator._estimators
    ]
