"""``milp-planner import-torchrec``: a TorchRec model to an instance, an outcome to its plan."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from milp_planner.cli import console
from milp_planner.cli.options import JsonOption, OutputOption, argument, option
from milp_planner.errors import BadInput
from milp_planner.files import check_writable, write_json

if TYPE_CHECKING:
    from milp_planner.integrations.torchrec import Lift, Problem, TorchRecInputs


class DdrName(StrEnum):
    """What DDR limits."""

    RANK = "rank"
    MACHINE = "machine"


ReferenceArgument = Annotated[
    str,
    argument(
        "MODULE:FUNCTION",
        "Your function without arguments (file.py:function works too) that returns "
        "TorchRecInputs or a dict: module, topology, and if wanted sharders, batch_size, "
        "constraints, enumerator, storage_reservation.",
    ),
]
DdrOption = Annotated[
    DdrName, option("--ddr", "DDR limits each rank, as in TorchRec, or the machine.")
]
WidthsOption = Annotated[
    str | None, option("--column-widths all|N,N,…", "Further column widths to try for every table.")
]
FactorsOption = Annotated[
    str | None, option("--load-factors X,X,…", "Further cache load factors to try for every table.")
]
OutcomeOption = Annotated[
    Path | None,
    option(
        "--outcome FILE",
        "An outcome of the instance, as solve writes it: write TorchRec's ShardingPlan.",
    ),
]


def run(
    reference: ReferenceArgument,
    output: OutputOption = None,
    outcome: OutcomeOption = None,
    ddr: DdrOption = DdrName.RANK,
    column_widths: WidthsOption = None,
    load_factors: FactorsOption = None,
    json: JsonOption = False,
) -> None:
    """Turn a TorchRec model into an instance, and an outcome of it into TorchRec's plan.

    Without --outcome: runs TorchRec's own reservation, enumerator and estimators and writes the
    instance that solve takes. With --outcome: writes the ShardingPlan as JSON.
    """
    from milp_planner.integrations.torchrec import load_inputs

    check_writable(output)
    limits = _lift(column_widths, load_factors)
    inputs = load_inputs(reference)
    problem = _problem(inputs, reference, ddr, limits)
    if outcome is None:
        document = _instance(problem, reference, output)
    else:
        document = _plan(problem, inputs, outcome, output)
    as_json = json or output is None
    console.tell(as_json, lambda: document, lambda: [_size(problem)], output)


def _lift(widths: str | None, factors: str | None) -> Lift | None:
    from milp_planner.integrations.torchrec import Lift

    if widths is None and factors is None:
        return None
    try:
        listed = "all" if widths == "all" else [int(w) for w in (widths or "").split(",") if w]
        ratios = [float(f) for f in (factors or "").split(",") if f]
    except ValueError:
        raise BadInput(
            f"--column-widths {widths!r}, --load-factors {factors!r}: need numbers with commas"
        ) from None
    return Lift(listed, ratios)


def _problem(inputs: TorchRecInputs, reference: str, ddr: DdrName, limits: Lift | None) -> Problem:
    from torchrec.distributed.planner.types import PlannerError

    planner = inputs.planner(stats=[], ddr=ddr.value, lift=limits)
    try:
        problem = planner.prepare(inputs.module, inputs.all_sharders())
    except (PlannerError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise BadInput(f"{reference}: TorchRec refuses the model: {reason}") from None
    if problem is None:
        raise BadInput(f"{reference}: its module has no table that its sharders can shard")
    return problem


def _instance(problem: Problem, reference: str, output: Path | None) -> dict[str, Any]:
    from dataclasses import replace

    from formulations import write_instance
    from formulations.instance.file import instance_to_dict

    named = replace(problem.instance, name=reference.rpartition(":")[2])
    if output is not None:
        write_instance(named, output)
    return instance_to_dict(named)


def _plan(
    problem: Problem, inputs: TorchRecInputs, outcome: Path, output: Path | None
) -> dict[str, Any]:
    from torchrec.distributed.planner.planners import to_sharding_plan

    from formulations import check
    from formulations.result.outcome_file import read_outcome
    from milp_planner.integrations.torchrec.sharding_plan import to_document

    placement = read_outcome(problem.instance, outcome).placement
    if placement is None:
        raise BadInput(f"{outcome}: holds no placement, so there is no plan to write")
    verdict = check(problem.instance, placement)
    if not verdict.feasible:
        raise BadInput(f"{outcome}: its placement breaks the model: {verdict.violations[0]}")
    topology = inputs.topology
    document = to_document(
        to_sharding_plan(problem.apply(placement), topology),
        topology.world_size,
        topology.local_world_size,
        topology.compute_device,
    )
    if output is not None:
        write_json(output, document)
    return document


def _size(problem: Problem) -> str:
    instance = problem.instance
    return (
        f"{instance.num_tables} tables, {instance.num_options} options, "
        f"{instance.num_ranks} ranks on {len(instance.machines)} machines"
    )
