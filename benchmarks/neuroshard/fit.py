"""A profile and a link from what NeuroShard's authors measured on their CPUs.

``python benchmarks/neuroshard/fit.py DATA`` writes ``milp_planner/pricing/profiles/
dlrm-856-cpu.yaml``, and the errors on held-out fifths and the link to ``results/fit.json``. DATA
holds ``compute_4.txt`` (fused lookups with their backward passes) and ``comm_4.txt`` (exchanges,
forward and backward).
"""

import sys
from pathlib import Path
from statistics import median

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.neuroshard.page import FIT
from milp_planner.features.calibrate.least_squares import relative_fit
from milp_planner.files import write_json
from milp_planner.pricing.popularity import distinct_rows
from milp_planner.pricing.units import FloatArray
from scenarios.catalog import find_model
from scenarios.literature import DEVICES, SAMPLES

PROFILE = Path(__file__).resolve().parents[2] / "milp_planner/pricing/profiles/dlrm-856-cpu.yaml"
DIMS = (128, 64, 32, 16, 8, 4)
"""Columns of a table in ``compute_4.txt``: index 856 · d + table."""
TERMS = ("seconds", "id_seconds", "byte_seconds", "output_byte_seconds", "distinct_seconds",
         "distinct_byte_seconds")  # fmt: skip
FOLDS = 5


def measured(data: Path) -> tuple[FloatArray, FloatArray]:
    """Terms of every measured set of tables, and its seconds; float arrays [sets, 6] and [sets]."""
    tables = find_model("dlrm-856").tables
    ids = SAMPLES * np.array([t.lookups_per_sample for t in tables])
    rows = [
        distinct_rows(t.access, t.rows, n, 1) for t, n in zip(tables, ids.tolist(), strict=True)
    ]
    distinct, terms, seconds = np.array(rows), [], []
    for line in (data / "compute_4.txt").read_text().splitlines():
        task, cost = line.split(" | cost: ")
        index = np.array([int(n) for n in task.removeprefix("task: ").split(",")])
        table, row = index % len(tables), 4 * np.array([DIMS[n // len(tables)] for n in index])
        terms.append([
            len(index), ids[table].sum(), (ids[table] * row).sum(), SAMPLES * row.sum(),
            distinct[table].sum(), (distinct[table] * row).sum(),
        ])  # fmt: skip
        seconds.append(float(cost) / 1e3)
    return np.array(terms, dtype=float), np.array(seconds)


def fitted(terms: FloatArray, seconds: FloatArray) -> FloatArray:
    """Nonnegative terms; errors count in proportion to the square root of the seconds."""
    return relative_fit(terms, seconds, np.sqrt(seconds))[0]


def held_out(terms: FloatArray, seconds: FloatArray) -> FloatArray:
    """Seconds of every set as predicted from the other four fifths."""
    fold = np.random.default_rng(0).integers(0, FOLDS, len(seconds))
    found = np.zeros(len(seconds))
    for number in range(FOLDS):
        there = fold == number
        found[there] = terms[there] @ fitted(terms[~there], seconds[~there])
    return found


def errors(found: FloatArray, seconds: FloatArray) -> dict[str, float]:
    """R², rank correlation and median relative error."""
    off = found - seconds
    ranks = [np.argsort(np.argsort(each)) for each in (found, seconds)]
    return {
        "r2": float(1 - (off**2).sum() / ((seconds - seconds.mean()) ** 2).sum()),
        "rank_correlation": float(np.corrcoef(*ranks)[0, 1]),
        "median_error": median((abs(off) / seconds).tolist()),
    }


def exchanges(data: Path) -> dict[str, dict[str, float]]:
    """Of each direction: seconds = constant + fullest · (most columns) + all · (columns of all),
    and the errors on held-out fifths."""
    lines = [line.split() for line in (data / "comm_4.txt").read_text().splitlines()]
    columns = np.array([[float(n) for n in line[0].split(",")] for line in lines])
    terms = np.stack([np.ones(len(lines)), columns.max(axis=1), columns.sum(axis=1)], axis=1)
    found = {}
    for name, place in (("forward", 2), ("backward", 3)):
        each = np.array([max(map(float, line[place].split(","))) for line in lines]) / 1e3
        fold = np.random.default_rng(0).integers(0, FOLDS, len(each))
        guess = np.zeros(len(each))
        for number in range(FOLDS):
            there = fold == number
            guess[there] = terms[there] @ _plain(terms[~there], each[~there])
        constant, fullest, every = _plain(terms, each).tolist()
        found[name] = {
            "constant": constant,
            "fullest": fullest,
            "all": every,
            **errors(guess, each),
        }
    return found


def _plain(terms: FloatArray, seconds: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.lstsq(terms, seconds, rcond=None)[0])


def bandwidth(found: dict[str, dict[str, float]]) -> float:
    """Bytes a second of a link at which a column more on the fullest device costs what it did."""
    column = SAMPLES * 4 * (DEVICES - 1) / DEVICES
    return 2 * column / sum(each["fullest"] for each in found.values())


def profile(values: FloatArray, error: float) -> str:
    """The profile's file."""
    halves = [
        f"{name}: {value / 2:.6g}" for name, value in zip(TERMS, values, strict=True) if value
    ]
    lookup, update = ("\n".join(before + each for each in halves) for before in ("    ", "      "))
    return f"""\
# NeuroShard's CPUs: fused lookups of Meta's 856 tables
name: dlrm-856-cpu
description: >-
  What NeuroShard's authors measured on their CPUs: fused lookups with their backward passes, of 1
  to 15 of the 856 tables, 65,536 samples. Half of what was measured stands for each pass, which
  changes no plan. For the literature's tasks alone: the bandwidths below price nothing there.

hbm: 100GB/s
ddr: 100GB/s
host_link: 10GB/s

caching: {{over: hit_ratio, points: [[0.0, 0.11], [1.0, 0.3102]], origin: as in profile a10}}
hybrid: {{over: hit_ratio, points: [[0.0, 0.11], [1.0, 0.1162]], origin: as in profile a10}}
uvm_caching: {{over: hit_ratio, points: [[0.0, 0.0], [1.0, 1.0]], origin: as in profile a10}}
host_only: 0.11

step:
  tier: hbm
  lookup:
{lookup}
  update:
    sgd:
{update}
  error: {{lookup: {error:.3g}, update: {error:.3g}}}
  origin: >-
    benchmarks/neuroshard/fit.py, fitted to 5,019 lines of compute_4.txt (daochenzha/neuroshard,
    MIT; the fork citz73/csharding at 0e5d60f)

origin:
  hbm: not measured, and without effect
  ddr: not measured, and without effect
  host_link: not measured, and without effect
  kernel: not measured, and without effect
  host_only: as in profile a10; not measured
  collectives: "no table: the cluster's link, fitted to comm_4.txt of the same source"
"""


def main(data: Path) -> None:
    """Write the profile, its errors and the link."""
    terms, seconds = measured(data)
    error = errors(held_out(terms, seconds), seconds)
    values = fitted(terms, seconds)
    PROFILE.write_text(profile(values, error["median_error"]), encoding="utf-8")
    found = exchanges(data)
    named = {"fused lookups, both passes": error, **{f"exchange, {k}": v for k, v in found.items()}}
    write_json(FIT, {"errors": named, "link": f"{bandwidth(found) / 1e9:.3g}GB/s"})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
