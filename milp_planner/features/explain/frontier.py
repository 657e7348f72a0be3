"""The frontier: the objective over a budget, each point between its plan and a certified bound.

The budget is the HBM or the stash of every rank, the DDR of every machine, or the number of
machines. The points
of a memory budget help each other: a plan for less memory also fits more, and multipliers prove a
bound at every capacity (docs/proof.md), so a certificate found at one point is used at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from formulations import Instance, Outcome
from formulations.capacity.budget import Budget
from formulations.capacity.proofs import Proofs
from formulations.evidence.verify import holds
from formulations.result.outcome import certified_gap, standing
from milp_planner.errors import BadInput
from milp_planner.features.explain.memory import (
    first_of,
    memory_curve,
    peak,
    search_seconds,
    tiers_of,
    with_more,
)
from milp_planner.features.plan.remedies import machine_curve
from milp_planner.features.plan.shortage import memory_for
from milp_planner.files import Facts
from milp_planner.inputs import Cluster
from milp_planner.inputs.constraints import ranks_needed
from milp_planner.inputs.problems import choice
from milp_planner.plans.placement import Plan

MACHINES, STASH = "machines", "stash"
#: Defaults: the number of budgets; their range as shares of the plan's use at its fullest place;
#: without a plan, their upper end as a multiple of the present memory.
POINTS, LEAST_SHARE, MOST_SHARE, FAR_TIMES = 12, Fraction(1, 3), Fraction(5, 4), 4
#: Default upper end, as a multiple of the present number of machines.
MOST_MACHINES = 4
#: Certified gap at which a point counts as settled: smaller ones are invisible in a chart.
ENOUGH_GAP = 0.005


@dataclass(frozen=True)
class Point:
    """One budget and the best plan within it."""

    budget: int
    """Bytes of the smallest place, reservations included; or a number of machines."""
    usable: int | None
    """Bytes of it that tables may use; None for machines."""
    status: str
    standing: str
    """The status in words, including what is certified."""
    objective: int | None
    certified: int | None
    """The best plan's objective, and the lower bound on every plan that its certificate proves."""
    gap: float | None
    """(objective − certified)/objective."""
    seconds: float | None
    """Duration of its own solve; None where its neighbours settled it."""
    verified: bool
    """Whether plan, objective and certificate were re-derived without a solver."""


@dataclass(frozen=True)
class FrontierInfo(Facts):
    """The objective against one budget."""

    over: str
    """A tier such as ``hbm``, or ``machines``."""
    scope: str
    """The place whose memory it is, ``rank`` or ``machine``; ``cluster`` for machines."""
    objective_kind: str
    time_unit: str
    here: int
    """The plan's own budget."""
    now: int | None
    """The plan's objective."""
    points: tuple[Point, ...]
    """Ascending."""

    @property
    def monotone(self) -> bool:
        """Whether a larger budget never costs more, so that points bound the curve between them."""
        return self.over != MACHINES


def frontier(
    plan: Plan, over: str, budgets: Sequence[int] | int, budget: Budget, enough: float = ENOUGH_GAP
) -> FrontierInfo:
    """The objective at several budgets of one kind.

    Parameters
    ----------
    plan : Plan
        Where the search starts; its own budget is always a point.
    over : str
        ``hbm`` (of every rank), ``ddr`` (of every machine), ``machines``, or ``stash``: the most
        bytes that a rank copies to host memory in a step.
    budgets : sequence of int, or int
        Bytes of the smallest place, or numbers of machines; an int is the number of points, spread
        around the present budget.
    budget : Budget
    enough : float
        Certified gap at which a point is settled.

    Raises
    ------
    BadInput
        For an unknown kind, or machines that are not alike.
    """
    known = [name for name in ("hbm", "ddr", STASH) if name in tiers_of(plan.instance)]
    if over not in (*known, MACHINES):
        raise BadInput(f"frontier over {over!r}: {choice(over, (*known, MACHINES))}")
    limited = budget.no_longer_than(search_seconds(plan.outcome)).certifying(enough)
    if over == MACHINES:
        return _over_machines(plan, _counts(plan, budgets), limited, enough)
    return _over_memory(plan, over, budgets, limited, enough)


def _info(plan: Plan, over: str, scope: str, here: int, points: Sequence[Point]) -> FrontierInfo:
    instance = plan.instance
    return FrontierInfo(
        over, scope, instance.objective.value, instance.time_unit, here, plan.outcome.objective,
        tuple(points),
    )  # fmt: skip


def _point(
    at: int, usable: int | None, outcome: Outcome, seconds: float | None, verified: bool
) -> Point:
    """The Point of an outcome."""
    return Point(
        at, usable, outcome.status.value, standing(outcome), outcome.objective,
        outcome.certified_bound, certified_gap(outcome), seconds, verified,
    )  # fmt: skip


def _over_memory(
    plan: Plan, tier: str, budgets: Sequence[int] | int, budget: Budget, enough: float
) -> FrontierInfo:
    here = _device(plan, tier)
    asked = _sizes(plan, tier, budgets) if isinstance(budgets, int) else budgets
    extra = {size: _usable(plan, tier, size) - _usable(plan, tier, here) for size in asked}
    extra[here] = 0
    found_there = certified_grid(
        plan.instance, plan.outcome, tier, sorted({*extra.values()}), budget, enough
    )
    points = []
    for size in sorted(extra):
        there = with_more(plan.instance, tier, extra[size])
        usable = int(first_of(there, tier).capacity.min())
        points.append(_point(size, usable, *found_there[extra[size]]))
    return _info(plan, tier, first_of(plan.instance, tier).scope.value, here, points)


def _device(plan: Plan, tier: str) -> int:
    """Memory of the smallest place, reservations included; bytes that can be stashed."""
    cluster = plan.cluster
    if tier == STASH:
        return int(first_of(plan.instance, tier).capacity.min())
    if tier == "ddr":
        return min(machine.ddr_bytes for machine in cluster.machines)
    return min(rank.hbm_bytes for rank in cluster.ranks)


def _usable(plan: Plan, tier: str, size: int) -> int:
    """What reservations leave of ``size`` bytes at the smallest place."""
    if tier == STASH:
        return size
    cluster = with_memory(plan.cluster, tier, size - _device(plan, tier))
    return min(cluster.usable_ddr(plan.model) if tier == "ddr" else cluster.usable_hbm(plan.model))


def with_memory(cluster: Cluster, tier: str, more: int) -> Cluster:
    """The cluster with ``more`` bytes added to every rank (``hbm``) or machine (``ddr``)."""
    data = cluster.to_dict()
    for machine in data["machines"]:
        for place in [machine] if tier == "ddr" else machine["ranks"]:
            place[tier] = max(0, place[tier] + more)
    return Cluster.from_dict(data, f"cluster {cluster.name} with other memory")


def _sizes(plan: Plan, tier: str, count: int) -> list[int]:
    """``count`` sizes in whole MiB: the present one, and others evenly around the plan's need."""
    here, placement = _device(plan, tier), plan.outcome.placement
    if placement is None:
        more = here * (FAR_TIMES - 1)
        return [here, *(here + more * i // max(1, count - 1) for i in range(1, count))]
    now = int(first_of(plan.instance, tier).capacity.min())
    held = peak(plan.instance, placement, tier) or now
    span = MOST_SHARE - LEAST_SHARE
    shares = [LEAST_SHARE + span * i / max(1, count - 1) for i in range(count)]
    sizes = [_size_for(plan, tier, int(held * share) - now) for share in shares]
    apart = sizes[-1] - sizes[-2] if count > 1 else here
    beside = [size for size in sizes if abs(size - here) > apart / 2]
    return sorted([here, *beside[len(beside) + 1 - count :]]) if count > 1 else [here]


def _size_for(plan: Plan, tier: str, extra: int) -> int:
    """Device memory that leaves tables ``extra`` more bytes, in whole MiB, at least one."""
    usable = max(0, _usable(plan, tier, _device(plan, tier)) + extra)
    size = usable if tier == STASH else memory_for(tier, usable, plan.model, plan.cluster)
    return max(1, -(-(size or 0) // 2**20)) * 2**20


def certified_grid(
    instance: Instance,
    outcome: Outcome,
    tier: str,
    extras: Sequence[int],
    budget: Budget,
    enough: float,
) -> dict[int, tuple[Outcome, float | None, bool]]:
    """The best plan at every capacity, with the certificate of the best bound there.

    Parameters
    ----------
    instance, outcome : Instance, Outcome
        The plan that supplies the first placement and certificate.
    tier : str
    extras : sequence of int
        Ascending: bytes more at every place.
    budget : Budget
        Its solves must certify.
    enough : float
        Certified gap at which a point is settled.

    Returns
    -------
    dict of int to (Outcome, seconds, verified)
        Seconds are None where no solve was needed; ``verified`` means checked without a solver.
    """
    proofs = Proofs({extra: with_more(instance, tier, extra) for extra in extras})
    curve = memory_curve(instance, tier, budget, proofs)
    curve.take_plan(0, outcome.placement, outcome.objective)
    proofs.learn(0, outcome)
    answers = curve.sweep(extras, enough)
    best = {at: proofs.outcome(at, answer) for at, answer in answers.items()}
    return {
        at: (found, answers[at].seconds, holds(proofs.instances[at], found))
        for at, found in best.items()
    }


def _over_machines(
    plan: Plan, counts: Sequence[int], budget: Budget, enough: float
) -> FrontierInfo:
    """Solve each number of machines on its own: plans do not carry over between numbers."""
    now, points, outcome = len(plan.cluster.machines), list[Point](), plan.outcome
    curve = machine_curve(plan.model, plan.cluster, plan.instance.objective.value, budget)
    curve.outcomes[now] = outcome
    curve.take_plan(now, outcome.placement, outcome.objective)
    gap = certified_gap(outcome)
    for done, count in enumerate(counts):
        seconds = None
        if count != now or gap is None or gap > enough:
            seconds = curve.solve(count, 1 / (len(counts) - done)).seconds
        there = plan.instance if count == now else curve.make(count)
        best = curve.outcomes[count]
        if count == now and best.placement is None:
            best = outcome  # no time was left for another
        points.append(_point(count, None, best, seconds, holds(there, best)))
    return _info(plan, MACHINES, "cluster", now, points)


def _counts(plan: Plan, budgets: Sequence[int] | int) -> list[int]:
    """Numbers of machines to try, the present one among them; BadInput if no other is possible."""
    cluster = plan.cluster
    now, links = len(cluster.machines), cluster.interconnect
    if len(set(cluster.machines)) > 1:
        raise BadInput(f"frontier over machines: those of {cluster.name!r} are not alike")
    if links is None or links.inter_machine is None:
        raise BadInput(
            f"frontier over machines: {cluster.name!r} describes no link between machines "
            "(interconnect.inter_machine)"
        )
    least = -(-ranks_needed(plan.model) // len(cluster.machines[0].ranks))
    if not isinstance(budgets, int):
        return sorted({now, *(count for count in budgets if count >= max(1, least))})
    many = sorted({2**i * part // 2 for i in range(1, 16) for part in (2, 3)} | {1, now})
    able = [count for count in many if max(1, least) <= count <= MOST_MACHINES * now]
    nearest = sorted(able, key=lambda count: abs(Fraction(count, now) - 1))[:budgets]
    return sorted(nearest)
