"""The smallest cluster that reaches a target: fewest machines, or least memory of one tier."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from formulations import Instance
from formulations.capacity.budget import Budget
from formulations.capacity.curve import Curve
from formulations.diagnose.questions import above_first
from milp_planner.features.explain.memory import (
    first_of,
    largest_use,
    names_of,
    peak,
    uniform,
)
from milp_planner.features.plan.remedies import machine_curve
from milp_planner.files import Facts
from milp_planner.inputs import Cluster, Model
from milp_planner.inputs.constraints import ranks_needed


@dataclass(frozen=True)
class LeastInfo:
    """The least uniform capacity of one tier that reaches a target, with the others unchanged."""

    tier: str
    scope: str
    objective_kind: str
    time_unit: str
    target: int | None
    """Objective to reach; None: any plan at all."""
    least: int | None
    """A capacity per place that is known to suffice; None: none was found."""
    too_small: int | None
    """The largest capacity proved too small; None: none was."""
    objective: int | None
    """Objective of the plan at ``least``."""
    impossible: bool
    """Whether it is proved that no capacity up to ``searched`` reaches the target."""
    searched: int
    """The largest capacity tried."""
    memory: int | None = None
    """Device memory, reservations included, that leaves ``least`` for tables."""

    @property
    def proved(self) -> bool:
        """Whether one byte less is proved not to suffice."""
        if self.impossible or self.least == 0:
            return True
        return self.least is not None and self.too_small == self.least - 1

    def to_dict(self) -> dict[str, Any]:
        """Plain values, with ``proved``."""
        return asdict(self) | {"proved": self.proved}


@dataclass(frozen=True)
class MachineTry:
    """One number of machines, and whether it reaches the target."""

    machines: int
    status: str
    """Status of the solve."""
    objective: int | None
    bound: int | None
    reaches: bool | None
    """None: neither proved nor refuted within the time limit."""


@dataclass(frozen=True)
class MachinesInfo(Facts):
    """The fewest machines of one kind that reach a target."""

    objective_kind: str
    time_unit: str
    target: int | None
    fewest: int | None
    """None: no number tried reaches the target."""
    proved: bool
    """Whether every smaller number (or, without ``fewest``, every number tried) was refuted."""
    tries: tuple[MachineTry, ...]
    """Ascending, up to the first that reaches the target. More machines need not mean a shorter
    step, so a larger number may miss it again."""


def least_memory(
    instance: Instance,
    tier: str,
    budget: Budget,
    target: int | None = None,
    grain: int = 1,
) -> LeastInfo:
    """Bisect, to ``grain`` bytes, for the least uniform capacity that reaches the target.

    Every plan found lowers the upper end to its use at the fullest place, so few solves suffice.
    The largest capacity tried has room for every table's largest option at once.
    """
    curve = Curve(
        lambda capacity: uniform(instance, tier, capacity),
        lambda plan: peak(instance, plan, tier),
        budget,
    )
    searched = _enough(instance, tier)
    most = curve.solve(searched, 0.4)
    least = too_small = None
    if most.reaches(target) and most.placement is not None:
        needs = min(searched, peak(instance, most.placement, tier))
        least, low = curve.least(-1, needs, target, share=0.4, grain=grain, past_open=False)
        too_small = None if low < 0 else low
    return LeastInfo(
        tier=tier,
        scope=first_of(instance, tier).scope.value,
        objective_kind=instance.objective.value,
        time_unit=instance.time_unit,
        target=target,
        least=least,
        too_small=searched if most.reaches(target) is False else too_small,
        objective=None if least is None else curve.at(least).objective,
        impossible=most.reaches(target) is False,
        searched=searched,
    )


def fewest_machines(
    model: Model,
    cluster: Cluster,
    objective: str,
    budget: Budget,
    target: int | None = None,
    most: int = 16,
) -> MachinesInfo:
    """Try 1, 2, 3, … machines of the cluster's kind until the target (picoseconds) is reached.

    All machines must be alike. The count starts at the machines that hold every rank named in a
    constraint, and ends at ``most`` unless the start is larger. BadInput when two machines are
    needed and the cluster describes no link between them.
    """
    curve = machine_curve(model, cluster, objective, budget)
    tries: list[MachineTry] = []
    # with fewer machines, a rank that a constraint names would not exist
    least = -(-ranks_needed(model) // len(cluster.machines[0].ranks))
    for count in range(least, max(least, most) + 1):
        answer = curve.solve(count, 2 / (most - count + 2))
        tries.append(
            MachineTry(count, answer.status, answer.objective, answer.bound, answer.reaches(target))
        )
        if tries[-1].reaches or budget.over():
            break
    fewest = tries[-1].machines if tries[-1].reaches else None
    before = tries if fewest is None else tries[:-1]
    return MachinesInfo(
        objective_kind=objective,
        time_unit="ps",
        target=target,
        fewest=fewest,
        proved=all(t.reaches is False for t in before),
        tries=tuple(tries),
    )


def _enough(instance: Instance, tier: str) -> int:
    """Capacity per place that suffices even if every table takes its largest option there."""
    above = [*above_first(instance, names_of(instance, tier)).values()]
    enough = int((largest_use(instance, tier) - above).max())
    return max(enough, int(first_of(instance, tier).capacity.max()))
