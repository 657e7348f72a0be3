"""``milp-planner import-plan``: a trainer's own settings, read back as pins of a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from milp_planner.cli import console
from milp_planner.cli.options import JsonOption, ModelArgument, OutputOption, argument, option
from milp_planner.files import check_writable, write_atomically

if TYPE_CHECKING:
    from milp_planner.inputs.table import Pin

FileArgument = Annotated[
    Path, argument("FILE", "A file that export wrote, or your own in that format.")
]
FromOption = Annotated[str, option("--from FORMAT", "torchrec, dynamicemb, tzrec or dlrmv4.")]


def run(
    file: FileArgument,
    model: ModelArgument,
    format: FromOption,
    output: OutputOption = None,
    json: JsonOption = False,
) -> None:
    """Read a trainer's settings back and pin a model's tables to them.

    With -o the pinned model is written as YAML, so that plan prices and bounds exactly what your
    trainer would run, and fills in what it leaves open.
    """
    import yaml

    from milp_planner.inputs.strict_yaml import read_text
    from milp_planner.integrations import exports
    from milp_planner.integrations.exports.pins import with_pins, with_workload
    from scenarios import catalog

    exports.get(format)
    check_writable(output)
    text = read_text(file)
    found = catalog.find_model(model)
    pins = exports.read(text, format, found)
    workload = exports.workload(text, format, found)
    if output is not None:
        changed = with_workload(with_pins(found, pins), workload).to_dict()
        write_atomically(output, yaml.safe_dump(changed, sort_keys=False))
    for sentence in exports.unread(text, format):
        console.err().print(f"note: {sentence}", markup=False)
    lines = [f"{name}: {_words(pin)}" for name, pin in pins.items()]
    lines += [f"workload {field}: {value}" for field, value in workload.items()]
    pinned = {name: pin.to_dict() for name, pin in pins.items()}
    console.tell(json, lambda: pinned, lambda: lines, output)


def _words(pin: Pin) -> str:
    said = {key: value for key, value in pin.to_dict().items() if value is not None}
    if not said:
        return "left to the trainer"
    return ", ".join(f"{key} {value}" for key, value in said.items())
