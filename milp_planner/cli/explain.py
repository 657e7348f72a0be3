"""``milp-planner explain``: why this plan, what memory buys, what it takes to change it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from milp_planner.cli.explain_options import (
    AgainstOption,
    AlternativesOption,
    AskOption,
    ClusterOption,
    CommonOption,
    DrawsOption,
    ExtraOption,
    GridOption,
    LimitsOption,
    ModelOption,
    PlanArgument,
    ScenarioOption,
    SensitivityOption,
    SpreadOption,
    TableOption,
    TargetOption,
    WeightsOption,
    WorstOption,
)
from milp_planner.cli.options import (
    AllRowsOption,
    FormulationOption,
    JsonOption,
    OutputOption,
    SeedOption,
    TimeLimitOption,
    WorkersOption,
)

if TYPE_CHECKING:
    from milp_planner.explain.answers import Asked


def run(  # noqa: PLR0913 - one parameter an option is how Typer declares a command
    plan: PlanArgument,
    ask: AskOption = None,
    table: TableOption = None,
    alternatives: AlternativesOption = 3,
    extra: ExtraOption = "-10GB,-5GB,5GB,10GB,20GB",
    grid: GridOption = 4,
    target: TargetOption = None,
    limits: LimitsOption = "0,1,2,4,8",
    model: ModelOption = None,
    cluster: ClusterOption = None,
    against: AgainstOption = None,
    scenario: ScenarioOption = None,
    weights: WeightsOption = None,
    worst: WorstOption = False,
    sensitivity: SensitivityOption = False,
    spread: SpreadOption = 0.2,
    draws: DrawsOption = 20,
    robust: CommonOption = False,
    formulation: FormulationOption = "auto",
    time_limit: TimeLimitOption = 60.0,
    seed: SeedOption = 0,
    workers: WorkersOption = None,
    output: OutputOption = None,
    everything: AllRowsOption = False,
    json: JsonOption = False,
) -> None:
    """Explain a plan.

    Why each table is where it is and what the alternatives cost, what more memory buys, the
    smallest cluster that does, what changing the plan takes, and how wrong a price may be. Every
    figure is solved again or is a bound that says so. -o writes the plan that replan (at its
    largest limit), robust or --sensitivity --robust finds.
    """
    from dataclasses import replace

    from milp_planner.api.plan_files import read_plan, write_plan
    from milp_planner.cli import console
    from milp_planner.cli.limits import make_settings
    from milp_planner.cli.work import Work
    from milp_planner.errors import BadInput
    from milp_planner.explain.answer_files import answers_to_dict
    from milp_planner.explain.answers import answer
    from milp_planner.explain.budget import Budget
    from milp_planner.files import check_writable
    from milp_planner.hit_sources import hit_warnings
    from milp_planner.report.terminal.explain import draw_answers

    questions = parse_questions([*(ask or []), *(["sensitivity"] if sensitivity else [])])
    if robust and "sensitivity" not in questions:
        raise BadInput(
            "--robust: belongs to --sensitivity; for scenarios of your own use --ask robust"
        )
    if output is not None:
        _one_plan(questions, robust)
        check_writable(output)
    asked = _asked(table, alternatives, extra, target, limits)
    asked = _sources(asked, model, cluster, against)
    asked = _scenarios(asked, scenario or [], weights, worst)
    asked = replace(asked, grid=grid, spread=spread, draws=draws, common=robust)
    settings = make_settings(time_limit, seed=seed, workers=workers)
    read = read_plan(plan)
    work = Work("explaining")
    answers = work.run(
        lambda: answer(read, questions, asked, Budget(work.settings(settings), formulation))
    )
    found = answers.replanned or answers.common
    if output is not None and found is not None:
        write_plan(found, output)
    if json:
        console.emit_json(answers_to_dict(read, answers))
    else:
        console.out().print(draw_answers(answers, everything))
        for warning in hit_warnings(read):
            console.out().print(warning, markup=False)
    if work.interrupted:
        raise typer.Exit(130)
    if read.outcome.status.value == "infeasible" or (answers.replan and not answers.replanned):
        raise typer.Exit(1)


def _one_plan(questions: list[str], robust: bool) -> None:
    """Refuse -o where no question, or more than one, comes with a plan."""
    from milp_planner.errors import BadInput

    with_plan = {"replan", "robust", *(["sensitivity"] if robust else [])}
    writing = [name for name in questions if name in with_plan]
    if len(writing) != 1:
        raise BadInput(
            f"-o: {' and '.join(writing) or 'no question asked'} would write "
            f"{'a plan each' if writing else 'a plan'}; ask one of replan, robust, or sensitivity "
            "with --robust (answers themselves: --json)"
        )


def parse_questions(given: list[str]) -> list[str]:
    """Names of questions, commas allowed.

    Raises
    ------
    BadInput
        For an unknown one, with the nearest.
    """
    from milp_planner.errors import BadInput
    from milp_planner.explain.answers import QUESTIONS
    from milp_planner.inputs.problems import choice

    names = [part.strip() for text in given for part in text.split(",") if part.strip()]
    for name in names:
        if name not in QUESTIONS:
            raise BadInput(f"--ask {name!r}: {choice(name, QUESTIONS)}")
    return names


def parse_sizes(text: str, option: str) -> tuple[int, ...]:
    """Signed sizes such as ``-10GB,5GiB``, or plain whole numbers.

    Raises
    ------
    BadInput
        When one is no size.
    """
    from milp_planner.errors import BadInput
    from milp_planner.inputs.quantities import parse_bytes

    found = []
    for part in (p.strip() for p in text.split(",")):
        sign, size = (-1, part[1:]) if part.startswith("-") else (1, part.removeprefix("+"))
        try:
            found.append(sign * parse_bytes(int(size) if size.isdigit() else size))
        except ValueError as error:
            raise BadInput(f"{option} {part!r}: {error}") from None
    return tuple(found)


def parse_time(text: str) -> int:
    """A time such as ``2.5ms`` in picoseconds.

    Raises
    ------
    BadInput
        When it is none.
    """
    from decimal import Decimal, InvalidOperation

    from milp_planner.errors import BadInput

    units = {"ms": 10**9, "us": 10**6, "µs": 10**6, "ns": 10**3, "ps": 1, "s": 10**12}
    for unit, size in units.items():
        if text.strip().endswith(unit):
            try:
                value = Decimal(text.strip().removesuffix(unit).strip())
            except InvalidOperation:
                break
            if value.is_finite() and value > 0:
                return int(value * size)
            break
    raise BadInput(f"--target {text!r}: needs a time such as 2.5ms (s, ms, us, ns, ps)")


def _asked(
    table: list[str] | None, alternatives: int, extra: str, target: str | None, limits: str
) -> Asked:
    from milp_planner.errors import BadInput
    from milp_planner.explain.answers import Asked

    parts = [part.strip() for part in limits.split(",")]
    plain = [part.isascii() and part.isdigit() for part in parts]
    by = "tables" if all(plain) else "bytes"
    counted = tuple(int(p) for p in parts) if by == "tables" else parse_sizes(limits, "--limits")
    if min(counted) < 0:
        raise BadInput(f"--limits {limits!r}: needs whole numbers from 0, or sizes")
    return Asked(
        tables=tuple(table or ()),
        alternatives=alternatives,
        extras=parse_sizes(extra, "--extra"),
        target=None if target is None else parse_time(target),
        limits=counted,
        by=by,
    )


def _sources(asked: Asked, model: str | None, cluster: str | None, against: Path | None) -> Asked:
    from dataclasses import replace

    from milp_planner.api.plan_files import read_plan
    from scenarios import catalog

    return replace(
        asked,
        model=None if model is None else catalog.find_model(model),
        cluster=None if cluster is None else catalog.find_cluster(cluster),
        against=None if against is None else read_plan(against),
    )


def _weights(text: str | None) -> tuple[int, ...]:
    from milp_planner.errors import BadInput

    parts = [] if text is None else [part.strip() for part in text.split(",")]
    if not all(p.isascii() and p.isdigit() and 0 < int(p) < 10**6 for p in parts):
        raise BadInput(f"--weights {text!r}: needs whole numbers from 1 to 999999, such as 3,1")
    return tuple(int(p) for p in parts)


def _scenarios(asked: Asked, given: list[str], weights: str | None, worst: bool) -> Asked:
    from dataclasses import replace

    from milp_planner.errors import BadInput
    from scenarios import catalog

    found = []
    for text in given:
        model, at, cluster = text.rpartition("@")
        if not at or not (model or cluster):
            raise BadInput(f"--scenario {text!r}: needs MODEL@CLUSTER, MODEL@ or @CLUSTER")
        found.append(
            (
                catalog.find_model(model) if model else None,
                catalog.find_cluster(cluster) if cluster else None,
            )
        )
    return replace(asked, scenarios=tuple(found), weights=_weights(weights), worst=worst)
