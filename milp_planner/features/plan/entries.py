"""A folder of named entries with checksums, shared by processes and bounded in size."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from formulations.regular_file import read_regular
from milp_planner.errors import BadInput
from milp_planner.files import write_atomically

logger = logging.getLogger(__name__)
_DIGEST = 64


class Entries:
    """The files of a folder with a certain suffix.

    Parameters
    ----------
    folder : str or Path
        Created if it does not exist.
    suffix : str
    most : int
        Most bytes of all entries together; the least recently used are removed first.
    """

    def __init__(self, folder: str | Path, suffix: str, most: int) -> None:
        self.folder, self.suffix, self.most = Path(folder), suffix, most
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"cache: cannot use {folder} as a folder: {error.strerror}") from None

    def read(self, name: str) -> bytes | None:
        """The bytes written under a name; None if there are none, or if something else than a
        regular file of them is there."""
        try:
            content = read_regular(self._path(name), self.most)
        except OSError:
            return None
        digest, data = content[:_DIGEST], content[_DIGEST:]
        return data if digest == hashlib.sha256(data).hexdigest().encode() else None

    def write(self, name: str, data: bytes) -> None:
        """Write an entry atomically, removing others to make room; the log says if it cannot be
        written, as an answer that is not stored is still an answer."""
        try:
            write_atomically(self._path(name), hashlib.sha256(data).hexdigest().encode() + data)
        except BadInput as error:
            logger.warning("cache: the plan is not stored: %s", error)
            return
        left = self.most
        for _, size, path in sorted(self._all(), reverse=True):
            left -= size
            if left < 0:
                with contextlib.suppress(OSError):  # another process removed it first
                    path.unlink()

    def used(self, name: str) -> None:
        """Mark an entry as just used."""
        with contextlib.suppress(OSError):  # another process may have removed it
            os.utime(self._path(name))

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}{self.suffix}"

    def _all(self) -> Iterator[tuple[int, int, Path]]:
        """Time of last use, size in bytes, and path of each entry."""
        for path in self.folder.glob(f"*{self.suffix}"):
            with contextlib.suppress(OSError):
                known = path.stat()
                yield known.st_mtime_ns, known.st_size, path
