"""Results on disk: one JSON line for each record, only appended, so that a kill loses nothing."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from formulations import InstanceError
from formulations.instance import strict_json
from milp_planner.errors import BadInput

FILE = "results.jsonl"
Record = dict[str, Any]


def read_records(folder: str | Path) -> Iterator[Record]:
    """Every complete record of a folder, oldest first; an incomplete last line is ignored.

    Raises
    ------
    BadInput
        When an earlier line is not a record, because something other than a batch changed the
        file.
    """
    path = Path(folder) / FILE
    if not path.is_file():
        return
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if line.endswith(b"\n"):
                yield _parse(line, f"{path}:{number}")


def latest(folder: str | Path) -> dict[str, Record]:
    """The newest record of every key."""
    return {record["key"]: record for record in read_records(folder)}


class Store:
    """The results of a folder, open for appending by one batch at a time.

    Parameters
    ----------
    folder
        Created if it does not exist.

    Raises
    ------
    BadInput
        When it cannot be written, or another batch is writing to it.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(self.folder / FILE, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise BadInput(f"cannot write {self.folder}: {error.strerror}") from None
        try:
            self._lock()
            self._drop_torn_line()
        except BaseException:
            os.close(self._handle)
            raise

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        os.close(self._handle)

    def append(self, record: Record) -> None:
        """Append one record and flush it to the disk.

        Raises
        ------
        BadInput
            When the disk is full; earlier records are kept.
        """
        line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        view = memoryview(line)
        try:
            while view:
                view = view[os.write(self._handle, view) :]
            os.fsync(self._handle)
        except OSError as error:
            raise BadInput(
                f"cannot write {self.folder / FILE}: {error.strerror}; earlier results are kept"
            ) from None

    def latest(self) -> dict[str, Record]:
        """The newest record of every key."""
        return latest(self.folder)

    def _lock(self) -> None:
        """Lock the file until it is closed, which happens however the process ends."""
        import fcntl

        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadInput(f"{self.folder}: another batch is writing its results here") from None

    def _drop_torn_line(self) -> None:
        size = os.fstat(self._handle).st_size
        end = size
        while end:
            start = max(0, end - 65_536)
            newline = os.pread(self._handle, end - start, start).rfind(b"\n")
            if newline >= 0:
                end = start + newline + 1
                break
            end = start
        if end != size:
            os.ftruncate(self._handle, end)


def _parse(line: bytes, where: str) -> Record:
    try:
        record = strict_json.parse(line, where)
    except InstanceError:
        record = None
    if not isinstance(record, dict) or not isinstance(record.get("key"), str):
        raise BadInput(f"{where}: is not a result of a batch; allowed: lines that a batch wrote")
    return record
