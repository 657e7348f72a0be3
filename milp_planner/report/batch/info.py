"""Everything a batch shows, as one value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Protocol

from milp_planner.report.batch.curves import (
    Bins,
    Cactus,
    Profile,
    bins_of,
    cactus_of,
    profiles_of,
)
from milp_planner.report.batch.rows import Record, Row, contradictions, rows_of

STATUSES = ("optimal", "feasible", "infeasible", "unknown", "not_covered", "failed")


class Judged(Protocol):
    """An assertion after a run."""

    @property
    def name(self) -> str:
        """What it says."""
        ...

    @property
    def holds(self) -> bool:
        """Whether it holds."""
        ...

    @property
    def scenarios(self) -> int:
        """How many scenarios it speaks of."""
        ...

    @property
    def broken(self) -> tuple[str, ...]:
        """One sentence a scenario where it does not hold."""
        ...


@dataclass(frozen=True)
class AssertionInfo:
    """An assertion, whether it holds, and where not."""

    name: str
    holds: bool
    scenarios: int
    broken: tuple[str, ...]


@dataclass(frozen=True)
class SummaryRow:
    """One series under one objective.

    Attributes
    ----------
    series, objective_kind : str
    counts : dict of status to int
    equal : int
        How many plans are as good as the best known of their instance.
    worst : float or None
        Largest (objective − best known)/best known.
    gap : float or None
        Median gap of its plans to the best bound of any formulation.
    seconds : float
        Solving, in sum.
    """

    series: str
    objective_kind: str
    counts: dict[str, int]
    equal: int
    worst: float | None
    gap: float | None
    seconds: float


@dataclass(frozen=True)
class BatchInfo:
    """One batch.

    Attributes
    ----------
    name, description : str
        Of the suite.
    scenarios : int
        Of the suite; ``len(rows)`` of them have a result.
    versions : tuple of str
        Of milp-planner, in the results.
    finished : str
        When the last result was made; empty without one.
    summary : tuple of SummaryRow
    assertions : tuple of AssertionInfo
    contradictions : tuple of str
        Results that cannot all be right.
    profiles : tuple of Profile
    cactus : Cactus
    bins : tuple of Bins
    rows : tuple of Row
    """

    name: str
    description: str
    scenarios: int
    versions: tuple[str, ...]
    finished: str
    summary: tuple[SummaryRow, ...]
    assertions: tuple[AssertionInfo, ...]
    contradictions: tuple[str, ...]
    profiles: tuple[Profile, ...]
    cactus: Cactus
    bins: tuple[Bins, ...]
    rows: tuple[Row, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many scenarios have each status; none that nothing has."""
        every = {s: sum(row.status == s for row in self.rows) for s in STATUSES}
        return {status: count for status, count in every.items() if count}

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "counts": self.counts}


def batch_of(
    name: str,
    description: str,
    scenarios: int,
    records: Sequence[Record],
    judgements: Iterable[Judged] = (),
) -> BatchInfo:
    """The figures of a batch.

    Parameters
    ----------
    name, description
        Of the suite.
    scenarios
        How many the suite has.
    records
        Its results, in the suite's order.
    judgements
        Its assertions.
    """
    rows = rows_of(records)
    return BatchInfo(
        name=name,
        description=description,
        scenarios=scenarios,
        versions=tuple(sorted({r["versions"]["milp-planner"] for r in records})),
        finished=max((r.get("finished", "") for r in records), default=""),
        summary=tuple(_summary(rows)),
        assertions=tuple(
            AssertionInfo(j.name, j.holds, j.scenarios, tuple(j.broken)) for j in judgements
        ),
        contradictions=contradictions(rows),
        profiles=profiles_of(rows),
        cactus=cactus_of(rows),
        bins=bins_of(rows),
        rows=rows,
    )


def _summary(rows: Sequence[Row]) -> Iterable[SummaryRow]:
    for series, kind in dict.fromkeys((row.series, row.objective_kind) for row in rows):
        mine = [row for row in rows if (row.series, row.objective_kind) == (series, kind)]
        above = [row.above_best for row in mine if row.above_best is not None]
        gaps = [row.best_gap for row in mine if row.best_gap is not None]
        yield SummaryRow(
            series=series,
            objective_kind=kind,
            counts={s: sum(row.status == s for row in mine) for s in STATUSES},
            equal=sum(a == 0 for a in above),
            worst=max(above, default=None),
            gap=median(gaps) if gaps else None,
            seconds=sum(row.seconds or 0.0 for row in mine),
        )
