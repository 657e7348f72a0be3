"""What makes a plan good, as the phases of an Instance: TorchRec's rating, or its critical path.

``busiest_rank`` is what TorchRec's planner minimises (``NoopPerfModel``): the largest sum of
``Perf.total`` over a rank's shards. ``critical_path`` is what its statistics report and nothing
in it minimises (``stats._calculate_critical_path``): ranks wait for each other after forward and
after backward compute, and after each collective, of which every pair of module and sharding type
has one forward and one backward. Prefetch and input distribution are no part of the latter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from torchrec.distributed.planner.perf_models import NoopPerfModel
from torchrec.distributed.planner.stats import _calculate_critical_path
from torchrec.distributed.planner.types import Perf, ShardingOption, Storage, Topology

from formulations import Objective

RatingName = Literal["busiest_rank", "critical_path"]
Cost = tuple[int, ...]

#: Cost columns of an Instance written from TorchRec: the parts of ``Perf.total``.
PHASES = ("fwd_compute", "fwd_comms", "bwd_compute", "bwd_comms", "prefetch")
_FIELDS = ("fwd_compute", "fwd_comms", "bwd_compute", "bwd_comms", "prefetch_compute")

PICOSECONDS = 1_000_000_000
"""Picoseconds in the millisecond that TorchRec's estimators count in."""


@dataclass(frozen=True)
class Phased:
    """How shards cost what an objective counts.

    Attributes
    ----------
    phases : tuple of str
    objective : Objective
    cost : callable
        From a shard's option and estimate to picoseconds a phase.
    """

    phases: tuple[str, ...]
    objective: Objective
    cost: Callable[[ShardingOption, Perf], Cost]


def phased(name: RatingName, search_space: Sequence[ShardingOption]) -> Phased:
    """Phases and costs of a rating for the options of a model."""
    if name == "critical_path":
        return _critical_path(search_space)
    return Phased(PHASES, Objective.BUSIEST_RANK, lambda _, perf: picoseconds(perf))


def torchrec_rating(name: RatingName, plan: list[ShardingOption], topology: Topology) -> float:
    """TorchRec's own figure for options with ranks, in milliseconds."""
    if name == "critical_path":
        return float(_calculate_critical_path(plan).total()) if plan else 0.0
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


def _collective(option: ShardingOption) -> tuple[str, int, str]:
    """What TorchRec tells collectives apart by: the module, its path, and the sharding type."""
    path, module = option.module
    return path, id(module), option.sharding_type


def picoseconds(perf: Perf) -> tuple[int, ...]:
    """A shard's estimate as one integer a phase.

    Each phase is rounded to the nearest picosecond (half to even), so a shard's sum is off by at
    most 2.5 ps. ``input_dist_comms`` is left out, as in TorchRec's own ``Perf.total``.

    Parameters
    ----------
    perf : Perf
        Milliseconds.

    Returns
    -------
    tuple of int [phases]
        Picoseconds, in the order of :data:`PHASES`.

    Raises
    ------
    ValueError
        When an estimate is not a finite number.
    """
    values = [float(getattr(perf, name)) for name in _FIELDS]
    if not all(math.isfinite(value) for value in values):
        raise ValueError(f"its estimate {values} ms is not finite; allowed: finite times")
    return tuple(round(value * PICOSECONDS) for value in values)


def milliseconds(picos: int) -> float:
    """Picoseconds as TorchRec's milliseconds."""
    return picos / PICOSECONDS


def whole_bytes(storage: Storage) -> dict[str, int]:
    """What a shard uses of each tier in whole bytes, rounded up.

    Returns
    -------
    dict
        ``hbm``, ``ddr``, ``ssd``.
    """
    return {
        "hbm": math.ceil(storage.hbm),
        "ddr": math.ceil(storage.ddr),
        "ssd": math.ceil(storage.ssd),
    }
