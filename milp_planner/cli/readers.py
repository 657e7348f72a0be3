"""What arguments and options stand for: inputs, settings, plans, limits."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from milp_planner.cli.options import CACHE_VARIABLE
from milp_planner.errors import BadInput

if TYPE_CHECKING:
    from formulations.settings import Settings
    from milp_planner.features.moves.again import Moves
    from milp_planner.features.plan.cache import PlanCache
    from milp_planner.inputs import Cluster, Model
    from milp_planner.integrations.stated import Stated
    from milp_planner.today.rows import TodaySource


def find(
    model: str,
    cluster: str,
    profile: str | None = None,
    reserve: Sequence[str] | None = None,
    two_d: Sequence[str] | None = None,
) -> tuple[Model, Cluster]:
    """Read and validate both inputs; the other arguments override fields of the cluster's."""
    from scenarios import catalog

    tables, place = catalog.find_model(model), catalog.find_cluster(cluster)
    if profile is not None:
        place = type(place).from_dict({**place.to_dict(), "profile": profile}, "--profile")
    if reserve:
        data = _stated(place)
        held = {**data["reservations"], **parse_fields("--reserve", reserve)}
        place = type(place).from_dict({**data, "reservations": held}, "--reserve")
    if two_d:
        data = _stated(place)
        held = {**(data["two_d"] or {}), **parse_fields("--two-d", two_d)}
        place = type(place).from_dict({**data, "two_d": held}, "--two-d")
    return tables, place


def _stated(cluster: Cluster) -> dict[str, Any]:
    """A cluster as plain values, without a profile that nobody stated."""
    data = cluster.to_dict()
    if cluster.assumed_profile is not None:
        del data["profile"]
    return data


def parse_fields(given_as: str, pairs: Sequence[str]) -> dict[str, object]:
    """Parse ``["hbm_percent=10", "ddr_bytes=64GB"]`` into fields of an input."""
    from milp_planner.inputs.strict_yaml import plain_scalar

    found: dict[str, object] = {}
    example = {"--reserve": "hbm_bytes=10GB"}.get(given_as, "sharding_group_size=16")
    for pair in pairs:
        name, equals, text = (part.strip() for part in pair.partition("="))
        if not (name and equals and text):
            raise BadInput(f"{given_as} {pair!r}: needs FIELD=VALUE, such as {example}")
        if name in found:
            raise BadInput(f"{given_as} {pair!r}: {name} is given twice")
        try:
            found[name] = plain_scalar(text, in_yaml=False)
        except ValueError as error:
            raise BadInput(f"{given_as} {pair!r}: {error}") from None
    return found


def find_today(path: Path, model: Model, cluster: Cluster) -> TodaySource:
    """Today's plan from a file, told by its content."""
    return find_stated(path, model, cluster).today


def find_stated(path: Path, model: Model, cluster: Cluster, torchrec: str | None = None) -> Stated:
    """Today's plan from a file, and the workload that the file states beside it."""
    from milp_planner.integrations.stated import read_stated

    return read_stated(path, model, cluster, torchrec)


def parse_lost(text: str | None) -> tuple[int, ...]:
    """Ranks such as ``13,40-47``; none without a text."""
    from milp_planner.today.rows import parse_ranks

    found = () if text is None else parse_ranks(text, "--lost")
    if found is None:
        raise BadInput(f"--lost {text!r}: needs ranks such as 13,40-47")
    return found


def parse_moves(text: str | None, within: str | None = None) -> Moves | None:
    """Limits on moves as ``--max-moved`` and ``--moves-within`` give them; None without both."""
    from milp_planner.features.moves.again import Moves

    if within is None:
        return None if text is None else _most(text)
    if not re.fullmatch(r"\d+(\.\d*)?%", within.strip()):
        raise BadInput(f"--moves-within: found {within!r}; allowed: a percentage such as 0.5%")
    most = Moves() if text is None else _most(text)
    return replace(most, within=float(within.strip()[:-1]) / 100)


def _most(text: str) -> Moves:
    """A number of tables, a size, or a percentage of the bytes."""
    from milp_planner.features.moves.again import Moves
    from milp_planner.inputs.quantities import parse_bytes

    plain = text.strip()
    try:
        if plain.isascii() and plain.isdigit():
            return Moves(tables=int(plain))
        if plain.endswith("%"):
            return Moves(share=float(plain[:-1]) / 100)
        return Moves(bytes=parse_bytes(plain))
    except ValueError as error:
        raise BadInput(
            f"--max-moved {text!r}: {error}; allowed: a number of tables such as 20, a size such "
            "as 10GB, or a percentage such as 5%"
        ) from None


def find_cache(folder: Path | None, none: bool) -> PlanCache | None:
    """The cache in ``folder``, or in the folder that the environment names."""
    from milp_planner.features.plan.cache import to_cache

    if folder is not None and none:
        raise BadInput("--no-cache: contradicts --cache")
    return None if none else to_cache(folder or os.environ.get(CACHE_VARIABLE) or None)


#: Default time limit.
SECONDS = 60.0


def make_settings(  # noqa: PLR0913 - what commands share
    time_limit: float | None,
    *,
    work_limit: float | None = None,
    seed: int = 0,
    workers: int | None = None,
    options: Sequence[str] | None = None,
    formulation: str | None = None,
    goals: str | None = None,
    objective: str = "",
    gap: float | None = None,
) -> Settings:
    """Settings of a command, validated for the formulation if there is only one.

    Without any limit, the time limit is :data:`SECONDS`.
    """
    from formulations import registry
    from formulations.settings import DEFAULT_GOALS, Settings, available_cores, parse_goals

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
        gap=gap or 0.0,
        options=found,
        goals=DEFAULT_GOALS if goals is None else parse_goals(goals, objective),
    )


def parse_options(pairs: Sequence[str]) -> dict[str, object]:
    """Parse ``["solver=cbc", "bins=100"]`` into ``{"solver": "cbc", "bins": 100}``.

    A value that is valid JSON (number, true, list) is read as JSON, anything else as text.
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
    """Parse a comma-separated list of formulations."""
    from formulations import registry

    names = [part.strip() for part in text.split(",") if part.strip()]
    if not names:
        raise BadInput(f"--formulations {text!r}: needs at least one name")
    for name in names:
        registry.get(name)
        if names.count(name) > 1:
            raise BadInput(f"--formulations {text!r}: {name} is listed twice")
    return tuple(names)
