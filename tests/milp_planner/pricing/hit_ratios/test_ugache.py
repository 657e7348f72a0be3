"""UGache's solver logs: their own arithmetic, and the hit ratios of UGache's synthetic traces."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from milp_planner.pricing.popularity import zipf

HOST = {"A": 350 / 11, "B": 350 / 3.4, "C": 730 / 8}
"""Time of a read from the host over that of one from local memory, by server."""
NEAR, FAR = 350 / 38, 730 / 30
TABLE = 8_000_000
"""Keys of each of the 100 tables of its synthetic traces."""


def solves(shared_data: Path) -> list[dict[str, Any]]:
    """The solves of the synthetic traces for which no solver was used."""
    text = (shared_data / "criteo-frequency" / "ugache-solver.csv").read_text()
    rows = csv.DictReader(text.splitlines())
    return [r for r in rows if r["dataset"].startswith("SYN") and r["policy"] != "CollAsymm"]


def test_the_cost_of_a_policy_is_its_reads_by_source(shared_data: Path) -> None:
    """Local, remote and host reads at the published ratios sum to the logged objective, to 0.1%, if
    links are equal (servers A and C)."""
    compared = 0
    for row in solves(shared_data):
        if row["server"] == "B" and row["policy"] != "Rep":
            continue
        remote = FAR if row["server"] == "C" else NEAR
        times = {"local_rate": 1.0, "remote_rate": remote, "cpu_rate": HOST[row["server"]]}
        reads = sum(float(row[rate]) * time for rate, time in times.items())
        priced = float(row["sum_weight"]) * reads
        assert priced == pytest.approx(float(row["objective"]), rel=1e-3), row
        compared += 1
    assert compared >= 8


@pytest.mark.parametrize(("dataset", "alpha"), [("SYN", 1.2), ("SYN_14", 1.4)])
def test_hit_ratios_of_its_traces(shared_data: Path, dataset: str, alpha: float) -> None:
    """A replicated cache of the hottest keys serves Zipf's share within half a point, since a trace
    is a sample of that law."""
    known = zipf(TABLE, alpha)
    ends, served = np.cumsum(known.counts), np.cumsum(known.counts * known.shares)
    rows = [r for r in solves(shared_data) if (r["dataset"], r["policy"]) == (dataset, "Rep")]
    assert len(rows) >= 2
    for row in rows:
        hits = float(np.interp(float(row["cache_rate"]) * TABLE, ends, served))
        assert hits == pytest.approx(float(row["local_rate"]), abs=5e-3)
