"""Tables whose weights TorchRec copies to host memory in the dense part (``stash_weights``).

From TorchRec 1.9, ``ShardingOption.stash_weights`` says which tables are stashed; no open estimator
reads it. Here their weights count in a resource ``stash`` of every rank, without a limit, and the
largest use of it, which decides how long the copies take, can be minimised after the objective.

References
----------
TorchRec 1.9.2, ``planner/types.py`` and ``distributed/memory_stashing.py`` (weights in HBM of
tables with a fused kernel). Weights out of HBM and into DDR, as Meta's own planner counts them:
pull request 4519. The largest stashed bytes after the objective, with tolerances (15% on HBM): pull
request 4520.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from torchrec.distributed.planner.types import Shard, ShardingOption, Storage

from formulations import Instance, Outcome, Settings, solve
from formulations.settings import STASHED, Goals
from milp_planner.errors import BadInput
from milp_planner.features.moves.few import left_for_objective, limited, then_minimise
from milp_planner.inputs.problems import one_of
from milp_planner.integrations.torchrec.options import with_storage

WeightsIn = Literal["hbm", "ddr"]
STASH = "stash"
"""The resource that counts stashed weights."""
UNLIMITED = 2**50
"""Its capacity, more than any rank holds."""
BALANCING = 0.5
"""Share of the time limit kept for the balance of the stash."""
STASHABLE = ("fused", "fused_triton")
"""Kernels whose weights are in HBM and stashed if the table is."""


@dataclass(frozen=True)
class Stash:
    """How tables with ``stash_weights`` count.

    Parameters
    ----------
    weights_in : {"hbm", "ddr"}
        Where their weights count against a capacity. They are in HBM except in the dense part, so
        ``"ddr"``, which is what Meta's planner does, is right only if the dense part is fullest.
    balance : bool
        Whether to minimise the largest stashed bytes of a rank after the objective.
    perf_percent, hbm_percent : float
        How far the balance may worsen the objective, and the HBM of the fullest rank from its
        least value at that objective, in percent.

    Raises
    ------
    BadInput
        For another place, or a percentage that is negative or not finite.
    """

    weights_in: WeightsIn = "hbm"
    balance: bool = False
    perf_percent: float = 0.0
    hbm_percent: float = 15.0

    def __post_init__(self) -> None:
        one_of(self.weights_in, get_args(WeightsIn), "weights_in")
        for name in ("perf_percent", "hbm_percent"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise BadInput(f"{name}: found {value!r}; allowed: a percentage from 0")

    def counted(self, space: Sequence[ShardingOption]) -> list[ShardingOption]:
        """The options; with ``weights_in="ddr"`` flagged ones are copies with their weights
        there."""
        if self.weights_in == "hbm":
            return list(space)
        return [_in_ddr(option) if is_stashed(option) else option for option in space]


AS_IS = Stash()
"""Stashed weights in HBM, not balanced."""


def is_stashed(option: ShardingOption) -> bool:
    """Whether an option's weights are stashed; never before TorchRec 1.9."""
    return (
        getattr(option, "stash_weights", False)
        and option.compute_kernel in STASHABLE
        and option.sharding_type != "data_parallel"
    )


def stashed_bytes(option: ShardingOption, shard: Shard) -> int:
    """Bytes of a shard's weights that are stashed."""
    rows, columns = shard.size
    return int(rows * columns * option.tensor.element_size()) if is_stashed(option) else 0


def _in_ddr(option: ShardingOption) -> ShardingOption:
    def moved(shard: Shard, now: Storage) -> Storage:
        weights = min(stashed_bytes(option, shard), now.hbm)
        return Storage(hbm=now.hbm - weights, ddr=now.ddr + weights, ssd=now.ssd)

    return with_storage(option, moved)


def solve_balanced(
    instance: Instance, formulation: str, settings: Settings, stash: Stash
) -> Outcome:
    """The best plan, then, if asked, the one that balances the stash, within the same limit.

    Of the second, the outcome has the largest stashed bytes of a rank and a lower bound for all
    plans within the tolerances. Before it, the HBM of the fullest rank is a goal.
    """
    if not stash.balance or STASH not in [resource.name for resource in instance.resources]:
        return solve(instance, formulation, settings)
    outcome = solve(instance, formulation, left_for_objective(settings, BALANCING))
    order = ("hbm", STASH)
    goals = Goals(order, stash.perf_percent / 100, slack=stash.hbm_percent / 100)
    with settings.timed.stage("stash"):
        found = then_minimise(instance, outcome, limited(settings, BALANCING), goals)
    reached = [replace(goal, goal=STASHED) for goal in found.goals if goal.goal == STASH]
    return found.with_(goals=tuple(reached))
