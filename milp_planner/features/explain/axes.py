"""What a curve of capacity runs over: a memory of the cluster, or a field of the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np

from formulations import Instance, Placement
from formulations.instance import Resource
from formulations.instance.facts import total_use
from formulations.result.check import compute_loads
from milp_planner.drawing.units import memory_name
from milp_planner.errors import BadInput
from milp_planner.features.plan.one_ratio import ruled
from milp_planner.features.plan.shortage import memory_for, memory_leaving
from milp_planner.inputs.changes import changed, changed_at_scale
from milp_planner.inputs.constraints import ranks_needed
from milp_planner.inputs.problems import choice
from milp_planner.plans.compile import Compiled, compile_for, memories
from milp_planner.plans.placement import Plan
from milp_planner.request.questions import MACHINES

DEVICES = ("hbm", "ddr", "ssd")
"""Memories whose size the cluster's file states, reservations included."""
LEAST_SHARE, MOST_SHARE, FAR_TIMES = Fraction(1, 3), Fraction(5, 4), 4
"""Default range of sizes: shares of the plan's use at its fullest place; without a plan, a multiple
of the present memory."""
MOST_TIMES = 4
"""Most machines by default, as a multiple of the present number."""
NOW = "now"
"""What stands for a field's own value."""
GRAIN = 2**20
"""Bytes that default sizes are multiples of."""


@dataclass(frozen=True, eq=False)
class Memory:
    """A memory of the plan's cluster; points are bytes more at every place."""

    name: str
    plan: Plan

    @cached_property
    def resources(self) -> list[int]:
        """Indices of the resources that limit it, one for each moment or collective."""
        return memories_of(self.plan.instance)[self.name]

    def first(self, extra: int = 0) -> Resource:
        """The first of them at a point; the others have the same scope and number of places."""
        return self.instance(extra).resources[self.resources[0]]

    @property
    def scope(self) -> str:
        """``rank`` or ``machine``."""
        return self.first().scope.value

    def usable(self, extra: int) -> int:
        """Bytes that tables may use at the smallest place."""
        return int(self.first(extra).capacity.min())

    @cached_property
    def here(self) -> int:
        """The smallest place's memory as the cluster's file states it, reservations included."""
        machines = self.plan.cluster.machines
        if self.name == "hbm":
            return min(rank.hbm_bytes for rank in self.plan.cluster.ranks)
        if self.name == "ddr":
            return min(machine.ddr_bytes for machine in machines)
        if self.name == "ssd":
            return min(machine.ssd.size for machine in machines if machine.ssd is not None)
        return self.usable(0)

    def _left(self, size: int) -> int:
        """What reservations leave of ``size`` bytes at the smallest place."""
        if self.name not in DEVICES:
            return size
        more = {f"cluster.{self.name}": f"{size - self.here:+}"}
        model, cluster = changed(self.plan.model, self.plan.cluster, more)
        if self.name == "hbm":
            return min(cluster.usable_hbm(model))
        return min(cluster.usable_ddr(model) if self.name == "ddr" else cluster.usable_ssd())

    def point(self, size: int) -> int:
        """The point at which the smallest place's memory has this size."""
        return self._left(size) - self._left(self.here)

    def device(self, usable: int | None) -> int | None:
        """Device memory that leaves ``usable`` bytes for tables; None for other resources."""
        if usable is None or self.name not in DEVICES:
            return None
        most = int(self.first().capacity.max())
        return memory_leaving(self.name, usable, most, self.plan.model, self.plan.cluster)

    @lru_cache(maxsize=64)  # noqa: B019 - it lives as long as one question
    def instance(self, extra: int) -> Instance:
        """The plan's Instance with ``extra`` more bytes everywhere (fewer if negative, to 0)."""
        return with_more(self.plan.instance, self.name, extra)

    def need(self, placement: Placement) -> int:
        """The least point at which a plan fits: the bytes that it lacks where it lacks most."""
        use, resources = (
            compute_loads(self.plan.instance, placement).use,
            self.plan.instance.resources,
        )
        least = -int(self.first().capacity.max())
        for index in self.resources:
            lacks = (use[index] - resources[index].capacity)[use[index] > 0]
            least = max(least, int(lacks.max(initial=least)))
        return least

    @property
    def enough(self) -> int:
        """The point where even every table's largest option fits at once."""
        instance, at = self.plan.instance, self.resources
        use = total_use(instance)[:, at]
        largest = np.maximum.reduceat(use, instance.table_options[:-1]).sum(axis=0)
        room = np.array([instance.resources[i].capacity.min() for i in at])
        return max(0, int((largest - room).max()))

    def spread(self, count: int) -> list[int]:
        """``count`` sizes in whole MiB: the present one, and others around the plan's need."""
        here, placement = self.here, self.plan.outcome.placement
        if placement is None:
            more = here * (FAR_TIMES - 1)
            return [here, *(here + more * i // max(1, count - 1) for i in range(1, count))]
        now = self.usable(0)
        held = now + self.need(placement) or now
        span = MOST_SHARE - LEAST_SHARE
        shares = [LEAST_SHARE + span * i / max(1, count - 1) for i in range(count)]
        sizes = [self._size(int(held * share) - now) for share in shares]
        apart = sizes[-1] - sizes[-2] if count > 1 else here
        beside = [size for size in sizes if abs(size - here) > apart / 2]
        return sorted([here, *beside[len(beside) + 1 - count :]]) if count > 1 else [here]

    def sizes(self, _: int) -> tuple[int, int]:
        """Ranks, and samples of each in a step: the plan's."""
        return self.plan.cluster.num_ranks, self.plan.model.workload.batch_per_rank

    def _size(self, extra: int) -> int:
        """The size that leaves ``extra`` more bytes, in whole MiB, at least one."""
        size: int | None = max(0, self._left(self.here) + extra)
        if self.name in DEVICES:
            size = memory_for(self.name, size or 0, self.plan.model, self.plan.cluster)
        return max(1, -(-(size or 0) // GRAIN)) * GRAIN


@dataclass(frozen=True, eq=False)
class Field:
    """A field of the inputs; points are numbers of ``values``, among which is the plan's own."""

    name: str
    plan: Plan
    values: Sequence[int | str]
    scope = ""

    @cached_property
    def here(self) -> int | str:
        """The plan's own value: a number of machines, or "now"."""
        return len(self.plan.cluster.machines) if self.name == MACHINES else NOW

    def usable(self, _: int) -> None:
        """Nothing: it is no memory."""

    @lru_cache(maxsize=64)  # noqa: B019 - it lives as long as one question
    def compiled(self, point: int) -> Compiled:
        """The changed inputs, priced; the same global batch on another number of ranks."""
        plan, changes = self.plan, {self.name: self.values[point]}
        inputs = changed_at_scale(plan.model, plan.cluster, changes)
        return compile_for(*inputs, plan.instance.objective.value)

    def instance(self, point: int) -> Instance:
        """The Instance at a point."""
        own = self.values[point] == self.here
        return self.plan.instance if own else ruled(self.compiled(point))

    def sizes(self, point: int) -> tuple[int, int]:
        """Ranks, and samples of each in a step."""
        of = self.plan if self.values[point] == self.here else self.compiled(point)
        return of.cluster.num_ranks, of.model.workload.batch_per_rank


def memories_of(instance: Instance) -> dict[str, list[int]]:
    """Indices of the resources of each memory: ``hbm@MOMENT`` and ``hbm:COLLECTIVE`` limit the HBM
    at a moment of a step, or in a collective, and change together."""
    found: dict[str, list[int]] = {}
    for index, resource in memories(instance):
        found.setdefault(memory_name(resource.name), []).append(index)
    return found


def with_more(instance: Instance, memory: str, extra: int) -> Instance:
    """The instance with ``extra`` more bytes at every place of a memory, at least 0."""
    resources = list(instance.resources)
    for index in memories_of(instance)[memory]:
        capacity = np.maximum(0, resources[index].capacity + extra)
        resources[index] = replace(resources[index], capacity=capacity)
    return replace(instance, resources=tuple(resources))


def values_of(plan: Plan, over: str, budgets: Sequence[int | str] | int) -> Sequence[int | str]:
    """Values of a field to try, the plan's own among them; BadInput if there is no choice."""
    if over != MACHINES:
        if isinstance(budgets, int):
            known = [*memories_of(plan.instance), MACHINES]
            about = f"{choice(over, known)}, or the path of a field with its --budgets"
            raise BadInput(f"frontier over {over!r}: {about}")
        for value in budgets:  # a mistake is told before any solve
            changed(plan.model, plan.cluster, {over: value})
        return [NOW, *budgets]
    least, now = max(1, fewest_possible(plan, "frontier over machines")), len(plan.cluster.machines)
    if not isinstance(budgets, int):
        return sorted({now, *(int(count) for count in budgets if int(count) >= least)})
    many = {2**i * part // 2 for i in range(1, 16) for part in (2, 3)} | {1, now}
    able = [count for count in many if least <= count <= MOST_TIMES * now]
    return sorted(sorted(able, key=lambda count: abs(Fraction(count, now) - 1))[:budgets])


def fewest_possible(plan: Plan, asked: str) -> int:
    """Machines that hold every rank named by a constraint; BadInput if there is no choice."""
    if (why := several_machines(plan)) is not None:
        raise BadInput(f"{asked}: {why}")
    return -(-ranks_needed(plan.model) // len(plan.cluster.machines[0].ranks))


def several_machines(plan: Plan) -> str | None:
    """Why a cluster cannot have another number of machines; None if it can."""
    cluster, links = plan.cluster, plan.cluster.interconnect
    if len(set(cluster.machines)) > 1:
        return f"those of {cluster.name!r} are not alike"
    if links is None or links.inter_machine is None:
        return f"{cluster.name!r} describes no link between machines (interconnect.inter_machine)"
    if cluster.replicas > 1:
        return (
            f"{cluster.name} is one of {cluster.replicas} sharding groups; allowed: a cluster "
            "without two_d"
        )
    return None
