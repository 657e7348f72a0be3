"""``MilpPlannerProvider``, which builds the variant TorchRec's own refuses; plans kept on disk.

TorchRec 1.9.2 defines ``PlanCache`` and asks nobody for one. Its key, the request's hash, leaves
out what cannot be hashed there: the model, its sharders, a reservation object. All of these end in
the Instance; so the key here is the request's hash followed by the Instance's. Enumeration and
pricing still run; what a hit saves is the solve.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from torchrec.distributed.planner.dry_run.protocols import CacheMetadata, PlanCache
from torchrec.distributed.planner.dry_run.types import SkuOverride
from torchrec.distributed.planner.planners import EmbeddingPlannerBase, to_sharding_plan
from torchrec.distributed.planner.provider import DefaultPlannerProvider
from torchrec.distributed.planner.types import (
    HardwareConfig,
    KernelConfig,
    PlannerConfig,
    PlannerSessionContext,
    PlannerVariant,
    ShardingOption,
    ShardingPlanRequest,
    StorageReservation,
    Topology,
    TopologyFactory,
    TrainerConfig,
)
from torchrec.distributed.types import ShardingPlan

from formulations import Instance, Outcome, Status, check
from formulations.errors import InstanceError
from formulations.result.outcome_file import outcome_from_dict, outcome_to_dict
from milp_planner.errors import BadInput
from milp_planner.files import write_json
from milp_planner.inputs.cluster import Cluster
from milp_planner.inputs.problems import choice
from milp_planner.integrations.torchrec.planner import MilpShardingPlanner
from milp_planner.integrations.torchrec.problem import Problem
from milp_planner.integrations.torchrec.rating import speed_up
from milp_planner.integrations.torchrec.sharding_plan import from_document, to_document
from milp_planner.pricing.profile import load_profile

logger = logging.getLogger(__name__)

_KEY = re.compile(r"[A-Za-z0-9_-]{1,200}")


class DiskPlanCache:
    """Plans by the hash of what they answer; any number of processes may share the folder.

    Entries are written to a temporary name and renamed, so a reader sees a whole one or none.
    An entry that cannot be read is logged and counts as absent.

    Parameters
    ----------
    folder : str or Path
        Made on the first :meth:`put`.

    References
    ----------
    torchrec 1.9.2, ``planner/dry_run/protocols.py``: ``PlanCache``, ``CacheMetadata``.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def get(self, request_fingerprint: str) -> tuple[ShardingPlan, CacheMetadata] | None:
        """The plan and its metadata; None when there is none."""
        path = self._path(request_fingerprint)
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        try:
            entry = json.loads(text)
            return from_document(entry["plan"]), CacheMetadata(**entry["metadata"])
        except (BadInput, KeyError, TypeError, ValueError) as error:
            logger.warning("plan cache: %s cannot be read (%s); planned anew", path, error)
            return None

    def put(self, request_fingerprint: str, plan: ShardingPlan, metadata: CacheMetadata) -> None:
        """Keep a plan, in place of one that has the same key."""
        path = self._path(request_fingerprint)
        self.folder.mkdir(parents=True, exist_ok=True)
        world = max(1, metadata.world_size)
        host = int(metadata.extra.get("local_world_size", world))
        device = metadata.extra.get("compute_device", "cuda")
        document = to_document(plan, world, host, device)
        write_json(path, {"plan": document, "metadata": asdict(metadata)})

    def _path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise BadInput(
                f"plan cache: found the key {key!r}; allowed: letters, digits, - and _, up to 200"
            )
        return self.folder / f"{key}.json"


class RememberingPlanner(MilpShardingPlanner):
    """:class:`MilpShardingPlanner` that takes a stored plan where solving now would be no better.

    A stored outcome must pass the solver-free check on this very Instance, and be proved optimal or
    come from the same formulation with at least the time that is allowed now.

    Parameters
    ----------
    cache : PlanCache
    sku : str
    ctx : PlannerSessionContext
        Gets ``cache_hit`` of the SKU.
    **given
        As there.
    """

    def __init__(
        self, cache: PlanCache, sku: str, ctx: PlannerSessionContext, **given: Any
    ) -> None:
        super().__init__(**given)
        self._cache, self._sku, self._ctx = cache, sku, ctx

    def _solved(self, problem: Problem) -> list[ShardingOption]:
        instance = problem.instance
        request = request_fingerprint(self._ctx.request, self._sku)
        key = f"{request}-{instance.fingerprint[:32]}"
        found = self._cache.get(key)
        stored = None if found is None else _outcome(instance, found[1])
        hit = stored is not None and self._as_good_as_now(instance, stored)
        self._ctx.cache_hit[self._sku] = hit
        if stored is not None and stored.placement is not None and hit:
            self.outcome = stored
            return problem.apply(stored.placement)
        options = super()._solved(problem)
        self._cache.put(key, to_sharding_plan(options, self._topology), self._metadata(instance))
        return options

    def _as_good_as_now(self, instance: Instance, stored: Outcome) -> bool:
        if stored.placement is None:
            return False
        verdict = check(instance, stored.placement)
        if not verdict.feasible or verdict.objectives[instance.objective.value] != stored.objective:
            return False
        if stored.status == Status.OPTIMAL:
            return True
        had, now = stored.settings.get("time_limit"), self._settings.time_limit
        enough = now is not None and (had is None or float(str(had)) >= now)
        return enough and stored.formulation == self._formulation

    def _metadata(self, instance: Instance) -> CacheMetadata:
        assert self.outcome is not None, "a solve leaves its outcome"
        return CacheMetadata(
            created_by="milp-planner",
            sku=self._sku,
            world_size=instance.num_ranks,
            extra={
                "outcome": json.dumps(outcome_to_dict(instance, self.outcome)),
                "local_world_size": str(self._topology.local_world_size),
                "compute_device": self._topology.compute_device,
            },
        )


def request_fingerprint(request: ShardingPlanRequest, sku: str) -> str:
    """``DryRunRequest.fingerprint``; for other requests their hash and the SKU, hashed alike."""
    own = getattr(request, "fingerprint", None)
    if own is not None:
        return str(own(sku))
    return hashlib.sha256(f"{request.request_hash}/{sku}".encode()).hexdigest()[:16]


def _outcome(instance: Instance, metadata: CacheMetadata) -> Outcome | None:
    try:
        return outcome_from_dict(instance, json.loads(metadata.extra["outcome"]), "plan cache")
    except (InstanceError, KeyError, TypeError, ValueError):
        return None


GIB = 2**30
_UNREAD = (
    "proposer_type", "partitioner_type", "partitioner_sort_by", "balance_modules",
    "memory_balanced_max_search_count", "memory_balanced_tolerance", "performance_model",
    "bwd_compute_multiplier", "use_hardware_based_compute",
    "use_batch_inputs_for_expected_cache_fetches", "use_linear_regression_prefetch_estimate",
)  # fmt: skip
"""Fields of ``PlannerConfig`` that steer what this planner does not have."""


class MilpPlannerProvider(DefaultPlannerProvider):
    """Builds :class:`MilpShardingPlanner` for ``LINEAR_PROGRAMMING``; else TorchRec's default.

    Give it to TorchRec's ``DefaultPlannerExecutor``; the orchestrators need no change.
    Enumerator, estimators, reservation and (without ``hardware``) topology are those that
    TorchRec's provider builds from the request.

    Parameters
    ----------
    hardware : mapping of SKU to HardwareConfig, optional
        What every SKU is, for planners of all variants. The request's ``per_sku_overrides`` come
        before it and ``hbm_gb``/``ddr_gb`` before both. None: TorchRec's topology, which is the
        same for all SKUs; overrides are read then too, where TorchRec 1.9.2 reads none.
    cache : PlanCache, optional
        Where solved plans are looked up and kept.
    **planner
        ``formulation``, ``settings``, ``ddr``, ``lift``, ``objective``, ``fusion`` and ``together``
        of :class:`MilpShardingPlanner`. ``timeout_seconds`` of the request is the time limit.

    References
    ----------
    torchrec 1.9.2, ``planner/provider.py``: ``PlannerProvider``, ``DefaultPlannerProvider``.
    """

    def __init__(
        self,
        hardware: Mapping[str, HardwareConfig] | None = None,
        cache: PlanCache | None = None,
        **planner: Any,
    ) -> None:
        self._hardware = hardware
        self._cache = cache
        self._planner = planner

    def build_topology(
        self, sku: str, request: ShardingPlanRequest, ctx: PlannerSessionContext
    ) -> Topology:
        """The topology of a SKU.

        Raises
        ------
        BadInput
            For a SKU that ``hardware`` does not hold.
        """
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

    def build_planner(
        self,
        sku: str,
        *,
        topology: Topology,
        storage_reservation: StorageReservation,
        ctx: PlannerSessionContext,
    ) -> EmbeddingPlannerBase:
        """The planner of the request's variant.

        Raises
        ------
        BadInput
            When the request's configuration steers a part that this planner does not have.
        NotImplementedError
            From TorchRec, for variants that neither builds.
        """
        request, config = ctx.request, ctx.request.planner_config
        if config.planner_variant is not PlannerVariant.LINEAR_PROGRAMMING:
            return super().build_planner(
                sku, topology=topology, storage_reservation=storage_reservation, ctx=ctx
            )
        _refuse(list(self._unread(config, sku, ctx)))
        enumerator = self._build_enumerator(sku, topology, ctx)
        speed_up(enumerator)
        given = {
            "topology": topology,
            "batch_size": request.batch_size,
            "enumerator": enumerator,
            "storage_reservation": storage_reservation,
            "stats": ctx.stats,
            "constraints": request.constraints,
            "debug": config.debug,
            "timeout_seconds": config.timeout_seconds,
            **self._planner,
        }
        if self._cache is None:
            return MilpShardingPlanner(**given)
        return RememberingPlanner(self._cache, sku, ctx, **given)

    def _unread(self, config: PlannerConfig, sku: str, ctx: PlannerSessionContext) -> Iterator[str]:
        default = PlannerConfig()
        for name in _UNREAD:
            if getattr(config, name) != getattr(default, name):
                yield name
        if config.proposer_config is not None and config.proposer_config.kind != "default":
            yield "proposer_config"
        if config.use_hardware_based_bandwidth and ctx.hw_source.get(sku) != "milp_planner":
            yield "use_hardware_based_bandwidth (give the provider hardware)"


def _refuse(unread: list[str]) -> None:
    if unread:
        raise BadInput(
            "planner_variant linear_programming chooses options and ranks itself and does not "
            f"read: {', '.join(unread)}; leave them at their defaults"
        )


def hardware_of(cluster: Cluster) -> HardwareConfig:
    """TorchRec's hardware description of a cluster's ranks.

    Parameters
    ----------
    cluster : Cluster
        Its ranks and machines must be equal. Capacities are taken as they are (reservations are
        TorchRec's to make), DDR in equal shares a rank.

    Returns
    -------
    HardwareConfig
        Bytes, and bytes a millisecond.

    Raises
    ------
    BadInput
        When ranks or machines differ.
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
    """Hardware of one SKU with what the request overrides.

    Raises
    ------
    BadInput
        For a SKU that is not among those known, with the nearest.
    """
    if known is not None and sku not in known:
        raise BadInput(f"SKU {sku!r}: {choice(sku, known)}")
    found = HardwareConfig() if known is None else known[sku]
    if override is None:
        return found
    # TorchRec writes bandwidths of n GB/s as n GiB a thousand milliseconds.
    changes = {
        "hbm_cap_bytes": None if override.hbm_gb is None else int(override.hbm_gb * GIB),
        "ddr_cap_bytes": None if override.ddr_gb is None else int(override.ddr_gb * GIB),
        "intra_host_bw": _bytes_per_millisecond(override.intra_host_bw),
        "inter_host_bw": _bytes_per_millisecond(override.inter_host_bw),
    }
    return replace(found, **{name: v for name, v in changes.items() if v is not None})


def _bytes_per_millisecond(gigabytes: float | None) -> float | None:
    return None if gigabytes is None else gigabytes * GIB / 1000
