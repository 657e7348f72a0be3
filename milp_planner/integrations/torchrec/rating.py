"""What makes a plan good, as the phases of an Instance: TorchRec's rating, or its critical path.

``busiest_rank`` is what TorchRec's planner minimises (``NoopPerfModel``): the largest sum of
``Perf.total`` over a rank's shards. ``critical_path`` is what its statistics report and nothing
in it minimises (``stats._calculate_critical_path``): ranks wait for each other after forward and
after backward compute, and after each collective, of which every pair of module and sharding type
has one forward and one backward. Prefetch and input distribution are no part of the latter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal, cast, get_args

from formulations import Objective
from milp_planner.errors import BadInput
from milp_planner.integrations.torchrec.units import PHASES, picoseconds

if TYPE_CHECKING:
    from torchrec.distributed.planner.types import Perf, ShardingOption, Topology

RatingName = Literal["busiest_rank", "critical_path"]
Cost = tuple[int, ...]


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


def known_rating(name: str) -> RatingName:
    """A rating by its name.

    Raises
    ------
    BadInput
        For an unknown name, with the nearest valid one.
    """
    names = get_args(RatingName)
    if name not in names:
        near = get_close_matches(str(name), names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise BadInput(f"objective: found {name!r}; allowed: {', '.join(names)}{hint}")
    return cast(RatingName, name)


def phased(name: RatingName, search_space: Sequence[ShardingOption]) -> Phased:
    """Phases and costs of a rating for the options of a model."""
    if name == "critical_path":
        return _critical_path(search_space)
    return Phased(PHASES, Objective.BUSIEST_RANK, lambda _, perf: picoseconds(perf))


def torchrec_rating(name: RatingName, plan: list[ShardingOption], topology: Topology) -> float:
    """TorchRec's own figure for options with ranks, in milliseconds."""
    if name == "critical_path":
        from torchrec.distributed.planner.stats import _calculate_critical_path

        return float(_calculate_critical_path(plan).total()) if plan else 0.0
    from torchrec.distributed.planner.perf_models import NoopPerfModel

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
