"""The settings of a public call, checked before any work."""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Integral, Real

from formulations import Settings
from formulations.settings import parse_goals
from milp_planner.errors import BadInput
from milp_planner.inputs.quantities import show


def limited(
    settings: Settings | None,
    time_limit: float | None,
    goals: str | None = None,
    objective: str = "",
    gap: float | None = None,
) -> Settings:
    """The settings of a call, overridden by the limits and goals that it names.

    BadInput for settings of another type, and for a limit, number of workers, seed or gap that
    nothing can be solved within.
    """
    settings = Settings() if settings is None else settings
    if not isinstance(settings, Settings):
        raise BadInput(
            f"settings: found a {type(settings).__name__}; allowed: formulations.Settings, such as "
            "Settings(time_limit=60, workers=8)"
        )
    if gap is not None:
        settings = replace(settings, gap=gap)
    if time_limit is not None:
        settings = replace(settings, time_limit=time_limit)
    _check(settings)
    return settings if goals is None else replace(settings, goals=parse_goals(goals, objective))


def check_seconds(name: str, value: object) -> None:
    """BadInput unless a limit is None or a positive finite number."""
    if value is not None and not (_is(value, Real) and 0 < float(value) < math.inf):  # type: ignore[arg-type]
        raise BadInput(f"{name}: found {show(value)}; allowed: a positive number, or None")


def _check(settings: Settings) -> None:
    check_seconds("time_limit", settings.time_limit)
    check_seconds("work_limit", settings.work_limit)
    for name, least in (("workers", 1), ("seed", 0)):
        value = getattr(settings, name)
        if not _is(value, Integral) or value < least:
            raise BadInput(f"{name}: found {show(value)}; allowed: a whole number from {least}")
    if not _is(settings.gap, Real) or not 0 <= settings.gap < 1:
        raise BadInput(
            f"gap: found {show(settings.gap)}; allowed: a share from 0 to 1, such as 0.005"
        )


def _is(value: object, kind: type) -> bool:
    """Whether it is such a number (true and false are none)."""
    return isinstance(value, kind) and not isinstance(value, bool)
