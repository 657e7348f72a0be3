"""``MilpPlannerProvider`` builds the variant and reservation that TorchRec's provider refuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from torchrec.distributed.planner.dry_run.protocols import PlanCache
from torchrec.distributed.planner.dry_run.types import SkuOverride
from torchrec.distributed.planner.planners import EmbeddingPlannerBase
from torchrec.distributed.planner.provider import DefaultPlannerProvider
from torchrec.distributed.planner.types import (
    HardwareConfig,
    KernelConfig,
    PlannerConfig,
    PlannerSessionContext,
    PlannerVariant,
    ShardingPlanRequest,
    StorageReservation,
    StorageReservationPolicy,
    Topology,
    TopologyFactory,
    TrainerConfig,
)

from milp_planner.errors import BadInput
from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.problems import choice
from milp_planner.integrations.torchrec.planner import MilpShardingPlanner
from milp_planner.integrations.torchrec.rating import speed_up
from milp_planner.integrations.torchrec.service.cache import ByRequest
from milp_planner.integrations.torchrec.service.reservation import sku_aware
from milp_planner.pricing.profile import load_profile

GIB = 2**30
_UNREAD = (
    "proposer_type", "partitioner_type", "partitioner_sort_by", "balance_modules",
    "memory_balanced_max_search_count", "memory_balanced_tolerance", "performance_model",
    "bwd_compute_multiplier", "use_hardware_based_compute",
    "use_batch_inputs_for_expected_cache_fetches", "use_linear_regression_prefetch_estimate",
)  # fmt: skip
"""Fields of ``PlannerConfig`` that steer parts which this planner does not have."""


class MilpPlannerProvider(DefaultPlannerProvider):
    """Builds :class:`MilpShardingPlanner` for ``LINEAR_PROGRAMMING``, otherwise TorchRec's default.

    Give it to TorchRec's ``DefaultPlannerExecutor``; the orchestrators need no change.
    Enumerator, estimators, reservation and (without ``hardware``) topology are those that
    TorchRec's provider builds from the request.

    Parameters
    ----------
    hardware : mapping of SKU to HardwareConfig, optional
        Hardware of every SKU, for planners of all variants. The request's ``per_sku_overrides``
        override it, and ``hbm_gb``/``ddr_gb`` override both. None: TorchRec's topology, which is
        the same for all SKUs; overrides apply then too, although TorchRec 1.9.2 ignores them.
    overhead : mapping of SKU to bytes, optional
        HBM of a rank that the runtime uses, for ``StorageReservationPolicy.SKU_AWARE``; otherwise
        0.
    plans : PlanCache, optional
        TorchRec's protocol: plans by request, such as
        :class:`~milp_planner.integrations.torchrec.service.FolderPlans`. A stored plan is used if
        it is certified to the gap of ``settings`` and verified on today's instance.
    **planner
        ``formulation``, ``settings``, ``ddr``, ``lift``, ``objective``, ``fusion``, ``together``,
        ``key_value``, ``stash`` and ``cache`` of :class:`MilpShardingPlanner`. ``timeout_seconds``
        of the request is the time limit.

    References
    ----------
    torchrec 1.9.2, ``planner/provider.py``: ``PlannerProvider``, ``DefaultPlannerProvider``.
    """

    def __init__(
        self,
        hardware: Mapping[str, HardwareConfig] | None = None,
        overhead: Mapping[str, int] | None = None,
        plans: PlanCache | None = None,
        **planner: Any,
    ) -> None:
        self._hardware = hardware
        self._overhead, self._plans = overhead or {}, plans
        self._planner = planner

    def build_topology(
        self, sku: str, request: ShardingPlanRequest, ctx: PlannerSessionContext
    ) -> Topology:
        """The topology of a SKU; BadInput for one that ``hardware`` does not hold."""
        override = (getattr(request, "per_sku_overrides", None) or {}).get(sku)
        if self._hardware is None and override is None:
            return super().build_topology(sku, request, ctx)
        hardware = _hardware(sku, self._hardware, override)
        ctx.hw_source[sku] = "milp_planner"
        ctx.hw_overrides_applied[sku] = hardware
        return TopologyFactory.create_topology(
            trainer_config=TrainerConfig(
                world_size=request.world_size,
                local_world_size=request.local_world_size,
                pod_size=request.pod_size,
                hbm_cap_bytes=None if request.hbm_gb is None else int(request.hbm_gb * GIB),
                ddr_cap_bytes=None if request.ddr_gb is None else int(request.ddr_gb * GIB),
            ),
            hardware_config=hardware,
            kernel_config=KernelConfig(
                compute_device=request.compute_device or "cuda", use_hardware_based_bandwidth=True
            ),
        )

    def build_storage_reservation(
        self, sku: str, request: ShardingPlanRequest
    ) -> StorageReservation:
        """The request's own reservation, or that of its policy, including ``SKU_AWARE``.

        BadInput if that policy lacks inputs; see
        :func:`milp_planner.integrations.torchrec.service.reservation.sku_aware`.
        """
        config = request.planner_config
        aware = config.storage_reservation_policy is StorageReservationPolicy.SKU_AWARE
        if request.storage_reservation is not None or not aware:
            return super().build_storage_reservation(sku, request)
        hardware = dict(self._hardware or {})
        overrides = getattr(request, "per_sku_overrides", None) or {}
        for name, override in overrides.items():
            if name in hardware or self._hardware is None:
                hardware[name] = _hardware(name, self._hardware, override)
        return sku_aware(config, hardware, self._overhead.get(sku, 0))

    def build_planner(
        self,
        sku: str,
        *,
        topology: Topology,
        storage_reservation: StorageReservation,
        ctx: PlannerSessionContext,
    ) -> EmbeddingPlannerBase:
        """The planner of the request's variant.

        BadInput if the request's configuration steers a part that this planner does not have;
        NotImplementedError from TorchRec, for variants that neither builds.
        """
        request, config = ctx.request, ctx.request.planner_config
        if config.planner_variant is not PlannerVariant.LINEAR_PROGRAMMING:
            return super().build_planner(
                sku, topology=topology, storage_reservation=storage_reservation, ctx=ctx
            )
        unread = list(self._unread(config, sku, ctx))
        if unread:
            raise BadInput(
                "planner_variant linear_programming chooses options and ranks itself and does not "
                f"read: {', '.join(unread)}; leave them at their defaults"
            )
        enumerator = self._build_enumerator(sku, topology, ctx)
        speed_up(enumerator)
        return MilpShardingPlanner(
            topology=topology,
            batch_size=request.batch_size,
            enumerator=enumerator,
            storage_reservation=storage_reservation,
            stats=ctx.stats,
            constraints=request.constraints,
            debug=config.debug,
            timeout_seconds=config.timeout_seconds,
            by_request=None if self._plans is None else ByRequest(self._plans, request, sku),
            **self._planner,
        )

    def _unread(self, config: PlannerConfig, sku: str, ctx: PlannerSessionContext) -> Iterator[str]:
        default = PlannerConfig()
        for name in _UNREAD:
            if getattr(config, name) != getattr(default, name):
                yield name
        if config.proposer_config is not None and config.proposer_config.kind != "default":
            yield "proposer_config"
        if config.use_hardware_based_bandwidth and ctx.hw_source.get(sku) != "milp_planner":
            yield "use_hardware_based_bandwidth (give the provider hardware)"


def hardware_of(cluster: Cluster) -> HardwareConfig:
    """TorchRec's hardware description of a cluster's ranks.

    Parameters
    ----------
    cluster : Cluster
        Its ranks and machines must be equal. Capacities are taken as they are (TorchRec makes the
        reservations), DDR in equal shares per rank.

    Returns
    -------
    HardwareConfig
        Capacities in bytes, bandwidths in bytes per millisecond.

    Raises
    ------
    BadInput
        If ranks or machines differ.
    """
    first = cluster.machines[0]
    if any(machine != first for machine in cluster.machines) or len(set(first.ranks)) > 1:
        raise BadInput(
            f"cluster {cluster.name!r}: found ranks or machines that differ; allowed as a SKU: "
            "equal ones"
        )
    profile = load_profile(cluster.profile)
    network = cluster.interconnect
    within = None if network is None else network.intra_machine / 1000
    between = None if network is None else network.inter_machine
    return HardwareConfig(
        hbm_cap_bytes=first.ranks[0].hbm_bytes,
        ddr_cap_bytes=first.ddr_bytes // len(first.ranks),
        intra_host_bw=within,
        inter_host_bw=within if between is None else between / 1000,
        hbm_mem_bw=profile.hbm / 1000,
        ddr_mem_bw=profile.ddr / 1000,
        hbm_to_ddr_mem_bw=profile.host_link / 1000,
    )


def _hardware(
    sku: str, known: Mapping[str, HardwareConfig] | None, override: SkuOverride | None
) -> HardwareConfig:
    """Hardware of one SKU with the request's overrides; BadInput names the nearest known SKU."""
    if known is not None and sku not in known:
        raise BadInput(f"SKU {sku!r}: {choice(sku, known)}")
    found = HardwareConfig() if known is None else known[sku]
    if override is None:
        return found
    # TorchRec writes bandwidths of n GB/s as n GiB per thousand milliseconds.
    changes = {
        "hbm_cap_bytes": None if override.hbm_gb is None else int(override.hbm_gb * GIB),
        "ddr_cap_bytes": None if override.ddr_gb is None else int(override.ddr_gb * GIB),
        "intra_host_bw": _bytes_per_millisecond(override.intra_host_bw),
        "inter_host_bw": _bytes_per_millisecond(override.inter_host_bw),
    }
    return replace(found, **{name: v for name, v in changes.items() if v is not None})


def _bytes_per_millisecond(gigabytes: float | None) -> float | None:
    return None if gigabytes is None else gigabytes * GIB / 1000
