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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torchrec.distributed.planner.dry_run.protocols import CacheMetadata, PlanCache
from torchrec.distributed.planner.planners import to_sharding_plan
from torchrec.distributed.planner.types import (
    PlannerSessionContext,
    ShardingOption,
    ShardingPlanRequest,
    Topology,
)
from torchrec.distributed.types import ShardingPlan

from formulations import Instance, Outcome, Settings, Status, check
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


@dataclass(frozen=True)
class Memory:
    """A plan cache, and what it is asked for.

    Attributes
    ----------
    cache : PlanCache
    sku : str
    ctx : PlannerSessionContext
        Gets ``cache_hit`` of the SKU.
    """

    cache: PlanCache
    sku: str
    ctx: PlannerSessionContext

    def key(self, instance: Instance) -> str:
        """The request's hash for the SKU, and the Instance's."""
        return f"{request_fingerprint(self.ctx.request, self.sku)}-{instance.fingerprint[:32]}"

    def recall(self, instance: Instance, settings: Settings) -> Outcome | None:
        """A stored outcome that is as good as solving now could make it.

        It must pass the solver-free check on this very Instance, and be proved optimal or have
        had at least the time that is allowed now.
        """
        found = self.cache.get(self.key(instance))
        outcome = None if found is None else _outcome(instance, found[1])
        good = outcome is not None and _good_enough(instance, outcome, settings)
        self.ctx.cache_hit[self.sku] = good
        return outcome if good else None

    def keep(self, problem: Problem, outcome: Outcome, topology: Topology) -> None:
        """Store an outcome with its plan; one without a plan is not stored."""
        if outcome.placement is None:
            return
        plan = to_sharding_plan(problem.apply(outcome.placement), topology)
        text = json.dumps(outcome_to_dict(problem.instance, outcome))
        metadata = CacheMetadata(
            created_by="milp-planner",
            sku=self.sku,
            world_size=problem.instance.num_ranks,
            extra={
                "outcome": text,
                "local_world_size": str(topology.local_world_size),
                "compute_device": topology.compute_device,
            },
        )
        self.cache.put(self.key(problem.instance), plan, metadata)


class RememberingPlanner(MilpShardingPlanner):
    """:class:`MilpShardingPlanner` with a memory.

    Parameters
    ----------
    memory : Memory
    **given
        As there.
    """

    def __init__(self, memory: Memory, **given: Any) -> None:
        super().__init__(**given)
        self._memory = memory

    def _solved(self, problem: Problem) -> list[ShardingOption]:
        recalled = self._memory.recall(problem.instance, self._settings)
        if recalled is not None and recalled.placement is not None:
            self.outcome = recalled
            return problem.apply(recalled.placement)
        options = super()._solved(problem)
        if self.outcome is not None:
            self._memory.keep(problem, self.outcome, self._topology)
        return options


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


def _good_enough(instance: Instance, outcome: Outcome, settings: Settings) -> bool:
    if outcome.placement is None:
        return False
    verdict = check(instance, outcome.placement)
    if not verdict.feasible or verdict.objectives[instance.objective.value] != outcome.objective:
        return False
    if outcome.status == Status.OPTIMAL:
        return True
    had, now = outcome.settings.get("time_limit"), settings.time_limit
    return now is not None and (had is None or float(str(had)) >= now)
