"""The command-line reference as Markdown, from the same declarations that ``--help`` prints.

``python -m docs.generate.cli docs/cli.md`` writes it; with ``--check`` the exit code
tells whether the file is up to date.
"""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from typer.models import ArgumentInfo, Context

from milp_planner.cli.main import COMMANDS, EPILOG

_HEAD = """# Command line

What are the commands and their options? Generated from `--help` (`make docs`); do not edit.

Every command takes `--json`, which prints only machine-readable output on stdout. Progress goes to
stderr, and only if stderr is a terminal. Output files are written completely or not at all. Ctrl-C
stops a search and keeps the best plan found; a second Ctrl-C abandons it.

With `--json`, an error is one JSON object on stderr, and stdout is empty:
`{"error": {"kind": "bad_input", "message": "…", "exit_code": 2}}`. The kinds are `bad_input` (2;
`problems` lists them all, in the form of `check --json`), `no_plan` (3), `internal_error` (70; with
its `traceback`) and `interrupted` (130). An answer on stdout is not an error, whatever the exit
code: if no plan exists, the status says so.

"""


_PAGES = {
    "plan": "guide.md", "compare": "method.md", "check": "inputs.md", "batch": "suites.md",
    "audit": "guide.md#5-audit-the-plan-you-run-today",
    "import-stats": "from-plan-to-run.md#at-production-size",
    "explain": "explain.md", "report": "report.md",
    "serve": "serve.md", "calibrate": "trust/time.md#calibrate-your-machine",
    "export": "exports.md", "import-plan": "exports.md",
    "verify": "outcome.md#what-is-checked",
    "torchrec-dry-run": "torchrec.md#one-model-on-several-skus",
}  # fmt: skip
"""Pages about a command, which say more than its first paragraph."""


@dataclass(frozen=True)
class Parameter:
    """One argument or option, as its command's signature declares it."""

    kind: str
    names: str
    default: str
    help: str


def reference() -> str:
    """The whole page."""
    declared = {command.name: parameters(command.load()) for command in COMMANDS}
    often = Counter(parameter for each in declared.values() for parameter in each)
    shared = [parameter for parameter, count in often.items() if count > 1]
    parts = [
        _HEAD,
        EPILOG,
        "\n\n## Shared options\n\nThey mean the same in every command that names them.\n\n",
    ]
    parts += [*_tables(shared)]
    parts += [
        _section(command.name, command.load(), declared[command.name], shared)
        for command in COMMANDS
    ]
    return "".join(parts).rstrip("\n") + "\n"


def parameters(function: Callable[..., None]) -> list[Parameter]:
    """Arguments and options of a command, read from its annotations."""
    found = []
    for name, param in inspect.signature(function, eval_str=True).parameters.items():
        if param.annotation is Context:
            continue
        declared, info = get_args(param.annotation)
        if info.hidden:  # a former spelling
            continue
        argument = isinstance(info, ArgumentInfo)
        required = param.default is inspect.Parameter.empty
        metavar = info.metavar or _value(declared)
        # inside Annotated, Typer keeps the first name where the default would stand
        given = [d for d in (info.default, *(info.param_decls or ())) if isinstance(d, str)]
        names = metavar if argument else ", ".join(f"`{d}`" for d in given or [name])
        flag = declared is bool
        found.append(
            Parameter(
                kind="argument" if argument else "option",
                names=f"`{names}`" if argument else names + ("" if flag else f" {metavar}"),
                default="required" if required else _default(param.default),
                help=" ".join((info.help or "").split()),
            )
        )
    return found


def _section(
    name: str, function: Callable[..., None], declared: list[Parameter], shared: list[Parameter]
) -> str:
    """A command: its usage, what it does, its own options, and the names of those it shares."""
    arguments = [p.names.strip("`") for p in declared if p.kind == "argument"]
    usage = " ".join(["milp-planner", name, *arguments, "[OPTIONS]"])
    text = inspect.cleandoc(function.__doc__ or "")
    if name in _PAGES:
        first = " ".join(text.partition("\n\n")[0].split())
        text = f"{first} [More]({_PAGES[name]}), and `milp-planner {name} --help`."
    lines = [f"\n## {name}\n\n```\n{usage}\n```\n\n{text}\n\n"]
    lines += _tables([p for p in declared if p not in shared])
    names = [p.names.split()[0].rstrip(",") for p in declared if p in shared]
    if names:
        lines.append(f"[Shared](#shared-options): {', '.join(map(_cell, names))}\n")
    return "".join(lines).rstrip("\n") + "\n"


def _tables(declared: list[Parameter]) -> list[str]:
    """Arguments, then options."""
    lines = []
    for kind in ("argument", "option"):
        rows = [p for p in declared if p.kind == kind]
        if rows:
            lines.append(f"| {kind} | |\n|---|---|\n")
            lines += [f"| {_cell(p.names)} | {_cell(_meaning(p))} |\n" for p in rows]
            lines.append("\n")
    return lines


def _meaning(parameter: Parameter) -> str:
    """Its help, with the default where the help does not name it."""
    given = parameter.default not in ("", "required") and "default" not in parameter.help.lower()
    return f"{parameter.help} Default: {parameter.default}." if given else parameter.help


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _value(declared: Any) -> str:
    """What an option takes: its choices, or the name of its type."""
    choices = get_origin(declared) is Literal
    kinds = [a for a in get_args(declared) if a is not type(None) and not choices] or [declared]
    kind = get_args(kinds[0])[0] if get_origin(kinds[0]) is list else kinds[0]
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    return str({int: "N", float: "NUMBER", Path: "FILE"}.get(kind, "TEXT"))


def _default(value: object) -> str:
    if value is None or value is False or value == "":
        return ""
    return f"`{value}`"


def main(arguments: list[str]) -> int:
    """Write the page, or with ``--check`` compare it."""
    paths = [a for a in arguments if a != "--check"]
    if len(paths) != 1:
        print("usage: python -m docs.generate.cli [--check] FILE", file=sys.stderr)
        return 2
    path = Path(paths[0])
    if "--check" not in arguments:
        path.write_text(reference(), encoding="utf-8")
        return 0
    if path.is_file() and path.read_text(encoding="utf-8") == reference():
        return 0
    print(f"{path} is not what --help says; run: make docs", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
