"""Read a batch from its folder; neither models nor clusters are needed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from milp_planner.errors import BadInput
from scenarios.batch.record import check_record
from scenarios.batch.runner import SUITE_FILE, Batch
from scenarios.batch.scenario import cross
from scenarios.batch.store import Record, read_records
from scenarios.batch.suite import load_suite

_LABEL = ("model", "cluster", "axes", "objective_kind", "formulation", "options", "seed")


def read_batch(folder: str | Path) -> Batch:
    """The suite that was last run into a folder, with the newest result of each scenario.

    Results are matched by the names and settings of a scenario, not by its key, so those of other
    versions count too, and their input files need not exist.

    Raises
    ------
    BadInput
        When the folder holds no batch.
    """
    path = Path(folder) / SUITE_FILE
    if not path.is_file():
        raise BadInput(f"{folder}: has no {SUITE_FILE}; allowed: a folder of milp-planner batch")
    suite = load_suite(path)
    newest = {_label(record): record for record in read_records(folder)}
    tasks, records = [], dict[str, Record]()
    for scenario in cross(suite, str(folder)):
        label = _label(scenario.label())
        record = newest.get(label)
        key = label if record is None else record["key"]
        tasks.append((key, scenario))
        if record is not None:
            records[key] = check_record(record, folder)
    return Batch(suite, tuple(tasks), records, solved=0, interrupted=False)


def _label(values: Mapping[str, Any]) -> str:
    """The fields that identify a scenario; records of older versions have no options."""
    return json.dumps([values.get(name, {}) for name in _LABEL], sort_keys=True)
