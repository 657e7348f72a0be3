"""Progress of a re-sharding, written after every piece and read when it is resumed."""

from __future__ import annotations

import zlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cuda_routing.checkpoints.layout import read_json, settle, write_json
from cuda_routing.errors import CheckpointError

NAME = "reshard-journal.json"


@dataclass
class Journal:
    """Progress, and the size and checksum of every file so far.

    Attributes
    ----------
    task : dict
        The task (source files, rule, world size); a resumed run must have the same.
    done : list of str
        Finished tables.
    rank, row : int
        Next source row of the table in progress.
    read_crc : dict of kind to int
        Checksum of what was read of the current rank's files.
    sizes, crc32 : dict of file name to int
        Bytes written, and their checksum.
    """

    task: dict[str, Any]
    done: list[str] = field(default_factory=list)
    rank: int = 0
    row: int = 0
    read_crc: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    crc32: dict[str, int] = field(default_factory=dict)

    def save(self, folder: Path, durable: bool) -> None:
        """Write the journal in one step."""
        write_json(folder / NAME, asdict(self), durable=durable)

    def append(self, folder: Path, name: str, data: memoryview, durable: bool) -> None:
        """Append to an output file and note its new size and checksum."""
        with (folder / name).open("ab") as file:
            file.write(data)
            settle(file, durable)
        self.sizes[name] = self.sizes.get(name, 0) + data.nbytes
        self.crc32[name] = zlib.crc32(data, self.crc32.get(name, 0))


def resume(folder: Path, task: dict[str, Any]) -> Journal:
    """Journal of an unfinished run, whose files are truncated to the recorded sizes, or a new one.

    Raises
    ------
    CheckpointError
        The unfinished run had another task, or one of its files has become shorter.
    """
    if not (folder / NAME).is_file():
        folder.mkdir(parents=True, exist_ok=True)
        for leftover in folder.iterdir():  # a run that ended before its first journal
            leftover.unlink()
        return Journal(task)
    journal = Journal(**read_json(folder / NAME))
    if journal.task != task:
        changed = sorted(key for key in task if journal.task.get(key) != task[key])
        raise CheckpointError(
            f"{folder} holds an unfinished re-sharding of another task "
            f"({', '.join(changed)} differ): finish that one, or delete the folder"
        )
    for path in folder.iterdir():
        if path.name == NAME:
            continue
        size = journal.sizes.get(path.name)
        if size is None:
            path.unlink()
        elif path.stat().st_size < size:
            raise CheckpointError(f"{path} lost data since the interruption: delete {folder}")
        else:
            with path.open("r+b") as file:
                file.truncate(size)
    return journal
