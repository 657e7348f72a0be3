"""Every scenario of a batch as one row, and performance profiles of the formulations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import Field

from formulations.result.outcome import gap_between
from milp_planner.drawing.units import show_axis
from scenarios.batch.neighbours import leaves_as_much, without_memory
from scenarios.batch.record import Result

Record = Mapping[str, Any]
#: By objective, the others that never exceed it: step_time, the sum over phases of the busiest
#: rank's time, is at least busiest_rank, the busiest rank's sum over phases.
BELOW = {"step_time": ("busiest_rank",)}
SOLVED = ("optimal", "infeasible")
"""Statuses that are proofs."""


class Row(Result):
    """One scenario and its result, beside those of the same inputs; its note may be an error's."""

    best: int | None = None
    """The least objective of any plan found for the same inputs or less memory, whatever that plan
    minimised."""
    best_bound: int | None = None
    """The largest bound, not refuted by any plan, that a scenario proved for the same inputs or
    more memory, and for this objective or one that never exceeds it."""
    best_certified: int | None = None
    """The largest such bound proved by a certificate."""
    options: dict[str, Any] = Field(default_factory=dict)
    headroom: dict[str, float] = Field(default_factory=dict)
    standing: str = ""
    note: str = ""

    def told(self) -> dict[str, Any]:
        """Its values, without those that its plan or its note has."""
        return {n: v for n, v in self if n not in ("modes", "error", "versions")}

    @property
    def series(self) -> str:
        """Formulation and settings: the unit of comparison."""
        return " ".join([self.formulation, *(f"{k}={v}" for k, v in self.options.items())])

    @property
    def instance(self) -> str:
        """The inputs and the objective as text; equal for comparable rows."""
        return _instance(self.model, self.cluster, self.axes, self.objective_kind)

    @property
    def per_second(self) -> float | None:
        """Samples per second through the embedding part; None unless step_time is minimised."""
        if self.objective_kind != "step_time" or not self.objective or self.samples is None:
            return None
        return self.samples * 10**12 / self.objective

    @property
    def above_best(self) -> float | None:
        """(objective − best)/max(1, |best|); None without a plan."""
        if self.objective is None or self.best is None:
            return None
        return (self.objective - self.best) / max(1, abs(self.best))

    @property
    def certified_gap(self) -> float | None:
        """(objective − best certified)/max(1, |objective|); None if either is unknown."""
        return gap_between(self.objective, self.best_certified)

    @property
    def best_gap(self) -> float | None:
        """(objective − best bound)/max(1, |objective|); None if either is unknown."""
        return gap_between(self.objective, self.best_bound)


def rows_of(records: Sequence[Record]) -> tuple[Row, ...]:
    """One row per record, in their order."""
    groups: dict[str, list[Record]] = defaultdict(list)
    families: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        groups[_of(record)].append(record)
        families[_family(record)].append(record)
    known = {}
    for name, group in groups.items():
        kind, axes = group[0]["objective_kind"], group[0]["axes"]
        alike = [r for r in families[_family(group[0])] if _alike(r, group)]
        plans = [r for r in alike if leaves_as_much(axes, r["axes"])]
        bounds = [r for r in alike if leaves_as_much(r["axes"], axes)]
        values = [(r.get("objectives") or {}).get(kind) for r in plans]
        mine = _known([r for r in plans if r["objective_kind"] == kind], "objective")
        best = min([*mine, *(v for v in values if v is not None)], default=None)
        same = [r for r in bounds if r["objective_kind"] == kind]
        sure = max(_known(same, "certified_bound"), default=None)
        below = [r for r in bounds if r["objective_kind"] in BELOW.get(kind, ())]
        known[name] = best, _best_bound([*same, *below], best), sure
    return tuple(_row(record, *known[_of(record)]) for record in records)


def _alike(record: Record, group: Sequence[Record]) -> bool:
    """Whether a record has the inputs of a group, or differs from them in memory alone."""
    shapes = {each.get("shape") for each in group} - {None}
    return record["axes"] == group[0]["axes"] or record.get("shape") in shapes


def contradictions(rows: Sequence[Row]) -> tuple[str, ...]:
    """One sentence for every instance whose results contradict each other; there should be none."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row.instance].append(row)
    found = []
    for name, group in groups.items():
        best = group[0].best
        if best is None:
            continue
        found += [
            f"{name}: {row.series} proved it infeasible, another found a plan"
            for row in group
            if row.status == "infeasible"
        ]
        found += [
            f"{name}: the bound of {row.series}, {row.bound}, is above a plan's {best}"
            for row in group
            if row.bound is not None and row.bound > best
        ]
    return tuple(found)


def _row(record: Record, best: int | None, bound: int | None, certified: int | None) -> Row:
    error = record.get("error")
    made: dict[str, Any] = {
        **{name: dict(record.get(name) or {}) for name in ("axes", "options", "headroom")},
        "standing": record.get("standing") or record["status"],
        "best": best,
        "best_bound": bound,
        "best_certified": certified,
        "note": f"{error['type']}: {error['message']}" if error else record.get("note") or "",
    }
    return Row.model_construct(**{**record, **made})


def _of(record: Record) -> str:
    return _instance(record["model"], record["cluster"], record["axes"], record["objective_kind"])


def _family(record: Record) -> str:
    axes = without_memory(record["axes"])
    return _instance(record["model"], record["cluster"], axes, "any objective and memory")


def _instance(model: str, cluster: str, axes: Mapping[str, Any], objective: str) -> str:
    swept = "".join(f", {name} {show_axis(name, value)}" for name, value in axes.items())
    return f"{model} on {cluster}{swept}, {objective}"


def _known(group: Sequence[Record], field: str) -> list[int]:
    return [record[field] for record in group if record.get(field) is not None]


def _best_bound(group: Sequence[Record], best: int | None) -> int | None:
    known = [r for r in group if r.get("bound") is not None]
    exact = [str(r.get("bound_source")).endswith(", exact") for r in known]
    found = best_bound(
        (LowerBound(r["bound"], r["formulation"], e) for r, e in zip(known, exact, strict=True)),
        best,
    )
    return None if found is None else found.bound


class LowerBound(NamedTuple):
    """A lower bound that one formulation proved for every plan."""

    bound: int
    by: str
    """The method, such as ``cpsat``."""
    exact: bool
    """Whether it was derived in integers rather than in floating point."""


def best_bound(bounds: Iterable[LowerBound], objective: int | None) -> LowerBound | None:
    """The largest of some bounds on one Instance; of equals, one derived in integers.

    A floating-point bound above ``objective``, the best known plan's, is refuted and ignored. (An
    integer bound above it is a bug and is not hidden.)
    """
    valid = (b for b in bounds if b.exact or objective is None or b.bound <= objective)
    return max(valid, key=lambda each: (each.bound, each.exact), default=None)


@dataclass(frozen=True)
class Curve:
    """The step function of one series."""

    series: str
    points: tuple[tuple[float, float], ...]
    """(place, value): the value holds from its place to the next point."""

    def at(self, place: float) -> float:
        """The value at a place; 0 before the first point."""
        return max((y for x, y in self.points if x <= place), default=0.0)


@dataclass(frozen=True)
class Profile:
    """A performance profile (Dolan and Moré, Mathematical Programming 91, 2002).

    ρ(τ) is the share of the problems on which a series is within a factor τ of the best series. A
    problem is an instance and a seed on which at least one series succeeded; a failure is a factor
    of infinity.
    """

    measure: str
    """``objective`` (relative to the least known of the instance) or ``seconds`` (until proof)."""
    objective_kind: str | None
    """The objective minimised; None for all together."""
    problems: int
    curves: tuple[Curve, ...]
    """Points (τ, ρ)."""


def profiles_of(rows: Sequence[Row]) -> tuple[Profile, ...]:
    """One profile of values per objective, then one of times; only where two series can differ."""
    found = []
    for kind in dict.fromkeys(row.objective_kind for row in rows):
        mine = [row for row in rows if row.objective_kind == kind]
        factors = [(row, None if (a := row.above_best) is None else 1 + a) for row in mine]
        found.append(_profile("objective", kind, factors))
    times: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row.status in SOLVED and row.seconds is not None:
            times[_problem(row)].append(row.seconds)
    provers = {row.series for row in rows if row.status in SOLVED}
    factors = [
        (row, row.seconds / min(times[_problem(row)])
         if row.status in SOLVED and row.seconds is not None else None)
        for row in rows if row.series in provers
    ]  # fmt: skip
    found.append(_profile("seconds", None, factors))
    return tuple(profile for profile in found if len(profile.curves) > 1 and profile.problems)


def _profile(
    measure: str, kind: str | None, factors: Sequence[tuple[Row, float | None]]
) -> Profile:
    problems = {_problem(row) for row, factor in factors if factor is not None}
    reached: dict[str, list[float]] = defaultdict(list)
    for row, factor in factors:
        kept = reached[row.series]
        if factor is not None:
            kept.append(factor)
    curves = []
    for series, kept in reached.items():
        shares: dict[float, float] = {}
        for number, factor in enumerate(sorted(kept), 1):
            shares[factor] = number / len(problems)
        curves.append(Curve(series, tuple(shares.items())))
    return Profile(measure, kind, len(problems), tuple(curves))


def _problem(row: Row) -> str:
    return f"{row.instance}, seed {row.seed}"
