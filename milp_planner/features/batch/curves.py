"""Every scenario of a batch as one row, and performance profiles of the formulations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from formulations.result.outcome import gap_between
from milp_planner.drawing.units import show_axis

Record = Mapping[str, Any]
#: Objectives that an objective is never below: Σ over phases of the busiest rank, and the busiest
#: rank's sum over phases.
BELOW = {"step_time": ("busiest_rank",)}
SOLVED = ("optimal", "infeasible")
"""Statuses that are proofs."""


@dataclass(frozen=True)
class Row:
    """One scenario."""

    model: str
    cluster: str
    axes: dict[str, Any]
    """Value of each swept axis."""
    objective_kind: str
    formulation: str
    options: dict[str, Any]
    """Settings of the formulation that the suite gives."""
    seed: int
    status: str
    """Of the Outcome, or ``failed``, ``not_covered``."""
    standing: str
    """The status with what stands behind it; as the status where the record does not say."""
    objective: int | None
    bound: int | None
    """Picoseconds."""
    certified_bound: int | None
    """Of the scenario's own certificate."""
    gap: float | None
    """Of the scenario's own bound."""
    best: int | None
    """The least objective of any plan found for the same inputs, whatever it was minimised for."""
    best_bound: int | None
    """The largest bound that any scenario proved for the same inputs and objective, or for another
    that this one is never below, and that no plan refutes."""
    best_certified: int | None
    """The largest bound that the certificate of any proves for them."""
    seconds: float | None
    pricing_seconds: float | None
    headroom: dict[str, float]
    """Least share of each resource that the plan leaves free."""
    note: str
    """What the solver or the error says."""
    samples: int | None = None
    """Of a step, on all ranks; None in results of before."""

    @property
    def series(self) -> str:
        """Formulation and settings: what is compared with what."""
        return " ".join([self.formulation, *(f"{k}={v}" for k, v in self.options.items())])

    @property
    def instance(self) -> str:
        """The inputs and the objective, as text; equal for what is comparable."""
        return _instance(self.model, self.cluster, self.axes, self.objective_kind)

    @property
    def per_second(self) -> float | None:
        """Samples that pass the embedding part in a second; None unless step_time is minimised."""
        if self.objective_kind != "step_time" or not self.objective or self.samples is None:
            return None
        return self.samples * 10**12 / self.objective

    @property
    def above_best(self) -> float | None:
        """(objective − best)/max(1, |best|), None without a plan."""
        if self.objective is None or self.best is None:
            return None
        return (self.objective - self.best) / max(1, abs(self.best))

    @property
    def certified_gap(self) -> float | None:
        """(objective − best certified)/max(1, |objective|), None where either is unknown."""
        return gap_between(self.objective, self.best_certified)

    @property
    def best_gap(self) -> float | None:
        """(objective − best bound)/max(1, |objective|), None where either is unknown."""
        return gap_between(self.objective, self.best_bound)


def rows_of(records: Sequence[Record]) -> tuple[Row, ...]:
    """One row per record, in their order."""
    groups: dict[str, list[Record]] = defaultdict(list)
    inputs: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        groups[_of(record)].append(record)
        inputs[_inputs_of(record)].append(record)
    known = {}
    for name, group in groups.items():
        kind, others = group[0]["objective_kind"], inputs[_inputs_of(group[0])]
        values = [(r.get("objectives") or {}).get(kind) for r in others]
        plans = [*_known(group, "objective"), *(v for v in values if v is not None)]
        best = min(plans, default=None)
        sure = max(_known(group, "certified_bound"), default=None)
        below = [r for r in others if r["objective_kind"] in BELOW.get(kind, ())]
        known[name] = best, _best_bound([*group, *below], best), sure
    return tuple(_row(record, *known[_of(record)]) for record in records)


def contradictions(rows: Sequence[Row]) -> tuple[str, ...]:
    """One sentence for every instance whose scenarios cannot all be right; there should be none."""
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
    given = {each.name: record.get(each.name) for each in fields(Row)}
    made: dict[str, Any] = {
        **{name: dict(record.get(name) or {}) for name in ("axes", "options", "headroom")},
        "standing": record.get("standing") or record["status"],
        "best": best,
        "best_bound": bound,
        "best_certified": certified,
        "note": f"{error['type']}: {error['message']}" if error else record.get("note") or "",
    }
    return Row(**{**given, **made})


def _of(record: Record) -> str:
    return _instance(record["model"], record["cluster"], record["axes"], record["objective_kind"])


def _inputs_of(record: Record) -> str:
    return _instance(record["model"], record["cluster"], record["axes"], "any objective")


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
    """A bound that one formulation proved: no plan costs less than ``bound``."""

    bound: int
    by: str
    """The method, such as ``cpsat``."""
    exact: bool
    """Whether it was derived in integers (else in floating point)."""


def best_bound(bounds: Iterable[LowerBound], objective: int | None) -> LowerBound | None:
    """The largest of some bounds on one Instance; among equals one derived in integers.

    A bound in floating point above ``objective``, that of the best plan known, is refuted and does
    not count. (A larger one in integers is an error of ours and is not hidden.)
    """
    valid = (b for b in bounds if b.exact or objective is None or b.bound <= objective)
    return max(valid, key=lambda each: (each.bound, each.exact), default=None)


@dataclass(frozen=True)
class Curve:
    """One series: a step function."""

    series: str
    points: tuple[tuple[float, float], ...]
    """The value is reached at that place and kept until the next point."""

    def at(self, place: float) -> float:
        """The value at a place; 0 before the first point."""
        return max((y for x, y in self.points if x <= place), default=0.0)


@dataclass(frozen=True)
class Profile:
    """A performance profile (Dolan and Moré, Mathematical Programming 91, 2002).

    ρ(τ), the share of the problems on which a series is within the factor τ of the best series.
    A problem is an instance and a seed on which some series succeeded; failing is a factor of
    infinity.
    """

    measure: str
    """``objective`` (best: the least known of the instance) or ``seconds`` (until the proof)."""
    objective_kind: str | None
    """The objective asked for; None for all together."""
    problems: int
    curves: tuple[Curve, ...]
    """Points (τ, ρ)."""


def profiles_of(rows: Sequence[Row]) -> tuple[Profile, ...]:
    """By objective value for every objective, then by time; only where two series can differ."""
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
