"""A comparison as rows of figures, the same for terminal and JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from milp_planner.api.comparing import Comparison, Entry


@dataclass(frozen=True)
class ComparisonRow:
    """One formulation, asked for one objective; None where there is no plan.

    Attributes
    ----------
    label, asked, status : str
    feasible : bool or None
        By the solver-free check on the Instance.
    objectives : dict
        Its plan under all three.
    gap : float or None
        To the best bound of any formulation.
    bound : int or None
        Its own.
    seconds : float or None
    note : str
    """

    label: str
    asked: str
    status: str
    feasible: bool | None
    objectives: dict[str, int]
    gap: float | None
    bound: int | None
    seconds: float | None
    note: str


@dataclass(frozen=True)
class ComparisonInfo:
    """All rows of a comparison.

    Attributes
    ----------
    rows : tuple of ComparisonRow
    bounds : dict of objective to {"bound", "by"} or None
    fingerprints : dict of objective to str
        Of the Instances compared on.
    time_unit : str
    """

    rows: tuple[ComparisonRow, ...]
    bounds: dict[str, dict[str, Any] | None]
    fingerprints: dict[str, str]
    time_unit: str

    def best(self, asked: str) -> int | None:
        """The least objective of any feasible plan in one section."""
        values = [r.objectives[asked] for r in self.rows if r.asked == asked and r.feasible]
        return min(values, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def comparison_of(comparison: Comparison) -> ComparisonInfo:
    """Figures of a comparison."""
    first = next(iter(comparison.instances.values()))
    return ComparisonInfo(
        rows=tuple(_row(comparison, entry) for entry in comparison.entries),
        bounds={
            objective: None if best is None else {"bound": best[0], "by": best[1]}
            for objective, best in comparison.bounds.items()
        },
        fingerprints={o: i.fingerprint for o, i in comparison.instances.items()},
        time_unit=first.time_unit,
    )


def _row(comparison: Comparison, entry: Entry) -> ComparisonRow:
    outcome = entry.outcome
    return ComparisonRow(
        label=entry.label,
        asked=entry.asked,
        status=_status(entry),
        feasible=entry.feasible,
        objectives=entry.objectives,
        gap=comparison.gap(entry),
        bound=None if outcome is None else outcome.bound,
        seconds=entry.seconds,
        note=entry.note,
    )


def _status(entry: Entry) -> str:
    """The outcome's status; for a plan the check rejects, that word instead."""
    if entry.feasible is False:
        return "breaks"
    return "not covered" if entry.outcome is None else entry.outcome.status.value
