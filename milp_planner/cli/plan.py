"""``milp-planner plan`` and ``solve``: tables and a cluster, or an instance, to a proved plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from milp_planner.cli import console, options, readers
from milp_planner.cli.console import Work
from milp_planner.cli.failures import finish, say
from milp_planner.cli.options import argument, asking, option
from milp_planner.errors import BadInput
from milp_planner.files import check_absent, check_writable, write_json
from milp_planner.request import Aims, Limits, PlanRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rich.console import RenderableType

    from formulations import Instance, Outcome
    from milp_planner.plans.ledger import LedgerInfo
    from milp_planner.plans.placement import Plan

PLAN_FILE = "plan.json"
TOLD_ABOVE = 1.0
"""Seconds beside planning that are worth a line."""


@asking(PlanRequest)
def plan(
    request: PlanRequest,
    *,
    no_cache: options.NoCacheOption = False,
    output: Annotated[
        Path | None,
        option(
            "--output -o FILE",
            f"Output file; default: {PLAN_FILE}, which must not exist yet, or none with --json.",
        ),
    ] = None,
    everything: options.AllRowsOption = False,
    json: options.JsonOption = False,
) -> None:
    """Find the best placement of every table, and prove how good it is.

    Prints the verdict, the tables and the ranks, and writes plan.json, which verify, explain,
    export and report read. An existing plan.json is overwritten only if -o names it. If no plan
    exists, the output says why and what would help (exit code 1). With --for, the plan is the best
    found that a trainer's own planner can be made to run, on the ranks where it runs
    (docs/from-plan-to-run.md). With --start, the search starts from the plan you run, or from an
    earlier one, and prefers plans that move little of it (docs/replan.md).
    """
    from formulations.runtime.timing import CallTime
    from milp_planner.features.plan.call import check, planned
    from milp_planner.plans.plan_file import plan_to_dict, write_plan

    target, rest = output or (None if json else Path(PLAN_FILE)), CallTime()
    check_writable(target, kind="plan")
    kept = readers.find_cache(request.cache, no_cache)
    with rest.stage("reading"):
        tables, place = readers.find(request)
        found: dict[str, object] = {"model": tables, "cluster": place, "cache": kept, "change": {}}
        if request.start is not None:
            found["start"] = readers.find_start(request.start, tables, place)
    if output is None and target is not None and target.exists():
        if problems := check(tables, place, profile=request.profile):  # mistakes are told first
            raise BadInput.of(problems)
        check_absent(target, f"-o {target} overwrites it")
    work = Work("pricing", prepares=True)
    asked = request.model_copy(update=found)
    plan = work.run(lambda: planned(asked, work.callbacks()))
    if kept is not None and kept.answered:
        say(f"answered from the cache in {kept.folder}; --no-cache solves again")
    if target is not None:
        with rest.stage("writing"):
            write_plan(plan, target)
    with rest.stage("showing"):
        console.tell(json, lambda: plan_to_dict(plan), lambda: _shown(plan, everything), target)
    if (told := rest_told(rest.told())) is not None:
        say(told)
    finish(plan.outcome.status.value, work.interrupted)


def rest_told(stages: Mapping[str, float]) -> str | None:
    """The seconds that a command took beside planning, if they are worth a line."""
    from milp_planner.drawing.units import show_seconds

    seconds = sum(stages.values())
    if seconds <= TOLD_ABOVE:
        return None
    each = (f"{name} {show_seconds(value)}" for name, value in stages.items())
    return f"beside planning {show_seconds(seconds)}: {', '.join(each)}"


def _shown(plan: Plan, everything: bool = False) -> Iterator[RenderableType]:
    """The verdict, then tables and ranks, or why there is no plan."""
    from rich.text import Text

    from milp_planner.features.explain.slowest import draw_slowest, slowest_of
    from milp_planner.features.plan.divisions import divisions_of, draw_divisions
    from milp_planner.features.plan.held import draw_held, held_info
    from milp_planner.features.plan.tables import MOST_TABLES
    from milp_planner.integrations.replay.plan_for import told
    from milp_planner.plans.moving import moved_of, moved_told, moving_told
    from milp_planner.plans.origins import origins_grid, origins_of
    from milp_planner.plans.origins import told as origins_told
    from milp_planner.plans.warnings import (
        cache_warnings,
        hit_warnings,
        hot_warnings,
        width_warnings,
    )

    held = held_info(plan)
    ledger = None if held is None else held.ledger
    parts = drawn(plan.instance, plan.outcome, everything, ledger)
    yield next(parts)
    if (sentence := told(plan)) is not None:
        yield Text(sentence)
    divisions = divisions_of(plan)
    if divisions is not None:
        yield draw_divisions(divisions)
    if len(plan.tables) > MOST_TABLES:  # a shortened list starts with what matters most
        yield draw_slowest(slowest_of(plan))
    yield from parts
    if held is not None:
        yield draw_held(held)
    origins = origins_of(plan, ledger)
    if origins is not None:
        yield from map(Text, origins_told(origins))
        if everything:
            yield origins_grid(origins)
    moved = moved_of(plan)
    if moved is not None:
        yield from (*moved_told(moved), *moving_told(plan))
    of_plan = hot_warnings, hit_warnings, width_warnings, cache_warnings
    yield from (sentence for warn in of_plan for sentence in warn(plan))


@asking(Aims, "objective", *Limits.model_fields)
def solve(
    request: Aims,
    *,
    instance: Annotated[
        Path,
        argument(
            "INSTANCE",
            "Instance file (.json, .json.gz).",
        ),
    ],
    output: options.OutputOption = None,
    everything: options.AllRowsOption = False,
    json: options.JsonOption = False,
) -> None:
    """Solve an instance file: the mathematics alone.

    This command knows nothing about embeddings: tables, options, uses and costs come from the file,
    and so does the objective, unless --objective names another.
    """
    from formulations import solve as solved
    from formulations.result.outcome_file import outcome_to_dict
    from milp_planner.features.plan.shortage import with_diagnosis

    check_writable(output, kind="outcome")
    problem = read(instance, request.given.get("objective"))
    work = Work(request.formulation, problem.time_unit)
    watched = work.settings(request.settings())
    outcome = work.run(
        lambda: with_diagnosis(problem, solved(problem, request.formulation, watched), watched)
    )
    document = outcome_to_dict(problem, outcome)
    if output is not None:
        write_json(output, document)
    console.tell(json, lambda: document, lambda: drawn(problem, outcome, everything), output)
    finish(outcome.status.value, work.interrupted)


def read(path: Path, objective: str | None = None) -> Instance:
    """Read an instance; ``objective`` replaces the file's."""
    from dataclasses import replace

    from formulations import Objective, read_instance
    from formulations.instance.validate import validate

    instance = read_instance(path)
    if objective is None or objective == instance.objective.value:
        return instance
    changed = replace(instance, objective=Objective(objective))
    validate(changed)
    return changed


def drawn(
    instance: Instance,
    outcome: Outcome,
    everything: bool = False,
    ledger: LedgerInfo | None = None,
) -> Iterator[RenderableType]:
    """The verdict, then tables and ranks if there is a plan."""
    from milp_planner.features.plan.ranks import draw_ranks, ranks_of
    from milp_planner.features.plan.shortage import draw_shortage, shortage_of
    from milp_planner.features.plan.tables import draw_tables, tables_of
    from milp_planner.features.plan.verdict import draw_verdict, verdict_of

    yield draw_verdict(verdict_of(instance, outcome, ledger), instance.name)
    shortage = shortage_of(outcome.detail)
    if shortage is not None:
        yield draw_shortage(shortage, instance.time_unit)
    if outcome.placement is not None:
        yield draw_tables(tables_of(instance, outcome.placement), everything)
        yield draw_ranks(ranks_of(instance, outcome.placement, ledger), everything)
