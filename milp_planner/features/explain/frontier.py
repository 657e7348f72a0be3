"""The objective over one capacity: a memory of the cluster, its machines, or a field of the inputs.

Two questions share the curve: what other amounts would cost (:func:`frontier`), and the least that
reaches a target (:func:`least_of`). Both start from the plan. Plans for less memory fit more, and
multipliers prove a bound at every capacity (docs/proof.md), so these points help each other;
machines and other fields make another instance at every point, where nothing carries over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from formulations import Outcome, Placement, reduce
from formulations.capacity.budget import Budget
from formulations.capacity.curve import Curve
from formulations.capacity.proofs import Proofs, usable_certificate
from formulations.evidence.verify import holds
from formulations.result.outcome import certified_gap, standing
from milp_planner.features.explain.axes import (
    GRAIN,
    Field,
    Memory,
    fewest_possible,
    memories_of,
    values_of,
)
from milp_planner.files import Facts
from milp_planner.plans.placement import Plan
from milp_planner.request.questions import ENOUGH_GAP, MACHINES, MOST_MACHINES

STEP_SECONDS = 2.0
"""Least time limit for a point's solve, in seconds, however quickly the plan was found."""
SHARE = 0.4
"""Share of the time left for a point of a bisection."""


@dataclass(frozen=True)
class Point:
    """One amount and the best plan within it."""

    budget: int | str
    """Bytes of the smallest place, reservations included; a number of machines; or the value of a
    field, as it was given."""
    usable: int | None
    """Bytes of it that tables may use; None where it is no memory."""
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
    ranks: int
    batch: int
    """Number of ranks, and samples that each processes in a step."""

    def samples_a_second(self, unit: str) -> float | None:
        """Samples of all ranks over the objective, if that is a time (in picoseconds)."""
        if not self.objective or unit != "ps":
            return None
        return self.ranks * self.batch / (self.objective * 1e-12)


@dataclass(frozen=True)
class Least(Facts):
    """The least amount that reaches a target, with everything else unchanged."""

    target: int | None
    """Objective to reach; None: any plan at all."""
    least: int | None
    """An amount that is known to suffice, of what tables may use or of machines; None: none was
    found."""
    too_small: int | None
    """The largest amount below it that is proved too small; None: none was."""
    memory: int | None
    """Device memory, reservations included, that leaves ``least`` for tables."""
    impossible: bool
    """Whether it is proved that no amount up to ``searched`` reaches the target."""
    searched: int
    """The largest amount tried."""

    @property
    def proved(self) -> bool:
        """Whether one less is proved not to suffice."""
        if self.impossible or self.least == 0:
            return True
        return self.least is not None and self.too_small == self.least - 1


@dataclass(frozen=True)
class FrontierInfo(Facts):
    """The objective against one capacity."""

    over: str
    """A memory such as ``hbm``, ``machines``, or the path of a field."""
    scope: str
    """The place whose memory it is, such as ``rank``; empty for anything else."""
    objective_kind: str
    time_unit: str
    here: int | str
    """The plan's own amount."""
    now: int | None
    """The plan's objective."""
    points: tuple[Point, ...]
    """Of a memory or machines, ascending."""
    slope: float | None = None
    """Change of the certified bound per byte more at every place, near the plan; None without a
    certificate. A relaxation's price, not a promise."""
    least: Least | None = None
    """The answer, where the least amount was asked for; the points are those that were tried."""

    @property
    def memory(self) -> bool:
        """Whether a larger amount never costs more, so that points bound the curve between them."""
        return bool(self.scope)


def frontier(
    plan: Plan, over: str, budgets: Sequence[int | str] | int, budget: Budget,
    enough: float = ENOUGH_GAP,
) -> tuple[FrontierInfo, Placement | None]:  # fmt: skip
    """The objective at several amounts, and a plan found on the way that beats the present one.

    Parameters
    ----------
    plan : Plan
        Where the search starts; its own amount is always a point.
    over : str
        A memory of the cluster (``hbm`` of every rank, ``ddr`` of every machine, …, ``stash``: the
        most bytes that a rank copies to host memory in a step), ``machines``, or the path of a
        field (:mod:`milp_planner.inputs.changes`).
    budgets : sequence, or int
        Bytes of the smallest place, numbers of machines, or values of the field; an int is the
        number of points, spread around the present amount.
    budget : Budget
    enough : float
        Certified gap at which a point is settled.

    Raises
    ------
    BadInput
        For an unknown kind, machines that are not alike, or a field without values.
    """
    given = plan.outcome.settings.get("time_limit")
    limit = float(given) if isinstance(given, int | float) else 0.0
    longest = max(STEP_SECONDS, plan.outcome.seconds, limit)  # no point gets more than the plan had
    limited = budget.no_longer_than(longest).certifying(enough)
    if over in memories_of(plan.instance):
        return _over_memory(Memory(over, plan), budgets, limited, enough)
    axis = Field(over, plan, values_of(plan, over, budgets))
    return _info(axis, all_tried(axis, limited, enough)), None


def _over_memory(
    axis: Memory, budgets: Sequence[int | str] | int, budget: Budget, enough: float
) -> tuple[FrontierInfo, Placement | None]:
    now = axis.plan.outcome
    given = axis.spread(budgets) if isinstance(budgets, int) else [int(size) for size in budgets]
    at = {axis.point(size): size for size in given} | {0: axis.here}
    proofs = Proofs(axis.instance, at)
    curve = Curve(axis.instance, axis.need, budget, proofs)
    curve.take(0, now)
    answers = curve.sweep(sorted(at), enough)
    info = replace(_info(axis, _points(axis, at, curve, proofs)), slope=_slope(axis))
    best = answers[0].objective
    better = best is not None and now.objective is not None and best < now.to_beat
    return info, answers[0].placement if better else None


def _slope(axis: Memory) -> float | None:
    instance = axis.plan.instance
    names = [instance.resources[i].name for i in axis.resources]
    known = usable_certificate(axis.plan.outcome.certificate)
    return None if known is None else reduce.slope(instance, known, names)


def _points(axis: Memory, at: Mapping[int, int], curve: Curve, proofs: Proofs) -> list[Point]:
    """The points of a memory, ascending; ``at`` has the size of each."""
    answers = {extra: curve.at(extra) for extra in sorted(at)}
    return [
        _point(axis, extra, at[extra], proofs.outcome(extra, answer), answer.seconds)
        for extra, answer in answers.items()
    ]


def _point(
    axis: Memory | Field, at: int, amount: int | str, outcome: Outcome, seconds: float | None
) -> Point:
    return Point(
        amount, axis.usable(at), outcome.status.value, standing(outcome), outcome.objective,
        outcome.certified_bound, certified_gap(outcome), seconds,
        holds(axis.instance(at), outcome), *axis.sizes(at),
    )  # fmt: skip


def _info(
    axis: Memory | Field, points: Sequence[Point], least: Least | None = None
) -> FrontierInfo:
    instance = axis.plan.instance
    return FrontierInfo(
        axis.name, axis.scope, instance.objective.value, instance.time_unit, axis.here,
        axis.plan.outcome.objective, tuple(points), least=least,
    )  # fmt: skip


def all_tried(axis: Field, budget: Budget, enough: float) -> list[Point]:
    """Each value solved on its own; the plan's needs no solve where it is settled."""
    curve, gap = Curve(axis.instance, None, budget), certified_gap(axis.plan.outcome)
    settled, count = gap is not None and gap <= enough, len(axis.values)
    return [_tried(axis, curve, at, settled, 1 / (count - at)) for at in range(count)]


def _tried(axis: Field, curve: Curve, at: int, settled: bool, share: float) -> Point:
    """A point solved on its own, unless it is the plan's and settled, or no time was left."""
    outcome, seconds = axis.plan.outcome, None
    own = axis.values[at] == axis.here
    if not (own and settled):
        seconds = curve.solve(at, share).seconds
        if not own or curve.outcomes[at].placement is not None:
            outcome = curve.outcomes[at]
    return _point(axis, at, axis.values[at], outcome, seconds)


def least_of(
    plan: Plan, over: str, budget: Budget, target: int | None = None,
    most: int = MOST_MACHINES, grain: int = GRAIN,
) -> FrontierInfo:  # fmt: skip
    """The least amount of a memory, or the fewest machines, that reach a target.

    Memory is bisected to ``grain`` bytes from what the plan itself needs, if it reaches the target,
    or else from where every table's largest option fits at once; every plan found lowers the upper
    end to its use at the fullest place. Machines are tried one more at a time, up to ``most``, as
    more of them need not mean a shorter step.

    Parameters
    ----------
    plan, over, budget
        As in :func:`frontier`, without fields.
    target : int, optional
        Objective to reach; None: any plan.
    """
    deciding = budget.certifying().deciding(target)
    if over == MACHINES:
        return _fewest_machines(plan, deciding, target, most)
    axis = Memory(over, plan)
    proofs = Proofs(axis.instance, [0])
    curve = Curve(axis.instance, axis.need, deciding, proofs)
    curve.take(0, plan.outcome)
    low, high = -axis.usable(0) - 1, axis.enough
    top = curve.at(high)
    if top.reaches(target) is None:
        top = curve.solve(high, SHARE)
    tried, least, small = set(curve.outcomes), None, None
    if top.reaches(target) and top.placement is not None:
        start = min(high, axis.need(top.placement))
        at, refuted = curve.least(low, start, target, share=SHARE, grain=grain)
        proofs.add(at)
        tried |= {at, *curve.outcomes}
        least, small = axis.usable(at), axis.usable(refuted) if refuted > low else None
    impossible, most = top.reaches(target) is False, axis.usable(high)
    found = Least(
        target, least, most if impossible else small, axis.device(least), impossible, most
    )
    sizes = {at: axis.device(axis.usable(at)) or axis.usable(at) for at in tried}
    return _info(axis, _points(axis, sizes, curve, proofs), found)


def _fewest_machines(plan: Plan, budget: Budget, target: int | None, most: int) -> FrontierInfo:
    """Every smaller number must be refuted for the first that reaches the target to be proved."""
    first, points = fewest_possible(plan, "fewest machines"), list[Point]()
    counts = range(first, max(first, most) + 1)
    axis = Field(MACHINES, plan, counts)
    curve = Curve(axis.instance, None, budget)
    if (now := len(plan.cluster.machines)) in counts:
        curve.take(counts.index(now), plan.outcome)
    fewest, small = None, first - 1
    for at, count in enumerate(counts):
        settled = curve.at(at).reaches(target) is not None
        points.append(_tried(axis, curve, at, settled, 2 / (len(counts) - at + 1)))
        reached = curve.at(at).reaches(target)
        small += reached is False and small == count - 1
        fewest = count if reached else None
        if reached or budget.over():
            break
    return _info(axis, points, Least(target, fewest, small, None, False, count))
