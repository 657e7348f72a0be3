"""Commented starter files, for people who begin with an empty folder."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from milp_planner.errors import BadInput
from milp_planner.files import check_writable, write_atomically

STARTERS = ("model.yaml", "cluster.yaml")
"""Names of the starter files."""


def write_starters(folder: str | Path) -> tuple[Path, ...]:
    """Write ``model.yaml`` and ``cluster.yaml`` into a folder.

    Returns
    -------
    tuple of Path
        The files, in the order of ``STARTERS``.

    Raises
    ------
    BadInput
        When the folder is absent or not writable, or one of the files exists already; then
        nothing is written.
    """
    targets = tuple(Path(folder) / name for name in STARTERS)
    for target in targets:
        check_writable(target)
        if target.exists() or target.is_symlink():
            raise BadInput(f"{target} exists already; move it away or name another folder")
    for target in targets:
        write_atomically(target, files(__name__).joinpath(target.name).read_text("utf-8"))
    return targets
