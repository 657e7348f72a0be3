"""TorchRec's ``PlannerError``, with what we proved about the failure.

It says how much memory is missing, tier by tier: sums come from the options themselves; the least
sufficient capacity comes from solving an Instance (:mod:`formulations.diagnose`), with its proved
bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from torchrec.distributed.planner.types import PlannerError, PlannerErrorType

from formulations import Instance, Outcome, Settings, Status
from formulations.capacity.budget import Budget
from formulations.diagnose import Least, least_capacity
from formulations.instance.facts import option_facts
from formulations.result.outcome import standing
from milp_planner.integrations.torchrec.problem import Problem

TIERS = ("hbm", "ddr", "ssd")


@dataclass(frozen=True)
class Shortfall:
    """How much memory one tier is short of."""

    tier: str
    """``hbm``, ``ddr`` or ``ssd``."""
    scope: str
    """``rank`` or ``machine``."""
    capacity: int
    """Bytes in all places together, after reservations."""
    needed: int
    """Bytes that the leanest options of all tables take, over all places together."""
    least: Least | None = None
    """The least uniform capacity at which a plan exists, with the other tiers as they are; None if
    not computed."""

    @property
    def short_by(self) -> int:
        """Bytes missing over all places together (0 if the sum suffices and packing fails)."""
        return max(0, self.needed - self.capacity)

    @property
    def short_per_place(self) -> int | None:
        """Bytes that the smallest place is short of, at least, as proved; None if not known."""
        if self.least is None or self.least.bound is None:
            return None
        return max(0, self.least.bound - min(self.least.capacity))

    @property
    def lacks(self) -> bool:
        """Whether something is known to be missing, in total or at a place."""
        return bool(self.short_by or self.short_per_place)

    def sentence(self) -> str:
        """One line for users: available, needed and missing memory."""
        total = (
            f"{_gib(self.capacity)} in total, the leanest options of all tables take "
            f"{_gib(self.needed)}"
        )
        total += f", short by {_gib(self.short_by)}" if self.short_by else ""
        return f"{self.tier.upper()}: {self._place()}{total}"

    def _place(self) -> str:
        least = self.least
        if least is None:
            return ""
        if least.impossible:
            return f"more of {self.tier.upper()} alone does not help; "
        if least.bound is None:
            return ""
        there = min(least.capacity)
        if least.least is not None and least.least <= there:
            return f"{_gib(there)} on every {self.scope} is enough with the other tiers; "
        need = f"at least {_gib(least.bound)}"
        if least.proved:
            need = _gib(least.bound)
        elif least.least is not None:
            need += f" (at most {_gib(least.least)})"
        return (
            f"{_gib(there)} on the smallest {self.scope}, {need} needed with the other tiers as "
            f"they are, short by {_gib(max(0, least.bound - there))} on a {self.scope}; "
        )


def shortfalls(instance: Instance, settings: Settings | None = None) -> tuple[Shortfall, ...]:
    """Capacity, need and missing bytes of every memory tier.

    The settings' time limit applies to computing least capacities; without settings only sums are
    compared.
    """
    use = option_facts(instance).use
    use[~instance.allowed] = np.iinfo(np.int64).max // max(1, instance.num_tables)
    needed = np.minimum.reduceat(use, instance.table_options[:-1]).sum(axis=0)
    found = [
        Shortfall(r.name, r.scope.value, int(r.capacity.sum()), int(needed[index]))
        for index, r in enumerate(instance.resources)
        if r.name in TIERS
    ]
    if settings is None:
        return tuple(found)
    budget = Budget(settings)
    return tuple(
        replace(tier, least=least_capacity(instance, tier.tier, budget, 1 / (len(found) - index)))
        for index, tier in enumerate(found)
    )


def _gib(amount: int) -> str:
    return f"{amount / 2**30:,.3f} GiB"


class NoPlan(PlannerError):
    """No plan: proved impossible, or not found within the limits.

    Attributes
    ----------
    error_type : PlannerErrorType
        ``INSUFFICIENT_STORAGE`` if it is proved that memory is missing, ``STRICT_CONSTRAINTS`` if
        infeasibility is proved otherwise, ``OTHER`` if nothing was found or proved.
    outcome : Outcome or None
    shortfalls : tuple of Shortfall
        One per memory tier.
    """

    def __init__(
        self,
        message: str,
        error_type: PlannerErrorType = PlannerErrorType.OTHER,
        outcome: Outcome | None = None,
        shortfalls: tuple[Shortfall, ...] = (),
    ) -> None:
        super().__init__(message, error_type)
        self.outcome = outcome
        self.shortfalls = shortfalls


def no_plan(problem: Problem, outcome: Outcome, settings: Settings | None) -> NoPlan:
    """Explain a solve without a plan, tier by tier; ``settings`` as in :func:`shortfalls`."""
    found = shortfalls(problem.instance, settings)
    proved = outcome.status == Status.INFEASIBLE
    if proved:
        head = f"No plan exists for this model on this topology ({standing(outcome)})."
        kind = (
            PlannerErrorType.INSUFFICIENT_STORAGE
            if any(tier.lacks for tier in found)
            else PlannerErrorType.STRICT_CONSTRAINTS
        )
    else:
        head = (
            f"No plan was found within the limits ({outcome.stopped_by.value} after "
            f"{outcome.seconds:.1f} s), but one may exist; allow more time."
        )
        kind = PlannerErrorType.OTHER
    lines = [head, *("  " + shortfall.sentence() for shortfall in found)]
    if outcome.note:
        lines.append(f"  {outcome.note}")
    return NoPlan("\n".join(lines), kind, outcome, found)
