"""Evaluate the assertions of a suite on the records of its scenarios."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from milp_planner.drawing.units import show_axis
from milp_planner.errors import BadInput
from scenarios.batch.info import AssertionInfo
from scenarios.batch.scenario import Scenario
from scenarios.batch.suite import AXES, Assertion, Where

PICOSECONDS = 10**9
"""Picoseconds in a millisecond."""
_LABELS = {"objective": "objective_kind"}


def judge(
    assertion: Assertion, scenarios: Sequence[tuple[str, Scenario]], records: dict[str, Any]
) -> AssertionInfo:
    """Evaluate an assertion on the records of the scenarios that it selects."""
    chosen = [(key, s) for key, s in scenarios if matches(assertion.where, s)]
    broken = []
    for key, scenario in chosen:
        reason = _reason(assertion, records[key]) if key in records else None
        if reason:
            broken.append(f"{describe(scenario)}: {reason}")
    missing = sum(key not in records for key, _ in chosen)
    holds = False if broken else None if missing else True
    return AssertionInfo(assertion.name, holds, len(chosen), tuple(broken), missing)


def check_assertions(assertions: Iterable[Assertion], scenarios: Iterable[Scenario]) -> None:
    """Refuse an assertion that selects no scenario, before anything is solved.

    Raises
    ------
    BadInput
        When there is one; the message names the assertion.
    """
    known = list(scenarios)
    for assertion in assertions:
        if not any(matches(assertion.where, scenario) for scenario in known):
            raise BadInput(
                f"assertion {assertion.name!r}: its where matches no scenario of the suite"
            )


def matches(where: Where, scenario: Scenario) -> bool:
    """Whether a scenario agrees with every given field; an axis that is not swept never does."""
    label = scenario.label()
    for name, wanted in where.to_dict().items():
        if not wanted:
            continue
        found = (
            label["axes"].get(name)
            if name in AXES or "." in name
            else label[_LABELS.get(name, name)]
        )
        if found not in wanted:
            return False
    return True


def describe(scenario: Scenario) -> str:
    """A scenario in a few words."""
    axes = "".join(f", {name} {show_axis(name, value)}" for name, value in scenario.axes)
    asked = scenario.asked
    options = "".join(f" {name}={value}" for name, value in asked.options.items())
    return (
        f"{scenario.model} on {scenario.cluster}{axes}, {asked.objective}, "
        f"{asked.formulation}{options}, seed {asked.seed}"
    )


def _reason(assertion: Assertion, record: dict[str, Any]) -> str | None:
    """Why an assertion fails on a record; None if it holds."""
    status = record["status"]
    if assertion.fits is False:
        return None if status == "infeasible" else f"{status}, not proved infeasible"
    if status not in ("optimal", "feasible"):
        return f"no plan: {status}"
    if assertion.optimal and status != "optimal":
        return "the plan is not proved optimal"
    return _other_mode(assertion, record) or _use(assertion, record) or _short_of(assertion, record)


def _use(assertion: Assertion, record: dict[str, Any]) -> str | None:
    used = record.get("hbm_used")  # missing in results of older versions
    if assertion.hbm_used is None:
        return None
    least, most = assertion.hbm_used
    if used is None:
        return "how much HBM is in use is not stored"
    if least <= Fraction(used) * 100 <= most:
        return None
    return f"{100 * used:.1f}% of HBM in use, not {float(least):g}% to {float(most):g}%"


def _other_mode(assertion: Assertion, record: dict[str, Any]) -> str | None:
    found = record.get("modes") or {}  # missing in results of older versions
    for table, mode in assertion.modes.items():
        if found.get(table) != mode:
            return f"{table} is {found.get(table, 'in no mode that is stored')}, not {mode}"
    return None


def _short_of(assertion: Assertion, record: dict[str, Any]) -> str | None:
    for memory, least in (("hbm", assertion.hbm_headroom), ("ddr", assertion.ddr_headroom)):
        free = record["headroom"].get(memory)
        if least is not None and free is not None and Fraction(free) < least / 100:
            return f"{100 * free:.1f}% of {memory.upper()} free, below {float(least):g}%"
    gap = record["gap"]
    if assertion.max_gap is not None and (gap is None or gap > assertion.max_gap):
        found = "no bound is known" if gap is None else f"the gap is {100 * gap:.2f}%"
        return f"{found}, allowed: {100 * assertion.max_gap:g}%"
    most = assertion.max_milliseconds
    if most is not None and record["objective"] > most * PICOSECONDS:
        return f"{record['objective'] / PICOSECONDS:.3f} ms, above {most:g} ms"
    return None
