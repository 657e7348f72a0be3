"""Plans kept on disk, and a planner that looks there before it solves.

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
from dataclasses import asdict
from pathlib import Path
from typing import Any

from torchrec.distributed.planner.dry_run.protocols import CacheMetadata, PlanCache
from torchrec.distributed.planner.planners import to_sharding_plan
from torchrec.distributed.planner.types import (
    PlannerSessionContext,
    ShardingOption,
    ShardingPlanRequest,
)
from torchrec.distributed.types import ShardingPlan

from formulations import Instance, Outcome, Status, check
from formulations.errors import InstanceError
from formulations.result.outcome_file import outcome_from_dict, outcome_to_dict
from milp_planner.errors import BadInput
from milp_planner.files import write_json
from milp_planner.integrations.torchrec.planner import MilpShardingPlanner
from milp_planner.integrations.torchrec.problem import Problem
from milp_planner.integrations.torchrec.sharding_plan import from_document, to_document

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
