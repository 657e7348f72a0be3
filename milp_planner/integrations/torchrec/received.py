"""What rank 0 of a process group sends to the others."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist
from torchrec.distributed.planner.types import PlannerError


def received(group: dist.ProcessGroup, sent: Any) -> Any:
    """What rank 0 of a group sent: a plan, or an error, which is raised on the other ranks."""
    box = [sent]
    if dist.get_world_size(group) > 1:
        dist.broadcast_object_list(box, src=dist.get_global_rank(group, 0), group=group)
    if sent is None and isinstance(box[0], PlannerError):
        raise box[0]
    return box[0]
