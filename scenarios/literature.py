"""Tasks of the literature on the 856 tables of Meta's DLRM data set, as models.

``neuroshard:7`` is NeuroShard's task 7 of 0 … 99: 10 to 59 tables, with repetition, of 4 to 128
columns in fp32, to be planned on 4 devices of 4 GiB. ``dreamshard:50-7`` is DreamShard's test task
7 of 0 … 49 with 50 tables (10, 20, … 100) of 16 columns in fp16, on 4 devices of 5 GB.

Both count rows alone as memory (``storage_model: rows``, SGD), and a step of 65,536 samples. A task
is drawn from the tables that ship as ``dlrm-856``.

References
----------
D. Zha et al., "Pre-train and Search: Efficient Embedding Table Sharding with Pre-trained Neural
Cost Models" (NeuroShard), MLSys 2023; D. Zha et al., "DreamShard", NeurIPS 2022.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from milp_planner.errors import BadInput
from milp_planner.inputs import Model

SAMPLES, DEVICES = 65_536, 4
PREFIXES = ("neuroshard:", "dreamshard:")


def task(name: str) -> Model:
    """The model of a task such as ``neuroshard:7`` or ``dreamshard:50-7``.

    Raises
    ------
    BadInput
        When there is no such task; the sentence says which there are.
    """
    source, _, which = name.partition(":")
    if source == "neuroshard":
        found = _entry(name, _tasks(source), which, "0 to 99")
        tables, dims, dtype = found["tables"], found["dims"], "fp32"
    else:
        count, _, number = which.partition("-")
        sizes = _tasks(source)
        if count not in sizes:
            raise BadInput(f"{name}: no tasks with {count!r} tables; allowed: {', '.join(sizes)}")
        tables = _entry(name, sizes[count], number, f"{count}-0 to {count}-49")
        dims, dtype = [16] * len(tables), "fp16"
    known = known_tables()
    return Model.from_dict({
        "name": name,
        "description": f"A task of {len(tables)} of the 856 tables; a step has 65,536 samples.",
        "source": f"daochenzha/{source}, with the tables of dlrm-856",
        "workload": {"batch_per_rank": SAMPLES // DEVICES, "storage_model": "rows"},
        "defaults": {"dtype": dtype, "optimizer": "sgd"},
        "tables": [
            known[table] | {"name": f"{place}_t{table}", "dim": dim, "constraints": _limits(dim)}
            for place, (table, dim) in enumerate(zip(tables, dims, strict=True))
        ],
    })  # fmt: skip


def _limits(dim: int) -> dict[str, Any]:
    """In device memory, whole or, as NeuroShard cuts tables, with columns halved."""
    halves = [width for width in (64, 32, 16, 8, 4) if width < dim]
    if not halves:
        return {"modes": "HBM_ONLY", "sharding_types": "table_wise"}
    types = ["table_wise", "column_wise"]
    return {"modes": "HBM_ONLY", "sharding_types": types, "column_widths": halves}


def _entry(name: str, tasks: list[Any], number: str, allowed: str) -> Any:
    if not number.isdecimal() or int(number) >= len(tasks):
        raise BadInput(f"{name}: no such task; allowed: {allowed}")
    return tasks[int(number)]


@cache
def _tasks(source: str) -> Any:
    return json.loads((files("scenarios") / "tasks" / f"{source}.json").read_text("utf-8"))


@cache
def known_tables() -> list[dict[str, Any]]:
    """The 856 tables of ``dlrm-856``, as its file has them."""
    found: list[dict[str, Any]] = json.loads(
        (files("scenarios") / "models" / "dlrm-856.json").read_text("utf-8")
    )
    return found
