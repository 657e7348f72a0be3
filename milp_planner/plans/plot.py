"""A plan as a figure: the time of every rank by phase, and how full its memories are."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from formulations.instance import Scope
from milp_planner.drawing.units import memory_name
from milp_planner.errors import BadInput

if TYPE_CHECKING:
    from milp_planner.plans.placement import Plan


def draw_plan(plan: Plan) -> Any:
    """Two panels over the ranks: milliseconds stacked by phase, memory in percent.

    Parameters
    ----------
    plan : Plan

    Returns
    -------
    matplotlib.figure.Figure
        It shows itself in a notebook; ``savefig`` writes it.

    Raises
    ------
    ImportError
        Without matplotlib, saying what to install.
    BadInput
        For a plan that places nothing.
    """
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise ImportError("plot() needs matplotlib: pip install 'milp-planner[plot]'") from None

    class Shown(Figure):
        def _repr_png_(self) -> bytes:
            buffer = BytesIO()
            self.savefig(buffer, format="png")
            return buffer.getvalue()

    verdict, instance = plan.verdict, plan.instance
    if verdict is None or verdict.loads is None:
        raise BadInput("plot: the plan places nothing")
    figure = Shown(figsize=(9, 5), layout="constrained")
    times, memory = figure.subplots(2, 1, sharex=True)
    ranks = np.arange(instance.num_ranks)
    below = np.zeros(len(ranks))
    for phase, name in enumerate(instance.phases):
        height = verdict.loads.cost[:, phase] / 1e9
        times.bar(ranks, height, bottom=below, width=0.9, label=name)
        below += height
    times.set_ylabel("ms")
    times.set_title(f"{plan.model.name} on {plan.cluster.name}: time of every rank", loc="left")
    for resource, use in zip(instance.resources, verdict.loads.use, strict=True):
        share = 100 * use / np.maximum(1, resource.capacity)
        if resource.scope == Scope.MACHINE:
            share = share[instance.machine_of]
        if resource.scope != Scope.CLUSTER:
            label = f"{memory_name(resource.name).upper()} of the {resource.scope.value}"
            memory.plot(ranks, share, ".-", drawstyle="steps-mid", label=label)
    memory.set(ylabel="% full", xlabel="rank", ylim=(0, 105))
    memory.xaxis.get_major_locator().set_params(integer=True)
    for axis in (times, memory):
        axis.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return figure
