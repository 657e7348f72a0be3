"""TorchRec's ``PlanCache`` on disk: one JSON file an entry, whole or not there at all."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from torchrec.distributed.planner.dry_run.protocols import CacheMetadata

from milp_planner.errors import BadInput
from milp_planner.files import write_json
from milp_planner.integrations.torchrec.sharding_plan import from_document, to_document

if TYPE_CHECKING:
    from torchrec.distributed.types import ShardingPlan

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
