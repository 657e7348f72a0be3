"""Files of a checkpoint: names, metadata and manifests, and when a checkpoint is complete.

Per table and rank, as dynamicemb writes them (NVIDIA/recsys-examples, ``key_value_table.py``):
``{table}_emb_{keys,values,scores,opt_values}.rank_R.world_size_W``, raw little-endian rows, and
``{table}_opt_args.json`` with ``dist_type`` and ``evict_strategy``. A key has one score word, or
two under a compound score strategy, (TIMESTAMP, LFU) or (LFU, TIMESTAMP): its words lie side by
side, in the order that the strategy names. We add a manifest per rank with sizes and checksums,
written last, so that a file cut short cannot pass for a whole one.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cuda_routing.errors import CheckpointError
from cuda_routing.rules import INDEX_TYPES, Rule, block_size_of

KINDS = ("keys", "values", "scores", "opt_values")
KEY_BYTES = 8
SCORE_BYTES = 8
SCORE_WORDS = (1, 2)
"""Words of a key's score: one, or those of a compound strategy."""
_FILE = re.compile(r"(?P<table>.+)_emb_keys\.rank_(?P<rank>\d+)\.world_size_(?P<world>\d+)")


@dataclass(frozen=True)
class Meta:
    """Contents of ``{table}_opt_args.json``.

    Attributes
    ----------
    rule : Rule
        roundrobin where ``dist_type`` is missing.
    rows : int or None
        Size of the table; continuous cannot be re-sharded without it.
    tag : str or None
        Names the save that all ranks belong to.
    other : mapping
        Every other entry, carried along unchanged.
    index_type : str
        Type of the keys that were looked up, on which dynamicemb's routing depends; files hold keys
        as int64. int64 if ``index_type`` is missing, as in files that dynamicemb wrote.
    """

    rule: Rule
    rows: int | None = None
    tag: str | None = None
    other: Mapping[str, Any] = field(default_factory=dict)
    index_type: str = "int64"

    def as_json(self) -> dict[str, Any]:
        """Return the file's content."""
        kind = None if self.index_type == "int64" else self.index_type
        own = {"dist_type": self.rule.dist_type, "rows": self.rows, "tag": self.tag,
               "index_type": kind}  # fmt: skip
        return dict(self.other) | {k: v for k, v in own.items() if v is not None}

    def block_size(self, world_size: int) -> int | None:
        """Rows that a rank holds under continuous; None for other rules.

        Raises
        ------
        CheckpointError
            The number of rows is not known.
        """
        if self.rule is not Rule.CONTINUOUS:
            return None
        if self.rows is None:
            raise CheckpointError(
                "dist_type continuous needs the table's number of rows, which the checkpoint "
                "does not say: pass rows="
            )
        return block_size_of(self.rows, world_size)


def data_path(folder: Path, table: str, kind: str, rank: int, world_size: int) -> Path:
    """Path of one rank's keys, values, scores or optimizer values."""
    return folder / f"{table}_emb_{kind}.rank_{rank}.world_size_{world_size}"


def meta_path(folder: Path, table: str) -> Path:
    """Path of a table's metadata."""
    return folder / f"{table}_opt_args.json"


def manifest_path(folder: Path, table: str, rank: int, world_size: int) -> Path:
    """Path of a rank's manifest."""
    return folder / f"{table}_manifest.rank_{rank}.world_size_{world_size}.json"


def read_meta(folder: Path, table: str) -> Meta:
    """Metadata of a table.

    Raises
    ------
    CheckpointError
        Missing or unreadable, or an unknown dist_type.
    """
    path = meta_path(folder, table)
    data = read_json(path)
    try:
        rule = Rule.parse(data.get("dist_type", Rule.ROUNDROBIN))
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}") from None
    own = ("dist_type", "rows", "tag", "index_type")
    other = {k: v for k, v in data.items() if k not in own}
    index_type = data.get("index_type", "int64")
    if index_type not in INDEX_TYPES:
        raise CheckpointError(
            f"{path}: index_type {index_type!r}; allowed are {', '.join(INDEX_TYPES)}"
        )
    return Meta(rule, data.get("rows"), data.get("tag"), other, index_type)


def read_json(path: Path) -> dict[str, Any]:
    """Content of a JSON object.

    Raises
    ------
    CheckpointError
        Absent, cut short, or not an object.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CheckpointError(
            f"{path} is missing: the save was interrupted, or this is not a checkpoint"
        ) from None
    except ValueError:
        raise CheckpointError(f"{path} is not valid JSON: the save was interrupted") from None
    if not isinstance(data, dict):
        raise CheckpointError(f"{path} must hold a JSON object")
    return data


def write_json(path: Path, data: Mapping[str, Any], *, durable: bool = True) -> None:
    """Write a JSON object under a temporary name, then rename."""
    temporary = path.with_name(f"{path.name}.tmp")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(data, file, indent=1)
        settle(file, durable)
    temporary.replace(path)


def settle(file: Any, durable: bool) -> None:
    """Flush a file, to the disk itself if durable."""
    file.flush()
    if durable:
        os.fsync(file.fileno())


def find_tables(folder: Path) -> dict[str, int]:
    """Tables of a checkpoint and the world size each was saved with.

    Raises
    ------
    CheckpointError
        There is no folder or no table, or a table has files of several world sizes.
    """
    if not folder.is_dir():
        raise CheckpointError(f"{folder} is not a folder")
    sizes: dict[str, set[int]] = {}
    for path in folder.iterdir():
        match = _FILE.fullmatch(path.name)
        if match:
            sizes.setdefault(match["table"], set()).add(int(match["world"]))
    if not sizes:
        raise CheckpointError(f"{folder} holds no *_emb_keys.rank_R.world_size_W files")
    for table, worlds in sorted(sizes.items()):
        if len(worlds) > 1:
            raise CheckpointError(
                f"{folder}: table {table} was saved for world sizes "
                f"{', '.join(map(str, sorted(worlds)))} into one folder; keep one of them"
            )
    return {table: worlds.pop() for table, worlds in sorted(sizes.items())}


def world_size_of(folder: Path, table: str) -> int:
    """World size a table was saved with.

    Raises
    ------
    CheckpointError
        The folder has no such table; the message lists those it has.
    """
    tables = find_tables(folder)
    if table not in tables:
        raise CheckpointError(f"{folder} has no table {table!r}; it has {', '.join(tables)}")
    return tables[table]
