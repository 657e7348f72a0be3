"""Arguments and options that several commands share, so that all commands word them alike.

Those that a request has are made from its declaration (:mod:`milp_planner.request`).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from milp_planner.request import SECONDS, Option, PlanRequest

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from milp_planner.request import Request


def asking(
    kind: type[Request], *only: str, **defaults: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command whose arguments and options are the fields of a request, and then its own.

    The function gets the request, checked, as ``request``. With names, only these fields are
    asked for; ``defaults`` replace those of the request.
    """
    names = [name for name, field in kind.model_fields.items() if _spelling(field)]
    names = [name for name in names if name in only or not only]

    def made(run: Callable[..., None]) -> Callable[..., None]:
        declared = inspect.signature(run, eval_str=True).parameters.values()
        own = [p.replace(kind=p.KEYWORD_ONLY) for p in declared if p.name != "request"]
        ours = [parameter(kind.model_fields[name], name, defaults) for name in names]
        former = kind.FORMER if issubclass(kind, PlanRequest) and "start" in names else {}
        ours += [_hidden(name, spelling) for name, spelling in former.items()]
        arguments = [each for each in (*own, *ours) if each.default is each.empty]
        parameters = [*arguments, *(each for each in (*ours, *own) if each not in arguments)]

        @wraps(run)
        def called(**given: Any) -> None:
            asked = {name: given.pop(name) for name in (*names, *former)}
            stated = {name: value for name, value in asked.items() if value not in (None, [])}
            run(request=kind.of({**defaults, **stated}, written=True), **given)

        del called.__wrapped__
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {each.name: each.annotation for each in parameters}
        return called

    return made


def parameter(
    field: FieldInfo, name: str, defaults: Mapping[str, Any] | None = None, spelling: str = ""
) -> inspect.Parameter:
    """A field of a request as a command line has it."""
    spelling, seconds = spelling or _spelling(field), (defaults or {}).get("time_limit", SECONDS)
    help = " ".join((field.description or "").split())
    help = help.replace(f"default: {SECONDS:g}", f"default: {seconds:g}")
    kind = inspect.Parameter.KEYWORD_ONLY
    if not spelling.startswith("-"):
        return inspect.Parameter(name, kind, annotation=Annotated[str, argument(spelling, help)])
    several = any(isinstance(each, Option) and each.several for each in field.metadata)
    choices = get_args(field.annotation)
    if choices and all(isinstance(each, str) for each in choices):
        spelling = spelling.replace("NAME", "|".join(choices))
    taken = list[str] | None if several else str | None
    return inspect.Parameter(name, kind, default=None,
                             annotation=Annotated[taken, option(spelling, help)])  # fmt: skip


def _hidden(name: str, spelling: str) -> inspect.Parameter:
    """A former spelling, which still answers."""
    taken = typer.Option(spelling.split()[0], hidden=True)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None,
                             annotation=Annotated[str | None, taken])  # fmt: skip


def _spelling(field: FieldInfo) -> str:
    return next((each.spelling for each in field.metadata if isinstance(each, Option)), "")


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


def asked(name: str, spelling: str = "") -> Any:
    """One field of a request, for a command that asks for no plan; ``spelling`` may add names."""
    return parameter(PlanRequest.model_fields[name], name, spelling=spelling).annotation


ModelArgument, CacheOption = asked("model"), asked("cache")
StartOption = asked("start", "--start --today PLAN")
NoCacheOption = Annotated[bool, option("--no-cache", "Neither read nor write a cache.")]
JsonOption = Annotated[bool, option("--json", "Print only JSON on stdout.")]
OutputOption = Annotated[
    Path | None, option("--output -o FILE", "Output file, written completely or not at all.")
]
TorchRecOption = Annotated[
    str | None,
    option(
        "--torchrec VERSION",
        "The trainer's TorchRec, where DLRMv4's variables do not state TORCHREC_VERSION: before "
        "1.7 it takes ddr_cap=0 for 128 GiB of host memory a rank, since then for none. With "
        "--to torchrec, one that cannot run the plan is refused.",
    ),
]
AllRowsOption = Annotated[
    bool, option("--all", "Print every table and rank instead of shortening long lists.")
]
