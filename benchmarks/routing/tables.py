"""Tables and figure of a stored CPU result: ``python benchmarks/routing/tables.py RESULT.json``.

Prints Markdown; with ``--figure FILE.svg`` draws the one-thread cells of the largest batch.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

Cell = dict[str, Any]


def one_thread(cells: list[Cell]) -> str:
    """Roundrobin on one thread, a line a cell."""
    lines = [
        "| keys | row length | ranks | FBGEMM Mkeys/s | ours Mkeys/s | ratio (median) | "
        "(min – max) | by processor time |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for c in cells:
        if c["threads"] == 1 and c["rule"] == "roundrobin" and c["fbgemm_mkeys_s"]:
            lines.append(
                f"| {c['keys']:,} | {c['row_length']} | {c['ranks']} | {c['fbgemm_mkeys_s']:.1f} | "
                f"{c['ours_mkeys_s']:.1f} | {c['ratio_median']:.2f} | {c['ratio_min']:.2f} – "
                f"{c['ratio_max']:.2f} | {c['cpu_ratio_median']:.2f} |"
            )
    return "\n".join(lines)


def all_cores(cells: list[Cell]) -> str:
    """Roundrobin on all cores."""
    lines = ["| keys | row length | ranks | threads | FBGEMM | ours | ratio |", "|---" * 7 + "|"]
    lines += [
        f"| {c['keys']:,} | {c['row_length']} | {c['ranks']} | {c['threads']} | "
        f"{c['fbgemm_mkeys_s']:.1f} | {c['ours_mkeys_s']:.1f} | {c['ratio_median']:.2f} |"
        for c in cells
        if c["threads"] > 1
    ]
    return "\n".join(lines)


def other_rules(cells: list[Cell]) -> str:
    """Every rule at one shape, on one thread."""
    lines = ["| dist_type | ranks | FBGEMM | ours | ratio |", "|---" * 5 + "|"]
    for c in cells:
        if c["threads"] == 1 and (c["rule"] != "roundrobin" or c["ranks"] == 7):
            theirs = f"{c['fbgemm_mkeys_s']:.1f}" if c["fbgemm_mkeys_s"] else "has no such rule"
            ratio = f"{c['ratio_median']:.2f}" if c["ratio_median"] else ""
            lines.append(
                f"| {c['rule']} | {c['ranks']} | {theirs} | {c['ours_mkeys_s']:.1f} | {ratio} |"
            )
    return "\n".join(lines)


def draw(result: dict[str, Any], path: Path) -> None:
    """Rates over row length, one panel a number of ranks."""
    from matplotlib.figure import Figure

    largest = max(c["keys"] for c in result["cells"]) * 0.9
    chosen = [c for c in result["cells"] if c["threads"] == 1 and c["rule"] == "roundrobin"
              and c["keys"] >= largest and c["ranks"] in (8, 64)]  # fmt: skip
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    for axis, ranks in zip(figure.subplots(1, 2, sharey=True), (8, 64), strict=True):
        rows = sorted((c for c in chosen if c["ranks"] == ranks), key=lambda c: c["row_length"])
        lengths = [c["row_length"] for c in rows]
        axis.plot(lengths, [c["ours_mkeys_s"] for c in rows], "o-", label="numba path")
        axis.plot(lengths, [c["fbgemm_mkeys_s"] for c in rows], "s--", label="FBGEMM")
        axis.set(title=f"{ranks} ranks", xscale="log", xlabel="keys a row", ylim=(0, None))
    figure.axes[0].set_ylabel("million keys/s, one thread")
    figure.axes[0].legend(frameon=False)
    figure.savefig(path)


def main() -> None:
    """Print the tables of one result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("result", type=Path)
    parser.add_argument("--figure", type=Path)
    arguments = parser.parse_args()
    result = json.loads(arguments.result.read_text())
    for part in (one_thread, all_cores, other_rules):
        print(part(result["cells"]), end="\n\n")
    if arguments.figure:
        draw(result, arguments.figure)


if __name__ == "__main__":
    main()
