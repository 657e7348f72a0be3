"""``export``, ``import-plan`` and ``import-stats``: convert plans to trainers' formats and back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from milp_planner.cli import console
from milp_planner.cli.options import (
    JsonOption,
    ModelArgument,
    OutputOption,
    TorchRecOption,
    argument,
    option,
)
from milp_planner.errors import BadInput
from milp_planner.files import check_absent, check_writable, write_atomically, write_together

if TYPE_CHECKING:
    from milp_planner.inputs.constraints import PinSpec

ToOption = Annotated[
    str,
    option(
        "--to FORMAT",
        "torchrec (ShardingPlan as JSON), torchrec-callback (a Python module that sets the ranks "
        "after a trainer's own planner), torchrec-reshard (moves from an earlier plan, as "
        "arguments of DMP.reshard), dynamicemb (table options, one set per fusion group), "
        "tzrec (TorchEasyRec config fragment), dlrmv4 (environment variables).",
    ),
]


def export(
    plan: Annotated[Path, argument("PLAN", "plan.json, as plan writes it.")],
    to: ToOption,
    torchrec: TorchRecOption = None,
    output: OutputOption = None,
    json: JsonOption = False,
) -> None:
    """Write a plan for TorchRec, dynamicemb, TorchEasyRec or DLRMv4.

    The result goes to stdout, or to a file with -o. What the trainer will run of it, where its own
    planner decides more than the file says, and notes on what the format cannot express go to
    stderr. A plan on which the trainer would stop or run out of memory is refused (exit code 1).
    """
    from milp_planner.integrations import exports
    from milp_planner.integrations.exports import dlrmv4
    from milp_planner.integrations.exports.nodes import check_version
    from milp_planner.integrations.replay.judge import judge
    from milp_planner.plans.plan_file import read_plan

    chosen = exports.get(to)
    check_writable(output)
    if torchrec is not None and to not in ("dlrmv4", "torchrec"):
        raise BadInput("--torchrec: goes with --to dlrmv4 or torchrec")
    settings = {} if torchrec is None or to == "torchrec" else {dlrmv4.TORCHREC: torchrec}
    found = read_plan(plan)
    if torchrec is not None and to == "torchrec":
        check_version(found, torchrec)
    judgement, _ = judge(found, to, settings)
    text, notes = exports.write(found, to, judgement.settings), chosen.notes(found)
    if output is not None:
        write_atomically(output, text)
    if json:
        told = {**judgement.to_dict(), "exact": judgement.exact}
        console.emit_json({"format": to, "text": text, "notes": notes, "runs": told})
        return
    for note in (*notes, *judgement.sentences()):
        console.err().print(f"note: {note}", markup=False)
    if output is None:
        typer.echo(text, nl=False)
    else:
        console.out().print(f"written: {output}")


def import_plan(
    file: Annotated[Path, argument("FILE", "Your trainer's file, or a file that export wrote.")],
    model: ModelArgument,
    format: Annotated[
        str,
        option("--from FORMAT", "torchrec, torchrec-callback, dynamicemb, tzrec, dlrmv4."),
    ],
    output: OutputOption = None,
    json: JsonOption = False,
) -> None:
    """Read a trainer's settings back and pin a model's tables to them.

    -o writes the pinned model as YAML, so that plan prices and bounds exactly what your trainer
    would run, and chooses what the file leaves open.
    """
    from milp_planner.inputs.strict_yaml import dump, read_text
    from milp_planner.integrations import exports
    from milp_planner.integrations.exports import with_pins, with_workload
    from scenarios import catalog

    exports.get(format)
    check_writable(output, kind="model")
    text = read_text(file)
    found = catalog.find_model(model)
    pins = exports.read(text, format, found)
    workload, unread = exports.workload(text, format, found), exports.unread(text, format)
    if output is not None:
        changed = with_workload(with_pins(found, pins), workload).to_dict()
        write_atomically(output, dump(changed))
    for sentence in unread:
        console.err().print(f"note: {sentence}", markup=False)
    lines = [f"{name}: {_words(pin)}" for name, pin in pins.items()]
    lines += [f"workload {field}: {value}" for field, value in workload.items()]
    pinned = {name: pin.to_dict() for name, pin in pins.items()}
    console.tell(json, lambda: pinned, lambda: lines, output)


def _words(pin: PinSpec) -> str:
    fixed = {key: value for key, value in pin.to_dict().items() if value is not None}
    if not fixed:
        return "left to the trainer"
    return ", ".join(f"{key} {value}" for key, value in fixed.items())


def import_stats(
    stats: Annotated[
        Path,
        argument(
            "STATS",
            "Output of TorchRec's planner (statistics with Parameter Info); may be gzipped.",
        ),
    ],
    output: Annotated[
        Path, option("--output -o FOLDER", "Folder for model.yaml and tables.csv.")
    ] = Path(),
    dtype: Annotated[str, option("--dtype TYPE", "Element type of the weights.")] = "fp32",
    optimizer: Annotated[
        str, option("--optimizer NAME", "Optimizer of the tables.")
    ] = "rowwise_adagrad",
    exchange: Annotated[str, option("--exchange-dtype TYPE", "Element type on the wire.")] = "fp32",
    json: JsonOption = False,
) -> None:
    """Turn the statistics that TorchRec prints into a model.

    Writes model.yaml and tables.csv; nothing is overwritten. The printout also describes today's
    plan: pass it to audit, or to plan --today.
    """
    from milp_planner.start.rows import printed_tables
    from milp_planner.start.torchrec_stats import model_files

    targets = [output / "model.yaml", output / "tables.csv"]
    for target in targets:
        check_absent(target, "nothing is overwritten")
    tables = printed_tables(stats)
    name = stats.name.removesuffix(".gz").removesuffix(".txt").lstrip("-") or "stats"
    texts = model_files(tables, name, dtype, optimizer, exchange)
    write_together(dict(zip(targets, texts, strict=True)))
    summary = {"written": [str(t) for t in targets], "tables": len(tables)}
    console.tell(json, lambda: summary, lambda: [f"{len(tables):,} tables"], *targets)
