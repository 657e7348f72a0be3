"""TorchRec's 2D: the sharding group chosen with its plan, and the arguments of ``DMPCollection``.

TorchRec's planner has no notion of sharding groups: users choose a size and pass the topology of
one group. Here every size is planned, on TorchRec's own estimates, with the averaging of replicas
as one more phase; a size whose bound is above the best plan is abandoned early.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.distributed as dist
from torch import nn
from torchrec.distributed.planner.types import PlannerError, Topology
from torchrec.distributed.types import ModuleSharder, ShardingPlan, ShardingStrategy

from formulations import Settings
from milp_planner.errors import BadInput
from milp_planner.features.plan.divide import Try, best_of
from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.two_d import TwoD
from milp_planner.integrations.exports.torchrec import collection
from milp_planner.integrations.torchrec.planner import MilpShardingPlanner
from milp_planner.integrations.torchrec.received import planned_by_rank_0
from milp_planner.integrations.torchrec.replicas import Replicas
from milp_planner.plans.divisions import groups_of, words_of
from milp_planner.pricing.exchange import links_of
from milp_planner.request import Limits

PER_SECOND = 1000
"""Milliseconds per second; TorchRec's bandwidths are per millisecond."""


def collection_arguments(document: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments of ``DMPCollection`` from an exported document.

    ``world_size``, ``sharding_group_size``, ``sharding_strategy``, ``use_inter_host_allreduce`` and
    ``node_group_size``; the plan comes from
    :func:`milp_planner.integrations.torchrec.sharding_plan.from_document`. The train pipeline takes
    the averaging interval, ``dmp_collection_sync_interval_batches`` of the document.

    Raises
    ------
    BadInput
        If the document is of a plan without sharding groups.
    """
    found = document.get("dmp_collection")
    if found is None:
        raise BadInput("the document is of a plan without sharding groups (two_d of its cluster)")
    return {**found, "sharding_strategy": ShardingStrategy[found["sharding_strategy"]]}


class TwoDShardingPlanner:
    """Chooses ``DMPCollection``'s sharding group together with the plan.

    Parameters
    ----------
    topology : callable
        ``topology(world_size, local_world_size)`` is the Topology of ``world_size`` ranks,
        ``local_world_size`` on each host: called for all ranks, and for the groups that are tried.
    world_size, local_world_size : int
        Ranks of the job, and of a host.
    two_d : TwoD, optional
        Fixed size and layout, if any, and the averaging interval; by default all sizes and layouts
        are tried. TorchRec does not count memory by moments, so full sharding saves none in its
        estimate: the strategy is always the default.
    settings : Settings, optional
        Limits for all groups together.
    formulation : str
    planner
        Further arguments of :class:`MilpShardingPlanner`.

    Attributes
    ----------
    planner : MilpShardingPlanner or None
        The planner of the last plan.
    arguments : dict
        Arguments of ``DMPCollection`` for the last plan; empty if a single group is best.
    tries : list of Try
        Every group tried, with its best known bound and plan.
    """

    def __init__(
        self,
        topology: Callable[[int, int], Topology],
        world_size: int,
        local_world_size: int,
        two_d: TwoD | None = None,
        settings: Settings | None = None,
        formulation: str = "auto",
        **planner: Any,
    ) -> None:
        asked = two_d or TwoD()
        if asked.strategy == "fully_sharded" or asked.sync_interval == "never":
            raise BadInput(
                "two_d: found fully_sharded or never; allowed with TorchRec's estimates: strategy "
                "default and an interval (milp_planner.plan knows both)"
            )
        self._topology, self._settings = topology, Limits().settings(settings)
        self._formulation, self._more = formulation, planner
        asked = asked.model_copy(update={"strategy": "default"})
        self._job = _job(topology(world_size, local_world_size), asked)
        self.planner: MilpShardingPlanner | None = None
        self.arguments: dict[str, Any] = {}
        self.tries: list[Try] = []

    def plan(self, module: nn.Module, sharders: list[ModuleSharder[nn.Module]]) -> ShardingPlan:
        """The plan of one group, whose ranks are those of the group.

        Raises
        ------
        NoPlan
            If no group has a plan, as in :class:`MilpShardingPlanner`.
        BadInput
            If no group can be planned.
        """
        groups = [*groups_of(self._job)] if self._job.two_d else [self._job]
        self.tries = [self._try(group, module, sharders) for group in groups]
        if all(each.instance is None for each in self.tries):
            raise BadInput(self.tries[0].refused)
        chosen, rest = best_of(self.tries, self._formulation, self._settings, lambda _: None)
        group = groups[self.tries.index(chosen)]
        self.planner = self._planner(group, rest)
        several = collection(group)
        self.arguments = collection_arguments(several) if several else {}
        return self.planner.plan(module, sharders)

    def collective_plan(
        self,
        module: nn.Module,
        sharders: list[ModuleSharder[nn.Module]],
        pg: dist.ProcessGroup,
    ) -> ShardingPlan:
        """Plan on rank 0 of all ranks' group; plan and ``arguments`` reach every rank.

        Raises
        ------
        NoPlan, PlannerError
            On every rank, as :meth:`MilpShardingPlanner.collective_plan`.
        """
        found = planned_by_rank_0(pg, lambda: (self.plan(module, sharders), self.arguments))
        plan, self.arguments = found
        return plan

    def _planner(self, group: Cluster, settings: Settings) -> MilpShardingPlanner:
        topology = self._topology(group.num_ranks, len(group.machines[0].ranks))
        two_d, replicas = group.two_d, None
        if two_d is not None and group.replicas > 1:
            assert isinstance(two_d.sync_interval, int)
            host_link = topology.hbm_to_ddr_mem_bw * PER_SECOND
            replicas = Replicas(links_of(group).replica, host_link, two_d.sync_interval)
        return MilpShardingPlanner(
            topology=topology, settings=settings, formulation=self._formulation,
            replicas=replicas, **self._more,
        )  # fmt: skip

    def _try(
        self, group: Cluster, module: nn.Module, sharders: list[ModuleSharder[nn.Module]]
    ) -> Try:
        try:
            problem = self._planner(group, self._settings).prepare(module, sharders)
        except (BadInput, PlannerError) as error:
            return Try(words_of(group), None, str(error))
        return Try(words_of(group), None if problem is None else problem.instance)


def _job(whole: Topology, two_d: TwoD) -> Cluster:
    """Ranks, hosts and links of a topology; nothing else is read."""
    speed, size = whole.comms_bandwidths, whole.local_world_size
    links = {
        "intra_machine": f"{round(speed.intra_host_bw * PER_SECOND)}B/s",
        "inter_machine": f"{round(speed.inter_host_bw * PER_SECOND)}B/s",
    }
    return Cluster.from_dict(
        {
            "name": "job", "machines": whole.world_size // size, "ranks_per_machine": size,
            "hbm": 0, "ddr": 0, "interconnect": links, "two_d": two_d.to_dict(),
        }
    )  # fmt: skip
