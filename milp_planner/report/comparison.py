"""A comparison as figures, the same for terminal, JSON and HTML."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from formulations.settings import TracePoint
from milp_planner.api.comparing import Comparison, Entry
from milp_planner.api.plan_files import read_document
from milp_planner.errors import BadInput
from milp_planner.report.batch.curves import Bins, BinsPoint, column_of
from milp_planner.report.units import show_cost, show_gap

FORMAT = "milp-planner-comparison/1"
_HEAD = re.compile(rb'\A\s*\{\s*"format"\s*:\s*"milp-planner-comparison/')


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
    bins : int or None
        HBM bins per device of a DP that was run with several.
    trace : tuple of TracePoint
        What it knew at each moment, the end included.
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
    bins: int | None = None
    trace: tuple[TracePoint, ...] = ()

    def known(self, what: str) -> tuple[tuple[float, int], ...]:
        """(seconds, value) of each better ``objective`` or ``bound``, in time."""
        found: list[tuple[float, int]] = []
        for point in self.trace:
            value = point.objective if what == "objective" else point.bound
            sign = -1 if what == "objective" else 1
            if value is not None and (not found or sign * value > sign * found[-1][1]):
                found.append((point.seconds, value))
        return tuple(found)


@dataclass(frozen=True)
class BoundInfo:
    """The bound that the gaps of one section are to.

    Attributes
    ----------
    bound : int
        The largest of any row.
    by : str
        The method it comes from.
    exact : bool or None
        Whether it was derived in integers, else in floating point; None in files of before.
    certified : int or None
        The largest that a certificate re-derives, at most ``bound``.
    """

    bound: int
    by: str
    exact: bool | None = None
    certified: int | None = None


@dataclass(frozen=True)
class ComparisonInfo:
    """All rows of a comparison.

    Attributes
    ----------
    model, cluster : str
        Names; may be empty.
    rows : tuple of ComparisonRow
    bounds : dict of objective to BoundInfo or None
    fingerprints : dict of objective to str
        Of the Instances compared on.
    time_unit : str
    """

    model: str
    cluster: str
    rows: tuple[ComparisonRow, ...]
    bounds: dict[str, BoundInfo | None]
    fingerprints: dict[str, str]
    time_unit: str

    def best(self, asked: str) -> int | None:
        """The least objective of any feasible plan in one section."""
        values = [r.objectives[asked] for r in self.rows if r.asked == asked and r.feasible]
        return min(values, default=None)

    def above_best(self, row: ComparisonRow) -> float | None:
        """(objective − best)/max(1, |best|) of a feasible row, else None."""
        best, value = self.best(row.asked), row.objectives.get(row.asked)
        if best is None or value is None or not row.feasible:
            return None
        return (value - best) / max(1, abs(best))

    def origin(self, asked: str) -> str:
        """One sentence on the bound that gaps are to."""
        best = self.bounds[asked]
        if best is None:
            return "No bound is proved, so no gap is known."
        how = {True: " in integers", False: " in floating point", None: ""}[best.exact]
        shown = show_cost(best.bound, self.time_unit)
        text = f"Gaps are to the bound {shown}, proved by {best.by}{how}"
        if best.certified == best.bound:
            return f"{text} and certified."
        if best.certified is not None:
            return f"{text}; certified: {show_cost(best.certified, self.time_unit)}."
        return f"{text}."

    def verdict(self, row: ComparisonRow) -> str:
        """One sentence on what the row's formulation is worth here."""
        if row.status in ("breaks", "not covered", "unknown"):
            what = {"breaks": "its plan does not fit", "unknown": "found no plan"}
            return f"{what.get(row.status, 'does not apply')}{f': {row.note}' if row.note else ''}"
        if row.status == "infeasible":
            return "proved that no plan exists"
        if row.gap == 0:
            by = "itself" if row.status == "optimal" else "another's bound"
            return f"no plan is better, proved by {by}"
        above = self.above_best(row)
        beside = "the best plan found" if not above else f"{show_gap(above)} above the best found"
        least = "no bound is known" if row.gap is None else f"gap {show_gap(row.gap)}"
        return f"{beside}, {least}"

    def bins(self, asked: str) -> Bins | None:
        """The DP's bins against its gap; None unless it was run with several."""
        rows = [row for row in self.rows if row.asked == asked and row.bins is not None]
        rows = [row for row in rows if not row.label.count("as planned")]
        numbers = sorted({row.bins for row in rows if row.bins is not None})
        if len(numbers) < 2:
            return None
        groups = [[row for row in rows if row.bins == bins] for bins in numbers]
        return Bins(
            "hbm_bins_per_device",
            asked,
            tuple(
                BinsPoint(row.bins, row.gap, row.label)
                for row in rows
                if row.gap is not None and row.bins is not None
            ),
            tuple(
                column_of(bins, (row.gap for row in group), (row.seconds for row in group))
                for bins, group in zip(numbers, groups, strict=True)
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values; :func:`read_comparison` reads them back as equal."""
        return {"format": FORMAT, **asdict(self)}


def comparison_of(comparison: Comparison) -> ComparisonInfo:
    """Figures of a comparison."""
    first = next(iter(comparison.instances.values()))
    return ComparisonInfo(
        model=comparison.model,
        cluster=comparison.cluster,
        rows=tuple(_row(comparison, entry) for entry in comparison.entries),
        bounds={
            objective: None
            if best is None
            else BoundInfo(*best, certified=comparison.certified[objective])
            for objective, best in comparison.bounds.items()
        },
        fingerprints={o: i.fingerprint for o, i in comparison.instances.items()},
        time_unit=first.time_unit,
    )


def is_comparison(path: Path) -> bool:
    """Whether a file says that it is a comparison; only its beginning is read."""
    try:
        with path.open("rb") as stream:
            return _HEAD.match(stream.read(200)) is not None
    except OSError:
        return False


def read_comparison(path: str | Path) -> ComparisonInfo:
    """What ``compare -o`` wrote.

    Raises
    ------
    BadInput
        When it is no comparison, or a field of it is wrong.
    InstanceError
        When it is no JSON.
    """
    document = read_document(path)
    if document.pop("format", None) != FORMAT:
        raise BadInput(f"{path}: is no comparison; allowed: {FORMAT!r} (what compare -o writes)")
    try:
        return TypeAdapter(ComparisonInfo).validate_python(document)
    except ValidationError as error:
        finding = error.errors()[0]
        where = ".".join(map(str, finding["loc"]))
        raise BadInput(f"{path}: {where}: {finding['msg'].lower()}") from None


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
        bins=entry.bins,
        trace=_trace(entry),
    )


def _trace(entry: Entry) -> tuple[TracePoint, ...]:
    """The trace and the end; what seemed better than the end was no plan on the Instance.

    A DP that ignores fusion groups rates plans that the runtime changes afterwards.
    """
    outcome = entry.outcome
    if outcome is None:
        return ()
    last = outcome.objective
    points = (
        replace(point, objective=None)
        if point.objective is not None and last is not None and point.objective < last
        else point
        for point in outcome.trace
    )
    end = TracePoint(round(outcome.seconds, 4), last, outcome.bound, "end")
    return (*points, end)


def _status(entry: Entry) -> str:
    """The outcome's status; for a plan the check rejects, that word instead."""
    if entry.feasible is False:
        return "breaks"
    return "not covered" if entry.outcome is None else entry.outcome.status.value
