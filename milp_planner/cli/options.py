"""Arguments and options that several commands share, so that all commands word them alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    pass


class ObjectiveName(StrEnum):
    """The quantity to minimise."""

    TOTAL = "total"
    BUSIEST_RANK = "busiest_rank"
    STEP_TIME = "step_time"
    PIPELINED_STEP = "pipelined_step"


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
        "and no overlap; pipelined_step: the time that it adds to the dense part, with lookups and "
        "updates as one phase; busiest_rank: the largest sum on any one rank; total: the sum over "
        "all ranks.",
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
_LIMIT = (
    "Wall-clock limit for pricing, search, proof and everything after them, without reading,"
    " writing, and compiling the search (once per machine, and announced)"
)
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
TorchRecOption = Annotated[
    str | None,
    option(
        "--torchrec VERSION",
        "The trainer's TorchRec, where DLRMv4's variables do not state TORCHREC_VERSION: before "
        "1.7 it takes ddr_cap=0 for 128 GiB of host memory a rank, since then for none.",
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
