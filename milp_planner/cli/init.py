"""``milp-planner init``: commented starter files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from milp_planner.cli import console
from milp_planner.cli.options import JsonOption, argument

FolderArgument = Annotated[Path, argument("[FOLDER]", "Folder for the files.")]


def run(folder: FolderArgument = Path(), json: JsonOption = False) -> None:
    """Write commented starter files.

    A model.yaml and a cluster.yaml to start from; nothing is overwritten.
    """
    from milp_planner.inputs.starters import write_starters

    written = [str(path) for path in write_starters(folder)]
    lines = [f"written: {path}" for path in written]
    lines.append(f"next: milp-planner plan {' '.join(sorted(written, reverse=True))}")
    console.tell(json, lambda: {"written": written}, lambda: lines)
