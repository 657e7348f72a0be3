"""Draw the README's picture from a stored result: time per rank and phase, DP beside exact.

``python benchmarks/demo/figure.py [RESULT] [-o docs/figures/readme.svg]``
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from milp_planner.drawing.units import show_time

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CLUSTER = "8xb200-tight"
LABELS = {"dp": "DP heuristic", "greedy": "greedy", "auto": "milp-planner"}
COLOURS = ("#2f6690", "#81c3d7", "#d1495b", "#edae49", "#66a182")
MS = 1e9


def main() -> None:
    """Read the newest (or the named) result and draw it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("result", nargs="?", type=Path)
    parser.add_argument("-o", type=Path, default=ROOT / "docs" / "figures" / "readme.svg")
    arguments = parser.parse_args()
    path = arguments.result or max((HERE / "results").glob("*.json"))
    document = json.loads(path.read_text())
    entries = [e for e in document["entries"] if e["cluster"] == CLUSTER and e["ranks"]]
    draw(entries, document, arguments.o)
    print(arguments.o)


def draw(entries: list[dict[str, Any]], document: dict[str, Any], target: Path) -> None:
    """One panel a formulation: a bar of phases for each rank, the bound as a line."""
    plt.rcParams.update({"svg.hashsalt": "milp-planner", "font.size": 9, "svg.fonttype": "none"})
    figure, axes = plt.subplots(
        1, len(entries), figsize=(8.2, 2.9), sharey=True, layout="constrained", squeeze=False
    )
    fastest = min(e["verdict"]["objective"] for e in entries)
    top = max(e["verdict"]["objective"] for e in entries if e["verdict"]["objective"] < 5 * fastest)
    for axis, entry in zip(axes[0], entries, strict=True):
        _panel(axis, entry)
        axis.set_ylim(0, 1.15 * top / MS)
    axes[0][0].set_ylabel("ms a step (embeddings)")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False, fontsize=8)
    figure.suptitle(f"{document['model']} on {CLUSTER}, {document['date']}", fontsize=10)
    figure.savefig(target, metadata={"Date": None})
    plt.close(figure)


def _panel(axis: Any, entry: dict[str, Any]) -> None:
    ranks, verdict = entry["ranks"], entry["verdict"]
    rows = ranks["rows"]
    bottom = [0.0] * len(rows)
    for index, phase in enumerate(ranks["phases"]):
        height = [row["phases"][index] / MS for row in rows]
        if any(height):
            axis.bar(range(len(rows)), height, bottom=bottom, color=COLOURS[index], label=phase)
        bottom = [b + h for b, h in zip(bottom, height, strict=True)]
    axis.axhline(verdict["objective"] / MS, color="black", lw=1, label="step time")
    if verdict["bound"] is not None:
        axis.axhline(verdict["bound"] / MS, color="black", lw=1, ls=":", label="proved bound")
    title = f"{LABELS[entry['formulation']]}: {show_time(verdict['objective'])}"
    axis.set_title(title, fontsize=9)
    axis.set_xticks(
        range(len(rows)), [f"rank {i}" if len(rows) < 3 else str(i) for i in range(len(rows))]
    )
    axis.set_xlabel("rank")
    axis.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
