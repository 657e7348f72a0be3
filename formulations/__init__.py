"""The mathematics of placing tables: one Instance, many ways to solve it, one check.

Nothing here knows what an embedding is. An :class:`Instance` lists tables, the options of each,
what every option uses and costs and where its shards may sit; a formulation returns an
:class:`Outcome`; :func:`check` judges it without any solver.
"""

from formulations.errors import InstanceError, InternalError, UnsupportedInstance
from formulations.instance import Instance, Objective, Resource, Scope, Where
from formulations.instance.build import Block, InstanceBuilder, Shard
from formulations.instance.file import read_instance, write_instance
from formulations.result.check import Verdict, check
from formulations.result.outcome import BoundSource, Outcome, Status, StoppedBy
from formulations.result.placement import Placement
from formulations.settings import Settings
from formulations.solve import solve

__all__ = [
    "Block",
    "BoundSource",
    "Instance",
    "InstanceBuilder",
    "InstanceError",
    "InternalError",
    "Objective",
    "Outcome",
    "Placement",
    "Resource",
    "Scope",
    "Settings",
    "Shard",
    "Status",
    "StoppedBy",
    "UnsupportedInstance",
    "Verdict",
    "Where",
    "check",
    "read_instance",
    "solve",
    "write_instance",
]
