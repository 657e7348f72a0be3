"""Keys from files larger than memory, read piece by piece and as often as needed."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from cuda_routing.errors import RoutingError
from cuda_routing.rules import Int64Array

CHUNK = 1 << 20
RAW: dict[str, np.dtype[Any]] = {
    ".bin": np.dtype("<i8"),
    ".i64": np.dtype("<i8"),
    ".i32": np.dtype("<i4"),
}
TEXT = (".txt", ".csv")
#: What NumPy raises for a damaged .npy, whose header is a Python literal.
_DAMAGED = (
    ValueError, OSError, EOFError, SyntaxError, TypeError, KeyError, OverflowError, MemoryError,
    RecursionError, TokenError,
)  # fmt: skip


@dataclass(frozen=True)
class KeyFiles:
    """Keys of one or several files; iterating reads them anew each time.

    Attributes
    ----------
    paths : sequence of path
        ``.npy`` (one integer array), ``.bin`` / ``.i64`` / ``.i32`` (raw little-endian), ``.txt`` /
        ``.csv`` (one key per line), with text files optionally ``.gz``.
    chunk : int
        Keys in memory at a time.
    """

    paths: Sequence[Path]
    chunk: int = CHUNK

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Pieces of at most ``chunk`` keys, in file order.

        Raises
        ------
        RoutingError
            A file is absent, of an unknown kind, cut short, or holds something that is not a key.
        """
        for path in self.paths:
            yield from _pieces(Path(path), self.chunk)


def _pieces(path: Path, chunk: int) -> Iterator[NDArray[Any]]:
    if not path.is_file():
        raise RoutingError(f"{path} is not a file of keys")
    suffix = path.suffix.lower()
    if suffix == ".npy":
        yield from _from_npy(path, chunk)
    elif suffix in RAW:
        yield from _from_raw(path, RAW[suffix], chunk)
    elif suffix in TEXT or (suffix == ".gz" and path.with_suffix("").suffix in TEXT):
        yield from _from_text(path, chunk)
    else:
        known = ", ".join([".npy", *RAW, *TEXT, *(f"{kind}.gz" for kind in TEXT)])
        raise RoutingError(f"{path}: unknown kind of file, allowed are {known}")


def _from_npy(path: Path, chunk: int) -> Iterator[NDArray[Any]]:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except _DAMAGED as error:
        raise RoutingError(f"{path} is not a .npy array: {' '.join(str(error).split())}") from None
    if array.dtype.kind not in "iu" or array.dtype.itemsize not in (4, 8):
        raise RoutingError(f"{path} holds {array.dtype}, keys must be 32 or 64-bit integers")
    flat = array.reshape(-1)
    for start in range(0, flat.size, chunk):
        yield np.array(flat[start : start + chunk])


def _from_raw(path: Path, dtype: np.dtype[Any], chunk: int) -> Iterator[NDArray[Any]]:
    size = path.stat().st_size
    if size % dtype.itemsize:
        raise RoutingError(
            f"{path} has {size} bytes, not a multiple of {dtype.itemsize}: it was cut short"
        )
    for start in range(0, size, chunk * dtype.itemsize):
        yield np.fromfile(path, dtype, count=chunk, offset=start)


def _from_text(path: Path, chunk: int) -> Iterator[Int64Array]:
    line = 0
    try:
        with _open_text(path) as file:
            while lines := list(islice(file, chunk)):
                yield _parse(path, lines, line)
                line += len(lines)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise RoutingError(f"{path} cannot be read as text: {error}") from None


def _open_text(path: Path) -> IO[str]:
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def _parse(path: Path, lines: list[str], before: int) -> Int64Array:
    """Keys of some lines; blank lines are skipped, and anything else is an error that names its
    line."""
    texts = [text for text in map(str.strip, lines) if text]
    try:
        return np.array([int(text) for text in texts], dtype=np.int64)
    except (ValueError, OverflowError):
        for number, text in enumerate(lines, before + 1):
            if not _is_key(text.strip()):
                raise RoutingError(
                    f"{path}, line {number}: {text.strip()!r} is not a 64-bit integer"
                ) from None
        raise


def _is_key(text: str) -> bool:
    try:
        return not text or -(2**63) <= int(text) < 2**63
    except ValueError:
        return False
