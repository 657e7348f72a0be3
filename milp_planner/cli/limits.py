"""Options of the command line turned into :class:`formulations.Settings`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from milp_planner.errors import BadInput

if TYPE_CHECKING:
    from formulations.settings import Settings


#: Wall clock where nothing is said.
SECONDS = 60.0


def make_settings(
    time_limit: float | None,
    *,
    work_limit: float | None = None,
    seed: int = 0,
    workers: int | None = None,
    options: Sequence[str] | None = None,
    formulation: str | None = None,
) -> Settings:
    """Limits and wishes of one command, checked for the formulation that gets them all.

    Without a time limit :data:`SECONDS` stand, unless work is what limits the run.

    Raises
    ------
    BadInput
        For a setting that is not ``KEY=VALUE``.
    InstanceError
        For an unknown formulation, or a setting that it does not know.
    """
    from formulations import registry
    from formulations.settings import Settings, available_cores

    if time_limit is None and work_limit is None:
        time_limit = SECONDS
    found = parse_options(options or ())
    if formulation is not None:
        registry.get(formulation).check(found)
    return Settings(
        time_limit=time_limit,
        work_limit=work_limit,
        workers=workers or available_cores(),
        seed=seed,
        options=found,
    )


def parse_options(pairs: Sequence[str]) -> dict[str, object]:
    """``["solver=cbc", "bins=100"]`` as ``{"solver": "cbc", "bins": 100}``.

    A value that is JSON (number, true, list) is read as such, anything else as text.

    Raises
    ------
    BadInput
        For a pair without ``=`` or key, or a key given twice.
    """
    found: dict[str, object] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            raise BadInput(f"--set {pair!r}: needs KEY=VALUE, such as --set solver=cbc")
        if key.strip() in found:
            raise BadInput(f"--set {pair!r}: {key.strip()} is given twice")
        found[key.strip()] = _value(text.strip())
    return found


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def parse_formulations(text: str) -> tuple[str, ...]:
    """Names of formulations from a comma-separated list.

    Raises
    ------
    BadInput
        When the list is empty or repeats a name.
    InstanceError
        For an unknown name, with the nearest valid one.
    """
    from formulations import registry

    names = [part.strip() for part in text.split(",") if part.strip()]
    if not names:
        raise BadInput(f"--formulations {text!r}: needs at least one name")
    for name in names:
        registry.get(name)
        if names.count(name) > 1:
            raise BadInput(f"--formulations {text!r}: {name} is listed twice")
    return tuple(names)


def parse_numbers(text: str, option: str) -> tuple[int, ...]:
    """Whole numbers from 1 from a comma-separated list; empty text is none.

    Raises
    ------
    BadInput
        For anything else, or a number given twice.
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    wrong = [part for part in parts if not part.isascii() or not part.isdigit() or int(part) < 1]
    if wrong:
        raise BadInput(f"{option}: found {wrong[0]!r}; allowed: whole numbers from 1, as 25,100")
    numbers = tuple(int(part) for part in parts)
    if len(set(numbers)) < len(numbers):
        raise BadInput(f"{option} {text}: a number is given twice")
    return numbers
