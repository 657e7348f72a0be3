"""The settings of a public call, checked before any work."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from formulations import Settings
from milp_planner.errors import BadInput
from milp_planner.request import Callbacks, Limits

_NAMES = frozenset(Limits.model_fields) & {each.name for each in fields(Settings)}


def limited(
    request: Limits, base: Settings | None = None, caller: Callbacks | None = None
) -> Settings:
    """The settings of a request; ``base`` holds limits and preferences that it does not state.

    BadInput for a base of another type, or with a limit, number of workers, seed or gap that a
    request could not have.
    """
    if base is not None:
        if not isinstance(base, Settings):
            raise BadInput(
                f"settings: found a {type(base).__name__}; allowed: formulations.Settings, such as "
                "Settings(time_limit=60, workers=8)"
            )
        named = Limits.of({name: getattr(base, name) for name in _NAMES - {"options"}})
        base = replace(base, **named.given)
    runtime: dict[str, Any] = {}
    if caller is not None and caller.stop is not None:
        runtime["stop"] = caller.stop
    return request.settings(base, **runtime)
