"""``milp-planner init``: commented starter files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from milp_planner.cli.options import JsonOption

FolderArgument = Annotated[Path, typer.Argument(metavar="[FOLDER]", help="Where to write them.")]


def run(folder: FolderArgument = Path(), json: JsonOption = False) -> None:
    """Write commented starter files.

    A model.yaml and a cluster.yaml to start from; nothing is overwritten.
    """
    from milp_planner.cli import console
    from milp_planner.inputs.starters import write_starters

    written = [str(path) for path in write_starters(folder)]
    if json:
        console.emit_json({"written": written})
        return
    out = console.out()
    for path in written:
        out.print(f"written: {path}")
    out.print(f"next: milp-planner plan {' '.join(sorted(written, reverse=True))}")
