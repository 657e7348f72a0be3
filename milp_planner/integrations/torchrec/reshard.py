"""Run the calls of an export ``torchrec-reshard`` on a sharded model."""

from __future__ import annotations

import json
from typing import Any, Protocol

from torchrec.distributed.types import EmbeddingModuleShardingPlan

from milp_planner.errors import BadInput
from milp_planner.integrations.exports.torchrec_reshard import FORMAT
from milp_planner.integrations.torchrec.sharding_plan import sharding

Argument = dict[str, tuple[float, EmbeddingModuleShardingPlan]]


class Reshards(Protocol):
    """TorchRec's ``DistributedModelParallel``."""

    def reshard(self, changed: Argument, sharded_module_fqn: str | None) -> float:
        """Bring tables of one module to new places; returns the volume."""


def calls(document: dict[str, Any] | str) -> list[tuple[str, Argument]]:
    """Path of the module and first argument of each call of ``DMP.reshard``, in order.

    Raises
    ------
    BadInput
        If it is no such document, an entry is incomplete, or tables need a restart: the others
        alone are not the plan that was checked.
    """
    found = json.loads(document) if isinstance(document, str) else document
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise BadInput(f"not a reshard: its format must be {FORMAT!r}")
    return [_call(call) for call in found["calls"]]


def reshard(model: Reshards, document: dict[str, Any] | str) -> float:
    """Run all calls on a model, on every rank at the same step; returns MiB as the export counts
    them, with optimizer state."""
    return sum(model.reshard(argument, path or None) for path, argument in calls(document))


def _call(call: dict[str, Any]) -> tuple[str, Argument]:
    module = EmbeddingModuleShardingPlan()
    for name, entry in call["tables"].items():
        module[name] = sharding(name, entry)
    return call["module"], {call["module"]: (float(call["data_volume_mib"]), module)}
