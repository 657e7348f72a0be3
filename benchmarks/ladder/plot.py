"""Draw gap over time, memory over time, and time to a 1% gap by size, from a result file.

python benchmarks/ladder/plot.py benchmarks/ladder/results/DATE.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np


def gap_curve(row: dict[str, Any]) -> tuple[list[float], list[float]]:
    """Seconds and gap (percent) at every point of the trace where both sides are known."""
    seconds, gaps = [], []
    best, bound = None, None
    for at, objective, lower, _ in row.get("trace", []):
        best = objective if best is None or (objective is not None and objective < best) else best
        bound = lower if bound is None or (lower is not None and lower > bound) else bound
        if best is not None and bound is not None:
            seconds.append(at)
            gaps.append(100 * (best - bound) / max(1, abs(best)))
    return seconds, gaps


def time_to(row: dict[str, Any], percent: float) -> float | None:
    """Seconds until the gap was at most ``percent``; None: never."""
    for at, gap in zip(*gap_curve(row), strict=True):
        if gap <= percent:
            return float(at)
    return None


def slope(sizes: list[float], seconds: list[float]) -> float | None:
    """Exponent b of the fit seconds ~ size^b; None with fewer than three points."""
    if len(sizes) < 3:
        return None
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def main() -> None:
    """Write ladder.svg beside the result."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("result", type=Path)
    path = parser.parse_args().result
    rows = json.loads(path.read_text())["rows"]
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 3.6))
    sizes, reached = [], []
    for row in rows:
        seconds, gaps = gap_curve(row)
        name = f"{row['size']} {row['formulation']}"
        if seconds:
            left.step(seconds, gaps, where="post", label=name)
        if row.get("memory"):
            middle.plot(*zip(*row["memory"], strict=True), label=name)
        at = time_to(row, 1.0)
        if at is not None and row["formulation"] == "scale":
            sizes.append(float(row["tables"] * row["ranks"]))
            reached.append(max(at, 1e-2))
    left.set(xlabel="seconds", ylabel="gap, %", yscale="log", title="gap over time")
    middle.set(xlabel="seconds", ylabel="resident MiB", title="memory over time")
    right.scatter(sizes, reached)
    fit = slope(sizes, reached)
    right.set(
        xlabel="tables × ranks", ylabel="seconds", xscale="log", yscale="log",
        title="time to 1% gap" + ("" if fit is None else f", slope {fit:.2f}"),
    )  # fmt: skip
    left.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path.with_suffix(".svg"))


if __name__ == "__main__":
    main()
