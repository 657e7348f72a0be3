"""Results as one SQLite table, for queries beyond the report."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from scenarios.batch.curves import rows_of
from scenarios.batch.record import NESTED, Result, check_record
from scenarios.batch.store import Record, latest
from scenarios.batch.suite import AXES

SCALARS = tuple(name for name in Result.model_fields if name not in {*NESTED, "gap"})
OBJECTIVES = ("total", "busiest_rank", "step_time", "pipelined_step")
HEADROOM = ("hbm", "ddr")
BEST = {
    "best": "best", "best_bound": "best_bound", "best_certified": "best_certified",
    "certified_gap": "certified_gap", "gap": "best_gap", "own_gap": "gap",
}  # fmt: skip
"""Derived columns, by their names in the table and in ``Row``."""
COLUMNS = (
    "suite", *SCALARS, "options", "axes", *AXES, *OBJECTIVES, *(f"{m}_headroom" for m in HEADROOM),
    "error", "version", *BEST,
)  # fmt: skip
"""Columns of the table ``results``; sizes in bytes, times in picoseconds except ``seconds``.

``best`` and ``best_bound`` cover all scenarios with the same inputs and objective. ``gap`` is
relative to ``best_bound``, so it is known also for formulations that prove nothing;
``certified_gap`` is relative to ``best_certified``, the largest bound certified by any of them;
``own_gap`` to the scenario's own ``bound``. ``options`` and ``axes`` (which alone has those named
by a path) are JSON, from which, for example,
``json_extract(options, '$.hbm_bins_per_device')`` selects a setting."""

_READING = {
    sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE,
}  # fmt: skip


def connect(folder: str | Path) -> sqlite3.Connection:
    """Open the newest record of every scenario of a folder as the in-memory table ``results``.

    The connection is read-only: ``ATTACH``, ``VACUUM INTO``, pragmas and changes are forbidden.

    Raises
    ------
    BadInput
        When the folder's file does not hold results.
    """
    connection = sqlite3.connect(":memory:")
    connection.execute(f"create table results ({', '.join(COLUMNS)})")
    slots = ", ".join("?" * len(COLUMNS))
    records = [check_record(record, folder) for record in latest(folder).values()]
    rows = (
        [*_row(record), *(getattr(row, name) for name in BEST.values())]
        for record, row in zip(records, rows_of(records), strict=True)
    )
    connection.executemany(f"insert into results values ({slots})", rows)
    connection.commit()
    connection.row_factory = sqlite3.Row
    connection.set_authorizer(_only_reading)
    return connection


def _only_reading(action: int, *_: object) -> int:
    return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY


def _row(record: Record) -> list[Any]:
    error, headroom = record.get("error"), record.get("headroom") or {}
    return [
        record.get("suite"),
        *(record.get(name) for name in SCALARS),
        *(json.dumps(record.get(name) or {}) for name in ("options", "axes")),
        *(record["axes"].get(name) for name in AXES),
        *((record.get("objectives") or {}).get(name) for name in OBJECTIVES),
        *(headroom.get(name) for name in HEADROOM),
        None if error is None else f"{error['type']}: {error['message']}",
        record["versions"]["milp-planner"],
    ]
