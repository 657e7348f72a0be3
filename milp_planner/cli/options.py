"""Arguments and options that several commands share, so that all commands word them alike."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from milp_planner.errors import BadInput

if TYPE_CHECKING:
    from formulations.settings import Settings
    from milp_planner.features.moves.again import Moves
    from milp_planner.features.plan.cache import PlanCache
    from milp_planner.inputs import Cluster, Model
    from milp_planner.today.rows import TodaySource


class ObjectiveName(StrEnum):
    """The quantity to minimise."""

    TOTAL = "total"
    BUSIEST_RANK = "busiest_rank"
    STEP_TIME = "step_time"


def option(spec: str, help: str, parser: Callable[[Any], Any] | None = None) -> Any:
    """An option, from its names and value as in ``--output -o FILE``, and its help."""
    *names, last = spec.split()
    taken = None if last.startswith("-") else last
    return typer.Option(
        *(names if taken else [*names, last]), metavar=taken, help=help, parser=parser
    )


def argument(metavar: str, help: str) -> Any:
    """A positional argument."""
    return typer.Argument(metavar=metavar, help=help)


def positive(found: str | float) -> float:
    """Parse a positive finite number."""
    try:
        value = float(found)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise typer.BadParameter(f"found {found}; allowed: a positive number")
    return value


def percentage(found: str | float) -> float:
    """Parse a share written as ``0.5%``."""
    text = str(found).strip()
    digits = text.removesuffix("%")
    try:
        value = float(digits) / 100
    except ValueError:
        value = math.nan
    if digits != text and 0 <= value < 1:
        return value
    hint = ""
    if digits == text and 0 <= value < 1:
        share = f", or for that share {10_000 * value:g}%" if value < 0.01 else ""
        hint = f"; did you mean {digits}%{share}?"
    raise typer.BadParameter(
        f"found {found}; allowed: a percentage below 100%, with its sign, such as 0.5%{hint}"
    )


def whole(least: int, most: int) -> Callable[[str | int], int]:
    """A parser for whole numbers from ``least`` to ``most``."""

    def parse(found: str | int) -> int:
        text = str(found).strip()
        digits = text.removeprefix("-")
        value = int(text) if digits.isascii() and digits.isdigit() and len(digits) < 12 else None
        if value is None or not least <= value <= most:
            raise typer.BadParameter(f"found {found}; allowed: a whole number, {least} to {most}")
        return value

    return parse


def given(context: typer.Context, *parameters: str) -> list[str]:
    """Of the named options, those that the user gave, in the form ``--name``."""
    sources = ((name, context.get_parameter_source(name)) for name in parameters)
    return [
        f"--{name.replace('_', '-')}"
        for name, source in sources
        if source is not None and source.name == "COMMANDLINE"
    ]


#: The environment variable that names the cache's folder if --cache is not given.
CACHE_VARIABLE = "MILP_PLANNER_CACHE"

ModelArgument = Annotated[
    str,
    argument(
        "MODEL",
        "Model YAML file, or the name of a shipped model (milp-planner list models); - reads "
        "standard input, as for every file.",
    ),
]
ClusterArgument = Annotated[
    str,
    argument(
        "CLUSTER",
        "Cluster YAML file, or the name of a shipped cluster (milp-planner list clusters).",
    ),
]
FormulationOption = Annotated[
    str, option("--formulation -f NAME", "How to solve (milp-planner list formulations).")
]
ObjectiveOption = Annotated[
    ObjectiveName,
    option(
        "--objective",
        "What to minimise. step_time: the embedding part of a step, with barriers between phases "
        "and no overlap; busiest_rank: the largest sum on any one rank; total: the sum over all "
        "ranks.",
    ),
]
ProfileOption = Annotated[
    str | None,
    option(
        "--profile NAME",
        "Hardware profile to price the plan with: a shipped one (milp-planner list profiles) or a"
        " .yaml file such as calibrate writes; default: the cluster's profile.",
    ),
]
_LIMIT = "Wall-clock limit for search, proof and goals, without reading, pricing and writing"
TimeLimitOption = Annotated[float, option("--time-limit SECONDS", f"{_LIMIT}.", positive)]
OtherTimeLimitOption = Annotated[
    float | None,
    option(
        "--time-limit SECONDS",
        f"{_LIMIT}; default: 60, or none with --work-limit.",
        positive,
    ),
]
WorkLimitOption = Annotated[
    float | None,
    option(
        "--work-limit UNITS",
        "Limit on deterministic work units; with --workers 1, runs repeat exactly.",
        positive,
    ),
]
GapOption = Annotated[
    float | None,
    option(
        "--gap PERCENT",
        "Stop as soon as the plan is certified to be within this share of the optimum, such as"
        " 0.5%; default: stop only at a proof or a limit.",
        percentage,
    ),
]
CacheOption = Annotated[
    Path | None,
    option(
        "--cache DIR",
        "Folder in which plans are cached. A solve of the same inputs takes its plan from there if"
        " it is verified and certified to --gap (without --gap: certified optimal); default: the"
        f" variable {CACHE_VARIABLE}, or no cache.",
    ),
]
NoCacheOption = Annotated[bool, option("--no-cache", "Neither read nor write a cache.")]
SeedOption = Annotated[int, option("--seed N", "Random seed.", whole(0, 2**31 - 1))]
WorkersOption = Annotated[
    int | None,
    option(
        "--workers N",
        "Solver threads, no more than cores; default: all cores. For auto, two are worth having:"
        " one makes plans, one raises the bound as well; more only make plans from other seeds.",
        whole(1, 1024),
    ),
]
SettingOption = Annotated[
    list[str] | None,
    option("--set KEY=VALUE", "Setting of the formulation, such as solver=cbc; may be repeated."),
]
JsonOption = Annotated[bool, option("--json", "Print only JSON on stdout.")]
OutputOption = Annotated[
    Path | None, option("--output -o FILE", "Output file, written completely or not at all.")
]
ForOption = Annotated[
    str | None,
    option(
        "--for TRAINER",
        "Plan what this trainer can be made to run: dlrmv4, tzrec or dynamicemb. Its own planner "
        "is replayed; bound and certificate are those of all plans.",
    ),
]
TodayOption = Annotated[
    Path | None, option("--today PLAN", "The plan you run today, in any form that audit accepts.")
]
BeforeOption = Annotated[
    Path | None,
    option(
        "--from PLAN",
        "A plan.json to start the search from and to count moves from. Its tables, rows, ranks and"
        " options may differ from those of the inputs; the part that still applies is used.",
    ),
]
LostOption = Annotated[
    str | None,
    option("--lost RANKS", "With --from: ranks of that plan that are gone, such as 13,40-47."),
]
MaxMovedOption = Annotated[
    str | None,
    option(
        "--max-moved LIMIT",
        "With --from: how much may move: a number of tables, a size such as 10GB, or a share of the"
        " bytes such as 5%.",
    ),
]
MovesWithinOption = Annotated[
    str | None,
    option(
        "--moves-within SHARE",
        "With --from: share of the objective that may be given up for bytes that stay; default: "
        "0.5%, or nothing with --goals or --move-cost.",
    ),
]
MoveCostOption = Annotated[
    str | None,
    option(
        "--move-cost PRICE",
        "With --from: cost of moving, such as 1ms/GB; the plan minimises the sum of objective and"
        " moving cost.",
    ),
]
ExecutableOption = Annotated[
    str | None,
    option(
        "--executable RUNTIME",
        "With --from: only moves that this runtime (torchrec) executes while training runs; "
        "export --to torchrec-reshard then has its calls.",
    ),
]
GoalsOption = Annotated[
    str | None,
    option(
        "--goals NAMES",
        "What to improve after the objective, most important first: host_memory, even_memory,"
        " shards, total, moves. Example: moves,even_memory:80% (fuller ranks are made more even"
        " until none is above 80%). To give up to 0.1% of the objective for them, begin with"
        " step_time:0.1%. Default: host_memory, even_memory:50%, shards, total, moves, with a small"
        " loss of the objective only where that frees much memory on a nearly full rank.",
    ),
]
ReserveOption = Annotated[
    list[str] | None,
    option(
        "--reserve FIELD=VALUE",
        "Override a field of the cluster's reservations, such as hbm_percent=10 or ddr_bytes=64GB;"
        " may be repeated.",
    ),
]
TwoDOption = Annotated[
    list[str] | None,
    option(
        "--two-d FIELD=VALUE",
        "Field of the cluster's division into sharding groups, such as sharding_group_size=16 or"
        " sync_interval=8; may be repeated. Fields that are auto, the default of all, are"
        " chosen with the plan.",
    ),
]
AllRowsOption = Annotated[
    bool, option("--all", "Print every table and rank instead of shortening long lists.")
]


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
        data = place.to_dict()
        held = {**data["reservations"], **parse_fields("--reserve", reserve)}
        place = type(place).from_dict({**data, "reservations": held}, "--reserve")
    if two_d:
        data = place.to_dict()
        held = {**(data["two_d"] or {}), **parse_fields("--two-d", two_d)}
        place = type(place).from_dict({**data, "two_d": held}, "--two-d")
    return tables, place


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
    """Today's plan. ShardingPlans and HugeCTR's plans in JSON are read here, by their content.

    DLRMv4's variables are replayed: today's plan is what its own planner makes of them. For other
    formats this returns the path, for :func:`milp_planner.today.rows.read_today`.
    """
    from milp_planner.integrations.exports import dlrmv4, read, torchrec
    from milp_planner.integrations.replay.dlrmv4 import runs_now
    from milp_planner.plans.plan_file import read_document
    from milp_planner.today.rows import is_json, unpacked_text

    text = unpacked_text(path)
    document = read_document(path) if is_json(text) else {}
    if "shard_matrix" in document:
        return read(text, "hugectr", model)
    if document.get("format") == torchrec.FORMAT:
        return read(text, "torchrec", model)
    if f"{dlrmv4.SHARDING_OVERRIDES}=" in text:
        return runs_now(text, model, cluster)
    return path


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
