"""Rows about planner runs, one a run, appended to a JSONL file or an SQLite database.

The first columns are those that TorchRec's dashboards know; the rest says how good the plan is,
which TorchRec cannot.

References
----------
torchrec 1.9.2, ``planner/types.py`` (``ShardingPlanResult``, ``PlannerErrorType``) and
``planner/model_arch.py``; meta-pytorch/torchrec pull requests 4449 and 4536.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from milp_planner.errors import BadInput
from milp_planner.files import check_writable
from milp_planner.version import __version__

TABLE = "runs"
_DATABASES = (".sqlite", ".db")
_LINES = ".jsonl"


@dataclass(frozen=True)
class RunRow:
    """One planner run; None where a value is not known. Times are in milliseconds."""

    sku: str
    """SKU, or name of the cluster."""
    success: bool
    planner_error_type: str | None = None
    """TorchRec's name of what went wrong, such as ``insufficient_storage``; None on success."""
    planner_failure_reason: str | None = None
    request_id: str | None = None
    request_hash: str | None = None
    model_arch_hash: str | None = None
    """TorchRec's hash of tables and sharders. It does not know optimizers that are applied in the
    backward pass, so it does not determine a plan."""
    total_sparse_param_bytes: int | None = None
    critical_path_ms: float | None = None
    comms_critical_path_ms: float | None = None
    comp_critical_path_ms: float | None = None
    max_rank_perf: float | None = None
    mean_rank_perf: float | None = None
    perf_imbalance_ratio: float | None = None
    """Busiest rank over the mean of all ranks."""
    estimated_max_hbm_bytes: int | None = None
    estimated_max_ddr_bytes: int | None = None
    solve_time_ms: float | None = None
    resolved_hw_config: str | None = None
    """Hardware that the SKU was planned on, as JSON."""
    model: str | None = None
    objective: str | None = None
    status: str | None = None
    objective_ms: float | None = None
    bound_ms: float | None = None
    certified_bound_ms: float | None = None
    gap: float | None = None
    certified_gap: float | None = None
    seed: int | None = None
    work: float | None = None
    """Units of work until plan or bound last improved; None if the solve measured time."""
    version: str = __version__


COLUMNS = tuple(field.name for field in fields(RunRow))


def check_rows_file(path: Path) -> None:
    """Refuse a file for rows before any work is spent on them.

    Raises
    ------
    BadInput
        For another suffix, a place that cannot be written, or a database whose table ``runs`` has
        other columns.
    """
    if path.suffix not in (_LINES, *_DATABASES):
        raise BadInput(
            f"{path}: found suffix {path.suffix or 'none'!r}; allowed for rows of runs: "
            f"{', '.join((_LINES, *_DATABASES))}"
        )
    check_writable(path)
    if path.suffix in _DATABASES and path.exists():
        with closing(_database(path)):
            pass


def append_rows(path: Path, rows: Sequence[RunRow]) -> None:
    """Append rows to ``NAME.jsonl``, or to the table ``runs`` of ``NAME.sqlite`` or ``NAME.db``.

    Either all rows are added or, on a full disk, none that a reader would take for whole.

    Raises
    ------
    BadInput
        As :func:`check_rows_file`, or where writing fails.
    """
    check_rows_file(path)
    try:
        if path.suffix == _LINES:
            text = "".join(json.dumps(asdict(row)) + "\n" for row in rows)
            with path.open("a", encoding="utf-8") as stream:
                stream.write(text)
            return
        slots = ", ".join("?" * len(COLUMNS))
        with closing(_database(path)) as database, database:
            database.executemany(
                f"insert into {TABLE} ({', '.join(COLUMNS)}) values ({slots})",
                [tuple(asdict(row).values()) for row in rows],
            )
    except (OSError, sqlite3.Error) as error:
        raise BadInput(f"cannot write {path}: {error}") from None


def _database(path: Path) -> sqlite3.Connection:
    """An open database that has the table; BadInput for a file that is none, or other columns."""
    database = sqlite3.connect(path)
    try:
        database.execute(f"create table if not exists {TABLE} ({', '.join(COLUMNS)})")
        found = [row[1] for row in database.execute(f"pragma table_info({TABLE})")]
    except sqlite3.Error as error:
        database.close()
        raise BadInput(f"{path}: {error}; allowed: a new file, or a database of runs") from None
    missing = [name for name in COLUMNS if name not in found]
    if missing:
        database.close()
        raise BadInput(
            f"{path}: its table {TABLE} lacks {', '.join(missing)}; allowed: a new file, or a "
            "database that this version wrote"
        )
    return database
