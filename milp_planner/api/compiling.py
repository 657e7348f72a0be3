"""From inputs to an Instance: the first half of every call."""

from __future__ import annotations

from dataclasses import dataclass

from formulations import Instance, Objective
from milp_planner.api.sources import ClusterSource, ModelSource, to_cluster, to_model
from milp_planner.compile import compile_instance
from milp_planner.errors import BadInput
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.problems import choice
from milp_planner.options import Options, price


@dataclass(frozen=True, eq=False)
class Compiled:
    """Inputs as read, their priced options, and the Instance of them."""

    model: Model
    cluster: Cluster
    options: Options
    instance: Instance


def compile_for(model: ModelSource, cluster: ClusterSource, objective: str) -> Compiled:
    """Read, check, price and compile.

    Raises
    ------
    BadInput
        For malformed inputs, an unknown objective, or a table without any legal option.
    """
    names = [o.value for o in Objective]
    if str(objective) not in names:
        raise BadInput(f"objective {str(objective)!r}: {choice(str(objective), names)}")
    read = to_model(model), to_cluster(cluster)
    options = price(*read)
    return Compiled(*read, options, compile_instance(options, Objective(objective)))
