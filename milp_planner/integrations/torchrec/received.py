"""What rank 0 of a process group plans for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.distributed as dist
from torchrec.distributed.planner.types import PlannerError


def planned_by_rank_0(group: dist.ProcessGroup, plan: Callable[[], Any]) -> Any:
    """What rank 0 of a group plans, on every rank; an error is raised on every rank."""
    if dist.get_rank(group) != 0:
        return _received(group, None)
    try:
        found = plan()
    except PlannerError as error:
        _received(group, error)
        raise
    except Exception as error:
        _received(group, PlannerError(f"planning failed on rank 0: {error}"))
        raise
    return _received(group, found)


def _received(group: dist.ProcessGroup, sent: Any) -> Any:
    """What rank 0 of a group sent: a plan, or an error, which is raised on the other ranks."""
    box = [sent]
    if dist.get_world_size(group) > 1:
        dist.broadcast_object_list(box, src=dist.get_global_rank(group, 0), group=group)
    if sent is None and isinstance(box[0], PlannerError):
        raise box[0]
    return box[0]
