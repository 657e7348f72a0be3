"""``MilpPartitioner``: places a proposal's shards exactly where greedy partitioners give up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchrec.distributed.planner.types import Partitioner, ShardingOption

from formulations import Placement, Settings, check, solve
from milp_planner.errors import BadInput
from milp_planner.integrations.torchrec.failure import no_plan
from milp_planner.integrations.torchrec.places import DdrScope
from milp_planner.integrations.torchrec.problem import Problem, compile_problem

if TYPE_CHECKING:
    from torchrec.distributed.planner.types import Topology


class MilpPartitioner(Partitioner):
    """Give every shard of a proposal a rank, lowest busiest rank first.

    A proposal that already has ranks (from
    :class:`~milp_planner.integrations.torchrec.MilpProposer`) is checked and returned as it is.
    Any other is solved as an Instance with one option a table, so proposers of TorchRec's own
    keep working and find plans that greedy partitioners miss.

    Parameters
    ----------
    settings : formulations.Settings, optional
        For each proposal; default 1 s on all cores. TorchRec's default proposers make about 30
        proposals a table, so keep the limit short beside them.
    formulation : str
        Name in :data:`formulations.registry.FORMULATIONS`.
    ddr : {"rank", "machine"}
        Whether DDR limits every rank, as in TorchRec, or the host as a whole.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        formulation: str = "auto",
        ddr: DdrScope = "rank",
    ) -> None:
        self._settings = settings or Settings(time_limit=1.0, certificate=False)
        self._formulation = formulation
        self._ddr = ddr

    def partition(
        self, proposal: list[ShardingOption], storage_constraint: Topology
    ) -> list[ShardingOption]:
        """Set the rank of every shard of a proposal, in place.

        Parameters
        ----------
        proposal : list of ShardingOption
            One a table, estimates populated.
        storage_constraint : Topology
            What reservations leave.

        Returns
        -------
        list of ShardingOption
            The proposal.

        Raises
        ------
        NoPlan
            TorchRec's ``PlannerError``: no placement exists, or none was found in the limit.
        """
        problem = compile_problem(proposal, storage_constraint, self._ddr)
        if _placed(proposal) and _accepted(problem, proposal):
            return proposal
        outcome = solve(problem.instance, self._formulation, self._settings)
        if outcome.placement is None:
            raise no_plan(problem, outcome, None)
        _copy_ranks(problem, outcome.placement, proposal)
        return proposal


def _placed(proposal: Sequence[ShardingOption]) -> bool:
    return all(shard.rank is not None for option in proposal for shard in option.shards)


def _accepted(problem: Problem, proposal: Sequence[ShardingOption]) -> bool:
    try:
        return check(problem.instance, problem.placement_of(proposal)).feasible
    except BadInput:
        return False


def _copy_ranks(problem: Problem, placement: Placement, proposal: Sequence[ShardingOption]) -> None:
    solved = {option.fqn: option for option in problem.apply(placement)}
    for option in proposal:
        for shard, found in zip(option.shards, solved[option.fqn].shards, strict=True):
            shard.rank = found.rank
