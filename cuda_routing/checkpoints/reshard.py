"""Convert a checkpoint to another number of ranks or another rule, without losing a row."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cuda_routing.checkpoints.journal import NAME, Journal, resume
from cuda_routing.checkpoints.layout import (
    Meta,
    data_path,
    find_tables,
    manifest_path,
    meta_path,
    read_json,
    read_meta,
    write_json,
)
from cuda_routing.checkpoints.ownership import global_keys, new_places
from cuda_routing.checkpoints.shards import ShardFiles, open_all
from cuda_routing.errors import CheckpointError
from cuda_routing.rules import Rule, as_index_type, check_ranks

CHUNK_ROWS = 1 << 18


@dataclass(frozen=True)
class Resharded:
    """Result of a re-sharding: the number of rows of each table."""

    folder: Path
    rows: dict[str, int]


@dataclass(frozen=True)
class _Job:
    """Re-sharding of one table."""

    table: str
    before: Meta
    after: Meta
    old_world: int
    world: int
    shards: list[ShardFiles]
    chunk_rows: int
    durable: bool


def reshard(  # noqa: PLR0913 - source, target and the new layout
    source: str | Path,
    target: str | Path,
    *,
    world_size: int,
    rule: Rule | int | str | None = None,
    tables: Iterable[str] | None = None,
    source_rule: Rule | int | str | None = None,
    rows: int | None = None,
    index_type: str | None = None,
    chunk_rows: int = CHUNK_ROWS,
    durable: bool = True,
) -> Resharded:
    """Write a checkpoint for another world size or rule.

    Parameters
    ----------
    source, target : paths
        The target must not exist. Until everything is written, files grow in ``<target>.partial``;
        after an interruption, a call with the same arguments continues where the last one stopped.
    world_size : int
        New number of ranks.
    rule : Rule, int or str, optional
        New rule; the saved one when not given.
    tables : iterable of str, optional
        All tables when not given.
    source_rule : Rule, int or str, optional
        Overrides the dist_type in the metadata, or replaces a missing one.
    rows : int, optional
        Size of the tables whose metadata does not have it; needed from or to continuous.
    index_type : str, optional
        Type of the keys in the tables' batches, if the metadata lacks it or is wrong. Under
        hash_roundrobin, dynamicemb sends int32 keys to other ranks than int64 keys unless the
        number of ranks is a power of two, and its files do not say which type they had.
    chunk_rows : int
        Rows in memory at a time.
    durable : bool
        Wait for the disk after every piece.

    Raises
    ------
    CheckpointError
        The source is incomplete, a key is not where its rule puts it, a key would lose its identity
        under continuous, or the target exists.
    """
    source, target = Path(source), Path(target)
    check_ranks(world_size)
    found = find_tables(source)
    chosen = sorted(tables) if tables is not None else sorted(found)
    jobs = []
    for table in chosen:
        if table not in found:
            raise CheckpointError(f"{source} has no table {table!r}; it has {', '.join(found)}")
        meta = _override(read_meta(source, table), source_rule, rows, index_type)
        after = replace(meta, rule=meta.rule if rule is None else Rule.parse(rule))
        shards = open_all(source, table, found[table], meta if source_rule is None else
                          replace(meta, tag=read_meta(source, table).tag))  # fmt: skip
        jobs.append(_Job(table, meta, after, found[table], world_size, shards, chunk_rows, durable))
    return _run(source, target, jobs)


def _override(meta: Meta, rule: Any, rows: int | None, index_type: str | None) -> Meta:
    changed = meta if rule is None else replace(meta, rule=Rule.parse(rule))
    if index_type is not None:
        as_index_type(np.empty(0, np.int64), index_type)  # refuses an unknown one
        changed = replace(changed, index_type=index_type)
    return changed if rows is None else replace(changed, rows=rows)


def _run(source: Path, target: Path, jobs: list[_Job]) -> Resharded:
    """Convert all tables, then rename the folder."""
    if target.exists():
        finished = (target / NAME).is_file() and read_json(target / NAME)["task"]
        if finished != _task(source, jobs):
            raise CheckpointError(f"{target} exists already: choose another target")
        (target / NAME).unlink()  # an earlier run was interrupted just before its last step
        return Resharded(target, {job.table: _count(job) for job in jobs})
    partial = target.with_name(f"{target.name}.partial")
    journal = resume(partial, _task(source, jobs))
    for job in jobs:
        if job.table not in journal.done:
            _move_table(job, partial, journal)
            journal.done.append(job.table)
            journal.rank = journal.row = 0
            journal.read_crc = {}
            journal.save(partial, job.durable)
    partial.rename(target)
    (target / NAME).unlink()
    return Resharded(target, {job.table: _count(job) for job in jobs})


def _count(job: _Job) -> int:
    return sum(shard.count for shard in job.shards)


def _task(source: Path, jobs: list[_Job]) -> dict[str, Any]:
    """Everything that a resumed run must have in common, as JSON values."""
    files = [path for job in jobs for shard in job.shards for path in shard.paths.values()]
    return {
        "source": str(source.resolve()),
        "source files": [[p.name, p.stat().st_size, p.stat().st_mtime_ns] for p in files],
        "world size": jobs[0].world,
        "rules": [[j.table, j.before.rule.dist_type, j.after.rule.dist_type] for j in jobs],
        "rows": [[j.table, j.before.rows] for j in jobs],
        "index types": [[j.table, j.before.index_type] for j in jobs],
        "chunk rows": jobs[0].chunk_rows,
    }


def _move_table(job: _Job, partial: Path, journal: Journal) -> None:
    """Stream every source rank's rows to their new owners, then write manifests and metadata."""
    for rank in range(job.world):
        for kind in job.shards[0].paths:
            name = data_path(partial, job.table, kind, rank, job.world).name
            journal.append(partial, name, memoryview(b""), job.durable)
    while journal.rank < job.old_world:
        shard = job.shards[journal.rank]
        if journal.row >= shard.count:
            _check_contents(shard, journal.read_crc)
            journal.rank, journal.row, journal.read_crc = journal.rank + 1, 0, {}
            continue
        stop = min(journal.row + job.chunk_rows, shard.count)
        _move_piece(job, shard, stop, partial, journal)
        journal.row = stop
        journal.save(partial, job.durable)
    _describe(job, partial, journal)


def _move_piece(job: _Job, shard: ShardFiles, stop: int, partial: Path, journal: Journal) -> None:
    """Append one piece of one source rank to the files of its new owners."""
    pieces = {kind: shard.read(kind, journal.row, stop) for kind in shard.paths}
    for kind, piece in pieces.items():
        before = journal.read_crc.get(kind, 0)
        journal.read_crc[kind] = zlib.crc32(piece.reshape(-1).data, before)
    stored = pieces["keys"].reshape(-1).view("<i8")
    where = f"{shard.paths['keys'].name}"
    keys = global_keys(stored, shard.rank, job.old_world, job.before, where)
    owner, local = new_places(keys, job.world, job.after, where)
    pieces["keys"] = local.astype("<i8").view(np.uint8).reshape(-1, 8)
    order = np.argsort(owner, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=job.world))])
    for kind, piece in pieces.items():
        moved = np.ascontiguousarray(piece[order])
        for rank in np.flatnonzero(np.diff(ends)):
            name = data_path(partial, job.table, kind, int(rank), job.world).name
            part = moved[ends[rank] : ends[rank + 1]]
            journal.append(partial, name, part.reshape(-1).data, job.durable)


def _width(shards: list[ShardFiles], kind: str) -> int | None:
    """Bytes per row of one kind, from the first rank that has rows."""
    return next((s.row_bytes[kind] for s in shards if s.row_bytes[kind] is not None), None)


def _check_contents(shard: ShardFiles, read_crc: dict[str, int]) -> None:
    for kind, expected in (shard.checksums or {}).items():
        if read_crc.get(kind, 0) != expected:
            raise CheckpointError(f"{shard.paths[kind]} does not match its checksum: it is damaged")


def _describe(job: _Job, partial: Path, journal: Journal) -> None:
    for rank in range(job.world):
        names = {
            kind: data_path(partial, job.table, kind, rank, job.world).name
            for kind in job.shards[0].paths
        }
        path = manifest_path(partial, job.table, rank, job.world)
        manifest = {
            "tag": job.after.tag,
            "bytes": {kind: journal.sizes[name] for kind, name in names.items()},
            "row_bytes": {kind: _width(job.shards, kind) for kind in names},
            "crc32": {kind: journal.crc32[name] for kind, name in names.items()},
        }
        write_json(path, manifest, durable=job.durable)
        journal.sizes[path.name] = path.stat().st_size
    path = meta_path(partial, job.table)
    other = dict(job.after.other) | {"manifests": True, "world_size": job.world}
    write_json(path, replace(job.after, other=other).as_json(), durable=job.durable)
    journal.sizes[path.name] = path.stat().st_size
