"""The Lagrangian certificate: multipliers from which anyone re-derives a bound in integers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Certificate:
    """Prices at which every plan costs at least the certified bound.

    Attributes
    ----------
    kind : str
        ``bound`` or ``infeasible``.
    denominator : int
        D: all multipliers are integers over it.
    prices : dict of resource name to tuple of int [places]
        λ·D ≥ 0 for every place of every resource.
    weights : tuple of tuple of int
        w·D: one row [ranks] for ``busiest_rank`` (Σ = D); one row a phase for ``step_time``
        (each Σ = D); empty for ``total`` and for ``infeasible``.
    cutoff : int or None
        Objective of a checked plan: options whose own cost alone exceeds it were dropped first.
    """

    kind: str
    denominator: int
    prices: dict[str, tuple[int, ...]]
    weights: tuple[tuple[int, ...], ...] = ()
    cutoff: int | None = None
