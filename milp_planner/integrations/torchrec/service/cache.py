"""TorchRec's ``PlanCache``: one in a folder, and checks that make plans from any of them safe.

TorchRec keys plans by the request's fingerprint, which knows neither the model nor the sharders, a
reservation object or a home SKU. So a plan is stored with the outcome that proves it, and that
outcome must answer the current question: the same instance, certified to the requested gap, all of
it verified.

References
----------
torchrec 1.9.2, ``planner/dry_run/protocols.py`` (``PlanCache``, ``CacheMetadata``) and
``planner/types.py`` (``ShardingPlanRequest.request_hash``).
"""

from __future__ import annotations

import json
import logging
from base64 import b64decode, b64encode
from binascii import Error
from dataclasses import asdict
from pathlib import Path

from torchrec.distributed.planner.dry_run.protocols import CacheMetadata, PlanCache
from torchrec.distributed.planner.types import ShardingPlanRequest
from torchrec.distributed.types import ShardingPlan

from formulations import Outcome
from formulations.result.outcome import certified_gap
from milp_planner.features.plan.cache import MOST_BYTES, Entries, Question
from milp_planner.inputs.spec import fingerprint_of
from milp_planner.integrations.torchrec.sharding_plan import from_document, to_document

logger = logging.getLogger(__name__)

#: Key of a plan's outcome in its metadata.
OUTCOME = "milp_planner_outcome"
_AUTHOR = "milp-planner"


class FolderPlans:
    """TorchRec's ``PlanCache`` in a folder that several processes may share.

    Parameters
    ----------
    folder : str or Path
    most : int
        Most bytes of all entries; the least recently used are dropped first.
    """

    def __init__(self, folder: str | Path, most: int = MOST_BYTES) -> None:
        self._entries = Entries(folder, ".sharding", most)

    def get(self, request_fingerprint: str) -> tuple[ShardingPlan, CacheMetadata] | None:
        """The plan and metadata last stored under a fingerprint."""
        name = fingerprint_of(request_fingerprint)
        data = self._entries.read(name)
        if data is None:
            return None
        self._entries.used(name)
        document = json.loads(data)
        return from_document(document["plan"]), CacheMetadata(**document["metadata"])

    def put(self, request_fingerprint: str, plan: ShardingPlan, metadata: CacheMetadata) -> None:
        """Store a plan; it replaces any plan under the same fingerprint."""
        ranks = max(1, metadata.world_size)
        document = {"plan": to_document(plan, ranks, ranks, "cuda"), "metadata": asdict(metadata)}
        self._entries.write(fingerprint_of(request_fingerprint), json.dumps(document).encode())


class ByRequest:
    """One request's plan on one SKU in a ``PlanCache`` of TorchRec's protocol.

    Parameters
    ----------
    plans : PlanCache
    request : ShardingPlanRequest
    sku : str
    """

    def __init__(self, plans: PlanCache, request: ShardingPlanRequest, sku: str) -> None:
        self._plans, self._sku, self._ranks = plans, sku, request.world_size
        name = getattr(request, "fingerprint", None)
        self._key = f"{request.request_hash}-{sku}" if name is None else name(sku)

    def get(self, question: Question) -> Outcome | None:
        """The outcome stored with the plan, if it answers the question; else the log says why."""
        found = self._plans.get(self._key)
        if found is None:
            return None
        outcome = _outcome(question, found[1].extra.get(OUTCOME))
        if outcome is None:
            reason = "it is for another model, cluster or version, or has no proof"
        elif not question.answered_by(outcome):
            reason = "it is not certified to the requested gap, or not as it claims"
        else:
            return outcome
        logger.warning("the plan stored for request %s is not used: %s", self._key, reason)
        return None

    def put(self, question: Question, outcome: Outcome, plan: ShardingPlan) -> None:
        """Store a plan that is certified to some gap."""
        if certified_gap(outcome) is None:
            return
        extra = {OUTCOME: b64encode(question.written(outcome)).decode()}
        self._plans.put(self._key, plan, CacheMetadata(_AUTHOR, self._sku, self._ranks, extra))


def _outcome(question: Question, text: str | None) -> Outcome | None:
    """The outcome in a metadata's text, if it is of this question's instance."""
    if text is None:
        return None
    try:
        return question.read(b64decode(text, validate=True))
    except Error:
        return None
