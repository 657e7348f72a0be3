"""TorchRec, for real: its model, topology and constraints to an Instance, and plans back.

``MilpShardingPlanner`` replaces TorchRec's ``EmbeddingShardingPlanner``; ``MilpProposer`` and
``MilpPartitioner`` go into it. Everything loads TorchRec on first use and says what to install
when it is absent.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from milp_planner.errors import MissingExtra

if TYPE_CHECKING:
    from milp_planner.integrations.torchrec.failure import NoPlan
    from milp_planner.integrations.torchrec.lift import Lift
    from milp_planner.integrations.torchrec.measure import measured_pooling
    from milp_planner.integrations.torchrec.partitioner import MilpPartitioner
    from milp_planner.integrations.torchrec.planner import MilpShardingPlanner
    from milp_planner.integrations.torchrec.problem import Problem, compile_problem
    from milp_planner.integrations.torchrec.proposer import MilpProposer
    from milp_planner.integrations.torchrec.reference import TorchRecInputs, load_inputs

_HOMES = {
    "Lift": "lift",
    "MilpPartitioner": "partitioner",
    "MilpProposer": "proposer",
    "MilpShardingPlanner": "planner",
    "NoPlan": "failure",
    "Problem": "problem",
    "TorchRecInputs": "reference",
    "compile_problem": "problem",
    "load_inputs": "reference",
    "measured_pooling": "measure",
}

__all__ = [
    "Lift",
    "MilpPartitioner",
    "MilpProposer",
    "MilpShardingPlanner",
    "NoPlan",
    "Problem",
    "TorchRecInputs",
    "compile_problem",
    "load_inputs",
    "measured_pooling",
]

INSTALL = (
    "TorchRec is not installed; run `pip install 'milp-planner[torchrec]'` and then "
    "`pip install --no-deps torchrec==1.9.2`"
)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require_torchrec()
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def require_torchrec() -> None:
    """Import TorchRec.

    Raises
    ------
    MissingExtra
        Saying what to install.
    """
    try:
        import_module("torchrec")
    except ImportError as error:
        missing = error.name or "torchrec"
        raise MissingExtra(f"{INSTALL} ({missing} could not be imported)") from None
