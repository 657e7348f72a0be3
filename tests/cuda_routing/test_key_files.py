"""Keys from files of every kind, read in pieces, and what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from cuda_routing.errors import RoutingError
from cuda_routing.key_files import KeyFiles

KEYS = np.array([5, -1, 2**62, 7, 7, 0, 3], dtype=np.int64)


def write(folder: Path, name: str) -> Path:
    """Write the keys in the format that the name's ending says."""
    path = folder / name
    text = "".join(f"{key}\n" for key in KEYS[:3].tolist()) + "\n" + "7\n7 \n0\n3"
    if name.endswith(".npy"):
        np.save(path, KEYS)
    elif name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode(), mtime=0))
    elif name.endswith((".txt", ".csv")):
        path.write_text(text)
    else:
        KEYS.tofile(path)
    return path


@pytest.mark.parametrize("name", ["k.npy", "k.bin", "k.i64", "k.txt", "k.csv", "k.txt.gz"])
@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_every_kind_in_pieces(tmp_path: Path, name: str, chunk: int) -> None:
    """Pieces stay within the asked size, add up to the keys, and can be read again."""
    files = KeyFiles([write(tmp_path, name)], chunk)
    for _ in range(2):
        pieces = list(files)
        assert max(piece.size for piece in pieces) <= chunk
        assert np.concatenate(pieces).tolist() == KEYS.tolist()


def test_several_files_follow_each_other(tmp_path: Path) -> None:
    """Files are read in the order given; raw 32-bit keys keep their type."""
    small = tmp_path / "s.i32"
    np.array([1, 2], np.int32).tofile(small)
    pieces = list(KeyFiles([small, write(tmp_path, "k.npy")]))
    assert pieces[0].dtype == np.int32
    assert [len(piece) for piece in pieces] == [2, 7]


LITERAL = "{'descr': '<i8', 'fortran_order': False, 'shape': "


def npy(header: str) -> bytes:
    """A .npy of eight keys with any text for its header."""
    text = header.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + bytes(64)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.txt", b"1\n2\nx3\n", "line 3: 'x3'"),
        ("a.txt", b"1\n99999999999999999999\n", "line 2"),
        ("a.bin", b"1234567", "cut short"),
        ("a.npy", b"not an array", "not a .npy array"),
        ("a.npy", npy(f"{LITERAL}({'9' * 29},)}}"), "not a .npy"),
        ("a.npy", npy(LITERAL + "(08,)}"), "not a .npy"),
        ("a.npy", npy(LITERAL + "(8,"), "not a .npy"),
        ("a.npy", npy(LITERAL + "{}}"), "not a .npy"),
        ("a.npy", npy("(" * 100 + ")" * 9), "not a .npy"),
        ("a.parquet", b"", "allowed are .npy"),
        ("a.txt.gz", b"no gzip", "cannot be read"),
        ("a.txt", b"\xff\xfe", "cannot be read"),
    ],
)
def test_refusals(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    """The error names each damaged or unknown file, and the line of a text file."""
    (tmp_path / name).write_bytes(content)
    with pytest.raises(RoutingError, match=words):
        list(KeyFiles([tmp_path / name]))


def test_wrong_array_and_absent_file(tmp_path: Path) -> None:
    """Floats are not keys, and a file must exist."""
    np.save(tmp_path / "f.npy", np.ones(3))
    with pytest.raises(RoutingError, match="float64"):
        list(KeyFiles([tmp_path / "f.npy"]))
    with pytest.raises(RoutingError, match="not a file"):
        list(KeyFiles([tmp_path / "none.npy"]))
