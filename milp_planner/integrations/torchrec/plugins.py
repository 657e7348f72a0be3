"""``MilpProposer`` and ``MilpPartitioner``: for users who keep TorchRec's planner."""

from __future__ import annotations

import copy
import logging

from torchrec.distributed.planner.types import (
    Enumerator,
    Partitioner,
    Proposer,
    ShardingOption,
    Topology,
)

from formulations import Outcome, Placement, Settings, check, solve
from milp_planner.errors import BadInput
from milp_planner.integrations.torchrec.blocks import DdrScope
from milp_planner.integrations.torchrec.failure import no_plan
from milp_planner.integrations.torchrec.lift import Lift, lift
from milp_planner.integrations.torchrec.problem import Problem, compile_problem

logger = logging.getLogger(__name__)


class MilpProposer(Proposer):
    """Propose the plan of the joint model, with its ranks.

    TorchRec tells a proposer the memory it may use only in the feedback on its first proposal.
    So the first proposal takes the cheapest option of every table, and the second is the solved
    plan. Beside :class:`MilpPartitioner` its ranks are kept;
    another partitioner places the chosen options its own way.

    Parameters
    ----------
    settings : formulations.Settings, optional
        Default 60 s on all cores.
    formulation : str
        Name in :data:`formulations.registry.FORMULATIONS`.
    ddr : {"rank", "machine"}
        Whether DDR limits every rank, as in TorchRec, or the host as a whole.
    lift : Lift, optional
        Further column widths and cache load factors, priced by the planner's enumerator.

    Attributes
    ----------
    outcome : Outcome or None
        Of the last solve: objective, bound, gap.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        formulation: str = "auto",
        ddr: DdrScope = "rank",
        lift: Lift | None = None,
    ) -> None:
        self._settings = settings or Settings()
        self._formulation = formulation
        self._ddr = ddr
        self._lift = lift
        self._enumerator: Enumerator | None = None
        self._space: list[ShardingOption] = []
        self._next: list[ShardingOption] | None = None
        self.problem: Problem | None = None
        self.outcome: Outcome | None = None

    def load(
        self, search_space: list[ShardingOption], enumerator: Enumerator | None = None
    ) -> None:
        """Start anew on a search space; a proposer may be used for any number of plans."""
        self.problem, self.outcome = None, None
        self._space, self._enumerator = list(search_space), enumerator
        cheapest: dict[str, ShardingOption] = {}
        for option in search_space:
            best = cheapest.setdefault(option.fqn, option)
            if option.total_perf < best.total_perf:
                cheapest[option.fqn] = option
        self._next = [copy.deepcopy(option) for option in cheapest.values()] or None

    def propose(self) -> list[ShardingOption] | None:
        """The next proposal; None when the solved one has been judged."""
        return self._next

    def feedback(
        self,
        partitionable: bool,
        plan: list[ShardingOption] | None = None,
        perf_rating: float | None = None,
        storage_constraint: Topology | None = None,
    ) -> None:
        """Solve once the memory limits are known; then there is nothing more to propose."""
        if self.problem is not None or storage_constraint is None:
            self._next = None
            return
        space = self._lifted(storage_constraint)
        self.problem = compile_problem(space, storage_constraint, self._ddr)
        self.outcome = solve(self.problem.instance, self._formulation, self._settings)
        placement = self.outcome.placement
        self._next = None if placement is None else self.problem.apply(placement)
        logger.info(
            "milp-planner: %s, objective %s ps, bound %s ps",
            self.outcome.status.value,
            self.outcome.objective,
            self.outcome.bound,
        )

    def _lifted(self, topology: Topology) -> list[ShardingOption]:
        if self._lift is None or self._enumerator is None:
            return self._space
        constraints = getattr(self._enumerator, "_constraints", None)
        return lift(self._space, self._lift, topology, self._enumerator, constraints)


class MilpPartitioner(Partitioner):
    """Give every shard of a proposal a rank, lowest busiest rank first.

    A proposal that already has ranks (from
    :class:`MilpProposer`) is checked and returned as it is.
    Any other is solved as an Instance with one option a table, so proposers of TorchRec's own
    keep working and find plans that greedy partitioners miss.

    Parameters
    ----------
    settings : formulations.Settings, optional
        For each proposal; default 1 s on all cores. TorchRec's default proposers make about 30
        proposals per table, so keep the limit short with those.
    formulation : str
        Name in :data:`formulations.registry.FORMULATIONS`.
    ddr : {"rank", "machine"}
        Whether DDR limits every rank, as in TorchRec, or the host as a whole.
    """

    def __init__(
        self, settings: Settings | None = None, formulation: str = "auto", ddr: DdrScope = "rank"
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


def _placed(proposal: list[ShardingOption]) -> bool:
    return all(shard.rank is not None for option in proposal for shard in option.shards)


def _accepted(problem: Problem, proposal: list[ShardingOption]) -> bool:
    try:
        return check(problem.instance, problem.placement_of(proposal)).feasible
    except BadInput:
        return False


def _copy_ranks(problem: Problem, placement: Placement, proposal: list[ShardingOption]) -> None:
    solved = {option.fqn: option for option in problem.apply(placement)}
    for option in proposal:
        for shard, found in zip(option.shards, solved[option.fqn].shards, strict=True):
            shard.rank = found.rank
