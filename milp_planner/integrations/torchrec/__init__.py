"""The TorchRec library: its model, topology and constraints to an Instance, and plans back.

``MilpShardingPlanner`` replaces TorchRec's ``EmbeddingShardingPlanner``. Importing this loads
TorchRec, or says what to install.
"""

from importlib import import_module

from milp_planner.errors import MissingExtra

try:
    import_module("torchrec")
except ImportError as error:
    raise MissingExtra(
        "TorchRec is not installed; run `pip install 'milp-planner[torchrec]'` and then `pip "
        f"install --no-deps torchrec==1.9.2` ({error.name or 'torchrec'} could not be imported)"
    ) from None

from milp_planner.integrations.torchrec.failure import NoPlan
from milp_planner.integrations.torchrec.lift import Lift
from milp_planner.integrations.torchrec.planner import MilpShardingPlanner
from milp_planner.integrations.torchrec.problem import Problem, compile_problem
from milp_planner.integrations.torchrec.reference import (
    TorchRecInputs,
    load_inputs,
    measured_pooling,
)
from milp_planner.integrations.torchrec.stash import Stash
from milp_planner.integrations.torchrec.two_d import TwoDShardingPlanner

__all__ = [
    "Lift",
    "MilpShardingPlanner",
    "NoPlan",
    "Problem",
    "Stash",
    "TorchRecInputs",
    "TwoDShardingPlanner",
    "compile_problem",
    "load_inputs",
    "measured_pooling",
]
