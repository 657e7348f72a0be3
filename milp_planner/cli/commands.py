"""The table of commands: a new command is one file with a function ``run``, and one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True)
class Command:
    """One command of ``milp-planner``.

    Attributes
    ----------
    name : str
        As typed.
    module : str
        Module whose function ``run`` carries the command's options and docstring.
    panel : str
        Heading under which ``--help`` lists it.
    """

    name: str
    module: str
    panel: str

    def load(self) -> Callable[..., None]:
        """Import the function behind the command (its module must import nothing heavy)."""
        function: Callable[..., None] = import_module(self.module).run
        return function


COMMANDS = (
    Command("plan", "milp_planner.cli.plan", "Plan"),
    Command("compare", "milp_planner.cli.compare", "Plan"),
    Command("check", "milp_planner.cli.check", "Plan"),
    Command("solve", "milp_planner.cli.solve", "Plan"),
    Command("batch", "milp_planner.cli.batch", "Plan"),
    Command("verify", "milp_planner.cli.verify", "Judge"),
    Command("audit", "milp_planner.cli.audit", "Judge"),
    Command("explain", "milp_planner.cli.explain", "Judge"),
    Command("report", "milp_planner.cli.report", "Judge"),
    Command("simulate", "milp_planner.cli.simulate", "Judge"),
    Command("route", "milp_planner.cli.route", "Judge"),
    Command("export", "milp_planner.cli.export", "Trainers"),
    Command("import-plan", "milp_planner.cli.import_plan", "Trainers"),
    Command("import-stats", "milp_planner.cli.import_stats", "Trainers"),
    Command("import-torchrec", "milp_planner.cli.import_torchrec", "Trainers"),
    Command("torchrec-dry-run", "milp_planner.cli.torchrec_dry_run", "Trainers"),
    Command("calibrate", "milp_planner.cli.calibrate", "Start"),
    Command("list", "milp_planner.cli.list_shipped", "Start"),
    Command("init", "milp_planner.cli.init", "Start"),
)
