"""What every part of the conductor shares, beyond what a search shares: prices, and who failed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from formulations.bounds.own import own_cost
from formulations.clock import Clock
from formulations.instance import Instance
from formulations.reduce import bounds_at
from formulations.result.certificate import Certificate
from formulations.result.outcome import BoundSource
from formulations.search import context
from formulations.search.parts import Sizes
from formulations.settings import Settings


class Context(context.Context):
    """The best plan and the best bound so far, safe to share between threads.

    Attributes
    ----------
    failed : bool
        Whether a thread ended in an error.
    certificate : Certificate or None
        Its multipliers price options.
    proof : Certificate or None
        That there is no plan.
    opened : Sizes
        How much neighbourhoods open, from turn to turn.
    walks : int
        Walkers started so far.
    """

    def __init__(
        self, instance: Instance, settings: Settings, clock: Clock, keep: NDArray[np.bool_]
    ) -> None:
        super().__init__(instance, settings, clock, keep)
        self.failed = False
        self.certificate: Certificate | None = None
        self.proof: Certificate | None = None
        self.opened, self.walks = Sizes(), 0
        self._below: tuple[int | None, NDArray[np.bool_]] = (None, keep)

    def left_below(self, value: int) -> NDArray[np.bool_]:
        """Options that a plan cheaper than ``value`` may use: by what they cost alone, and by
        price (reduced-cost fixing, exact)."""
        if self._below[0] != value:
            keep = self.keep & (own_cost(self.instance) < value)
            if self.certificate is not None:
                keep = keep & bounds_at(self.instance, keep, self.certificate).below(value)
            self._below = (value, keep)
        return self._below[1]

    def drop(self) -> None:
        """Keep only options that a better plan may use; none left for a table: it is optimal."""
        if self.objective is None:
            return
        value = self.objective
        keep = self.left_below(value)
        if not np.logical_or.reduceat(keep, self.instance.table_options[:-1]).all():
            self.lift(value, BoundSource("certificate", exact=True))
        else:
            self.keep = keep

    def over(self) -> bool:
        """Whether to stop: failed, proved, out of time or work, or interrupted."""
        return self.failed or super().over()
