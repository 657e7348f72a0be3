"""``milp-planner solve``: the raw mathematics on an instance file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from milp_planner.cli import console
from milp_planner.cli.failures import finish
from milp_planner.cli.options import (
    AllRowsOption,
    FormulationOption,
    JsonOption,
    ObjectiveName,
    OtherTimeLimitOption,
    OutputOption,
    SeedOption,
    SettingOption,
    WorkersOption,
    WorkLimitOption,
    argument,
    make_settings,
    option,
)
from milp_planner.cli.work import Work
from milp_planner.files import check_writable, write_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from formulations import Instance, Outcome

InstanceArgument = Annotated[
    Path,
    argument(
        "INSTANCE", "Instance file (.json, .json.gz), or an MMKP or GAP file of the literature."
    ),
]
OtherObjective = Annotated[
    ObjectiveName | None, option("--objective", "Instead of the file's own objective.")
]


def run(  # noqa: PLR0913 - one parameter an option is how Typer declares a command
    instance: InstanceArgument,
    formulation: FormulationOption = "auto",
    objective: OtherObjective = None,
    time_limit: OtherTimeLimitOption = None,
    work_limit: WorkLimitOption = None,
    seed: SeedOption = 0,
    workers: WorkersOption = None,
    settings: SettingOption = None,
    output: OutputOption = None,
    everything: AllRowsOption = False,
    json: JsonOption = False,
) -> None:
    """Solve an instance file: the mathematics alone.

    Nothing here is about embeddings: tables, options, uses and costs come from the file.
    """
    from formulations import solve
    from formulations.result.outcome_file import outcome_to_dict
    from milp_planner.features.plan.shortage import with_diagnosis

    limits = make_settings(
        time_limit, work_limit=work_limit, seed=seed, workers=workers, options=settings,
        formulation=formulation,
    )  # fmt: skip
    check_writable(output)
    problem = read(instance, objective)
    work = Work(formulation, problem.time_unit)
    watched = work.settings(limits)
    outcome = work.run(
        lambda: with_diagnosis(problem, solve(problem, formulation, watched), watched)
    )
    document = outcome_to_dict(problem, outcome)
    if output is not None:
        write_json(output, document)
    console.tell(json, lambda: document, lambda: drawn(problem, outcome, everything), output)
    finish(outcome.status.value, work.interrupted)


def read(path: Path, objective: ObjectiveName | None = None) -> Instance:
    """Any instance this project knows, with its objective replaced where asked.

    Raises
    ------
    InstanceError
        When the file is malformed, or its costs do not allow the objective.
    """
    from dataclasses import replace

    from formulations import Objective
    from formulations.convert import read_any
    from formulations.instance.validate import validate

    instance = read_any(path)
    if objective is None or objective.value == instance.objective.value:
        return instance
    changed = replace(instance, objective=Objective(objective.value))
    validate(changed)
    return changed


def drawn(
    instance: Instance, outcome: Outcome, everything: bool = False
) -> Iterator[RenderableType]:
    """The verdict, then tables and ranks where there is a plan."""
    from milp_planner.features.plan.ranks import draw_ranks, ranks_of
    from milp_planner.features.plan.shortage import draw_shortage, shortage_of
    from milp_planner.features.plan.tables import draw_tables, tables_of
    from milp_planner.features.plan.verdict import draw_verdict, verdict_of

    yield draw_verdict(verdict_of(instance, outcome), instance.name)
    shortage = shortage_of(outcome.detail)
    if shortage is not None:
        yield draw_shortage(shortage, instance.time_unit)
    if outcome.placement is not None:
        yield draw_tables(tables_of(instance, outcome.placement), everything)
        yield draw_ranks(ranks_of(instance, outcome.placement), everything)
