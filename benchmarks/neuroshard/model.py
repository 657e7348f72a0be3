"""The 856 tables of Meta's DLRM data set as a shipped model, and the literature's tasks on them.

``python benchmarks/neuroshard/model.py DATA`` writes ``scenarios/models/dlrm-856.json`` and the
tasks beside ``scenarios/literature.py``. DATA holds ``tables.json``, ``tasks_*.json`` and
``dreamshard_tasks_*.json`` (its README says where they come from).

The data set tells, of a batch of 65,536 samples, a table's ids a sample and how its distinct ids
divide by the number of times that they occur: 1, 2, 3–4, 5–8, …. The popularity of all rows is the
nonnegative mixture of Poisson counts that explains these numbers best, with as many rows as
the table has (G. and P. Valiant, "Estimating the unseen", NIPS 2013). A row of the mixture is
looked up λ times in such a batch; rows that no batch of this size would show have λ = 0.
"""

import json
import sys
from itertools import pairwise
from math import erf, lgamma, sqrt
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from milp_planner.features.calibrate.least_squares import nonnegative
from milp_planner.pricing.units import FloatArray

ROOT = Path(__file__).resolve().parents[2] / "scenarios"
BATCH = 65_536
BINS = 17
EDGES = [0, *(2**k for k in range(BINS))]
"""Bin k holds counts above ``EDGES[k]``, up to ``EDGES[k + 1]``."""
LAMBDAS = 2.0 ** np.arange(-7, 18, 0.5)
"""Lookups of a row in a batch, as the mixture may have them."""
DIGITS = 6


def mean_counts() -> FloatArray:
    """Mean count in each bin, if counts in it fall as 1/c².

    So the distinct ids of all tables add up to 127.5 million; published are 128.4 (``2021/
    locality_stats.txt`` of the data set).
    """
    found = []
    for low, high in pairwise(EDGES):
        counts = np.arange(low + 1, high + 1, dtype=float)
        found.append((1 / counts).sum() / (1 / counts**2).sum())
    return np.array(found)


def distinct_ids(table: dict[str, Any]) -> FloatArray:
    """Distinct ids of a batch by bin; float array [17]."""
    shares = np.array([table[f"bin_{k}"] for k in range(BINS)])
    ids = table["pooling_factor"] * BATCH
    return np.asarray(shares * ids / (shares @ mean_counts()))


def popularity(table: dict[str, Any]) -> list[tuple[float, float]]:
    """Shares of the rows, and of the lookups, of the mixture's classes, least popular first."""
    seen, rows = distinct_ids(table), table["row"]
    weight = 1 / np.sqrt(seen + 1)  # a Poisson count's spread
    classes = np.append(0.0, LAMBDAS)
    chances = np.concatenate([np.zeros((BINS, 1)), _chances()], axis=1)
    terms = np.vstack([chances * weight[:, None], np.full(len(classes), 1e2 / rows)])
    size = np.linalg.norm(terms, axis=0)
    found = nonnegative(terms / size, np.append(seen * weight, 1e2)) / size
    kept = found > 0
    of_rows, of_ids = found[kept], (found * classes)[kept]
    return list(zip(_shares(of_rows), _shares(of_ids), strict=True))


def _chances() -> FloatArray:
    """Chance that a row of each λ falls into each bin; float array [17, λ]."""
    below = np.stack([_at_most(edge) for edge in EDGES[:-1]] + [np.ones(len(LAMBDAS))])
    return np.diff(below, axis=0)


def _at_most(count: int) -> FloatArray:
    """Chance of at most ``count`` lookups under each λ: summed up to 64, normal beyond."""
    if count > 64:
        z = (count + 0.5 - LAMBDAS) / np.sqrt(LAMBDAS)
        return np.array([0.5 * (1 + erf(each / sqrt(2))) for each in z])
    counts = np.arange(count + 1)
    logs = counts * np.log(LAMBDAS)[:, None] - LAMBDAS[:, None] - [lgamma(c + 1) for c in counts]
    return np.asarray(np.exp(logs).sum(axis=1))


def _shares(amounts: FloatArray) -> list[float]:
    """Shares with six digits; the largest is what the others leave."""
    shares = [float(f"{share:.{DIGITS}g}") for share in amounts / amounts.sum()]
    largest = max(range(len(shares)), key=shares.__getitem__)
    shares[largest] = round(1 - sum(shares[:largest] + shares[largest + 1 :]), 9)
    return shares


def entry(number: int, table: dict[str, Any]) -> dict[str, Any]:
    """A table as a model states it; half an id is assumed where the batch has none."""
    found = {"name": f"t{number}", "rows": table["row"]}
    if not table["pooling_factor"]:
        return found | {"pooling_factor": round(0.5 / BATCH, 9), "access": "unknown"}
    ids = round(table["pooling_factor"], 6)
    return found | {
        "pooling_factor": ids,
        "access": {"kind": "histogram", "bins": popularity(table)},
    }


def main(data: Path) -> None:
    """Write all files."""
    tables = json.loads((data / "tables.json").read_text())
    lines = [json.dumps(entry(*each), separators=(",", ":")) for each in enumerate(tables)]
    (ROOT / "models" / "dlrm-856.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
    [tasks] = data.glob("tasks_*.json")
    found = [{"tables": t["tables"], "dims": t["dims"]} for t in json.loads(tasks.read_text())]
    _write("neuroshard", found)
    [tasks] = data.glob("dreamshard_tasks_*.json")
    _write("dreamshard", {n: each["test"] for n, each in json.loads(tasks.read_text()).items()})


def _write(name: str, tasks: Any) -> None:
    text = json.dumps(tasks, separators=(",", ":"))
    (ROOT / "tasks" / f"{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
