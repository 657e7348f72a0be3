"""The entry point ``milp-planner``: builds the application and turns failures into exit codes."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from milp_planner.cli import failures
from milp_planner.cli.console import let_go
from milp_planner.errors import BadInput
from milp_planner.files import keeping
from milp_planner.version import __version__

EPILOG = (
    "Exit codes: 0 ok · 1 infeasible or falls short · 2 bad input · 3 no plan found within the "
    "limit (time, work or memory), or not checked · 70 internal error · 130 interrupted (best plan "
    "kept)."
)


@dataclass(frozen=True)
class Command:
    """One command of ``milp-planner``."""

    name: str
    """Name on the command line."""
    place: str
    """Module of ``milp_planner.cli`` and its function, which has the options and the help."""
    panel: str
    """Heading under which ``--help`` lists the command."""

    def load(self) -> Callable[..., None]:
        """Import the command's function (its module imports nothing heavy)."""
        module, function = self.place.split(":")
        command: Callable[..., None] = getattr(
            import_module(f"milp_planner.cli.{module}"), function
        )
        return command


COMMANDS = (
    Command("plan", "plan:plan", "Plan"),
    Command("compare", "compare:run", "Plan"),
    Command("check", "checks:check", "Plan"),
    Command("solve", "plan:solve", "Plan"),
    Command("batch", "batch:run", "Plan"),
    Command("verify", "checks:verify", "Judge"),
    Command("audit", "audit:run", "Judge"),
    Command("explain", "explain:run", "Judge"),
    Command("fit-memory", "fit_memory:run", "Judge"),
    Command("report", "report:run", "Judge"),
    Command("export", "trainers:export", "Trainers"),
    Command("import-plan", "trainers:import_plan", "Trainers"),
    Command("import-stats", "trainers:import_stats", "Trainers"),
    Command("torchrec-dry-run", "torchrec:torchrec_dry_run", "Trainers"),
    Command("serve", "serve:run", "Start"),
    Command("calibrate", "calibrate:run", "Start"),
    Command("list", "start:list_shipped", "Start"),
    Command("init", "start:init", "Start"),
)
"""A new command is a function with its options, in a file of this folder, and one line here."""
GONE = {
    "windows": "state the worst batch of a run as access.peak_skew in the model, and audit the "
    "plan",
    "route": "in Python, cuda_routing.report.route_report(keys, ranks) answers it, and "
    "cuda_routing.plot draws it (docs/routing/which-rule.md)",
    "simulate": "benchmarks/simulator/simulate.py, in the repository, replays lookups",
    "fit-memory --facts": "it takes measured peaks; what DLRMv4's runs say is on docs/dlrmv4.md",
    **dict.fromkeys(
        ("explain --extra", "report --extra"),
        "--ask frontier takes --over hbm,ddr and --budgets N, or a list of sizes",
    ),
}
"""What replaced commands and options of earlier versions."""


def build() -> typer.Typer:
    """The application with every command in ``COMMANDS``."""
    app = typer.Typer(
        name="milp-planner",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
        epilog=EPILOG,
    )
    app.callback()(_root)
    for command in COMMANDS:
        app.command(command.name, rich_help_panel=command.panel)(_telling(command.load()))
    return app


#: Parameters that name what a command writes; files that others name are what it reads.
OUTPUTS = ("output", "csv", "page", "rows", "steps")


def _inputs(options: Mapping[str, object]) -> Iterator[Path]:
    """What the options of a command may name as files to read."""
    for name, value in options.items():
        if name not in OUTPUTS:
            for each in value if isinstance(value, list) else [value]:
                if isinstance(each, str | Path):
                    yield from map(Path, {str(each), *str(each).split(",")})


def _telling(command: Callable[..., None]) -> Callable[..., None]:
    """The command, whose inputs nothing replaces, with a message for an interruption, on which
    Typer exits silently."""

    @wraps(command)
    def wrapped(*arguments: object, **options: object) -> None:
        try:
            with keeping(_inputs(options)):
                command(*arguments, **options)
        except KeyboardInterrupt:
            raise typer.Abort from None

    return wrapped


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (by default the process's) and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if given.count("-") > 1:
            raise BadInput("- is given twice; standard input can be only one of the inputs")
        if given and given[0] in GONE:
            raise BadInput(f"the command {given[0]} is gone; {GONE[given[0]]}")
        for name in {" ".join((given[0], each.partition("=")[0])) for each in given[1:]} & {*GONE}:
            raise BadInput(f"{name} is gone: {GONE[name]}")
        result = build()(args=given, prog_name="milp-planner", standalone_mode=False)
    except (Exception, KeyboardInterrupt) as error:
        return failures.report(error, failures.wants_json(given))
    finally:
        let_go()
    return result if isinstance(result, int) else 0


def main() -> None:
    """Console entry point."""
    failures.open_streams()
    code = failures.close_output(run(), failures.wants_json(sys.argv[1:]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # all output is written
    sys.stderr.flush()
    os._exit(code)  # a thread left in a solver aborts a regular exit, and freeing takes seconds


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"milp-planner {__version__}")
        raise typer.Exit


_VersionOption = Annotated[
    bool,
    typer.Option(
        "--version", is_eager=True, callback=_print_version, help="Print the version and exit."
    ),
]


def _root(version: _VersionOption = False) -> None:
    """Place embedding tables on GPU clusters by exact optimisation, with proofs."""


if __name__ == "__main__":
    main()
