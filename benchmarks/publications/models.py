"""The two plans of the A/B as model files: every part a table, pinned where the plan has it."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from benchmarks.publications.pricing import MODEL, cluster, pinned, sharding_of

FOLDER = Path(__file__).resolve().parent / "models"


def model_files(rows: Iterable[Mapping[str, Any]]) -> dict[Path, str]:
    """The text of a model file for each published row, by its path."""
    return {FOLDER / f"{row['plan']}.yaml": _text(row) for row in rows}


def _text(row: Mapping[str, Any]) -> str:
    sharding, gpus = sharding_of(row)
    site = cluster(row["system"])
    model = pinned(sharding, site, row["batch"], gpus, skewed=True).to_dict()
    workload, first = model["workload"], model["tables"][0]
    document = {
        "name": f"{MODEL}-{row['plan']}",
        "description": f"{MODEL} on {row['system']}, each part pinned as in {row['plan']}.",
        "source": f"{row['source']}; plan recomputed by benchmarks/publications/planner.py",
        "workload": {
            name: workload[name] for name in ("batch_per_rank", "mode", "exchange_dtype", "codec")
        },
        "defaults": {name: first[name] for name in ("kind", "dim", "dtype", "output", "optimizer")},
        "tables": [
            {name: table[name] for name in ("name", "rows", "pooling_factor")}
            | {"access": _said(table["access"])}
            | {"constraints": {"pin": _said(table["constraints"]["pin"])}}
            for table in model["tables"]
        ],
    }
    text = yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=100)
    return f"# Written by page.py\n{text}"


def _said(pin: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a pin that say something."""
    return {name: value for name, value in pin.items() if value is not None}
