"""What a search knows, as one value that is replaced whole.

Every part offers what it finds and reads :attr:`State.known`, a frozen snapshot, so that no part
sees half of a change that another makes at the same time.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from formulations.clock import Clock
from formulations.instance import Instance
from formulations.proof.build import build_rows
from formulations.proof.tree import bare
from formulations.reduce import bounds_at
from formulations.result.certificate import Certificate
from formulations.result.check import check
from formulations.result.outcome import BoundSource
from formulations.result.placement import Placement


@dataclass(frozen=True, eq=False)
class Known:
    """What is known at one moment.

    Attributes
    ----------
    keep : bool array [options]
        Options that a better plan may still use; not to be written to.
    best : Placement or None
        The best plan, checked.
    objective : int or None
        What it costs.
    bound : int or None
        No plan costs less.
    source : BoundSource or None
        Method that proved the bound.
    refuted : BoundSource or None
        Method that proved that there is no plan.
    certificate : Certificate or None
        Its multipliers price options.
    proven : Certificate or None
        The prover's best certificate, accepted by the checker.
    proof : Certificate or None
        Certificate that there is no plan.
    closed : bool
        Whether the outcome is final: plans and bounds of threads still running are ignored.
    """

    keep: NDArray[np.bool_]
    best: Placement | None = None
    objective: int | None = None
    bound: int | None = None
    source: BoundSource | None = None
    refuted: BoundSource | None = None
    certificate: Certificate | None = None
    proven: Certificate | None = None
    proof: Certificate | None = None
    closed: bool = False

    @property
    def proved(self) -> bool:
        """Whether the best plan is known to be optimal, or that there is none."""
        if self.objective is None or self.bound is None:
            return self.refuted is not None
        return self.bound >= self.objective or self.refuted is not None

    def above(self, share: float) -> bool:
        """Whether the best plan may be more than this share above the bound."""
        if self.objective is None or self.bound is None:
            return True
        return self.objective - self.bound > share * abs(self.bound)


class State:
    """The one :class:`Known` of a search; thread-safe.

    Parameters
    ----------
    instance : Instance
    clock : Clock
        Records what improves.
    keep : bool array [options]
        Options that presolve left.

    Attributes
    ----------
    known : Known
        To be read once for everything that must fit together.
    """

    def __init__(self, instance: Instance, clock: Clock, keep: NDArray[np.bool_]) -> None:
        self._instance, self._clock, self._lock = instance, clock, threading.Lock()
        self._below: tuple[int | None, NDArray[np.bool_]] = (None, keep)
        self.known = Known(_frozen(keep))

    def offer(self, placement: Placement, source: str) -> bool:
        """Keep a plan if the check accepts it and it is the best so far; whether it was kept."""
        verdict = check(self._instance, placement)
        if not verdict.feasible:
            return False
        objective = verdict.objectives[self._instance.objective.value]
        with self._lock:
            known = self.known
            if known.closed or (known.objective is not None and objective >= known.objective):
                return False
            self.known = replace(known, best=placement, objective=objective)
            self._clock.record(objective, known.bound, source, placement)
        return True

    def lift(self, bound: int | None, source: BoundSource) -> None:
        """Keep a bound, which must be derived in integers, if it is the best so far."""
        if bound is None:
            return
        with self._lock:
            known = self.known
            if known.closed or (known.bound is not None and bound <= known.bound):
                return
            self.known = replace(known, bound=bound, source=source)
            self._clock.record(known.objective, bound, source.method)

    def price(self, certificate: Certificate) -> None:
        """Price options by the multipliers of a certificate, if none with a higher target does."""
        with self._lock:
            known = self.known.certificate
            if known is None or (certificate.target or 0) > (known.target or 0):
                self.known = replace(self.known, certificate=certificate)

    def prove(self, certificate: Certificate, source: BoundSource) -> None:
        """Keep an accepted certificate, and its bound."""
        with self._lock:
            self.known = replace(self.known, proven=certificate)
        self.lift(certificate.target, source)

    def refute(self, source: BoundSource, proof: Certificate | None = None) -> None:
        """Keep that there is no plan, with its certificate if there is one."""
        with self._lock:
            self.known = replace(self.known, refuted=source, proof=proof or self.known.proof)

    def rule_out(self, keep: NDArray[np.bool_]) -> None:
        """Rule out all options but these."""
        with self._lock:
            self.known = replace(self.known, keep=_frozen(keep & self.known.keep))

    def close(self) -> None:
        """Ignore all later plans and bounds."""
        with self._lock:
            self.known = replace(self.known, closed=True)

    def left_below(self, value: int) -> NDArray[np.bool_]:
        """Options that a plan cheaper than ``value`` may use: their largest shard fits beside the
        least that the other tables put on every rank, in every memory and in that cost (the bare
        rule of docs/proof.md, which every certificate applies too), and exact reduced-cost fixing
        leaves them."""
        (last, keep), known = self._below, self.known
        if last != value:
            keep = bare(build_rows(self._instance), known.keep, value - 1)
            if known.certificate is not None:
                bounds = bounds_at(self._instance, keep, known.certificate)
                keep = keep if bounds is None else keep & bounds.below(value)
            self._below = (value, keep)
        return keep

    def drop(self) -> None:
        """Rule out options that no better plan can use; if a table has none left, the plan is
        optimal."""
        value = self.known.objective
        if value is None:
            return
        keep = self.left_below(value)
        if not np.logical_or.reduceat(keep, self._instance.table_options[:-1]).all():
            self.lift(value, BoundSource("certificate", exact=True))
        else:
            self.rule_out(keep)


def _frozen(keep: NDArray[np.bool_]) -> NDArray[np.bool_]:
    keep = keep.copy()
    keep.setflags(write=False)
    return keep
