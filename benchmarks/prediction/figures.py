"""Figure and tables of the newest result: ``python benchmarks/prediction/figures.py``.

Writes what stands between the markers of docs/trust/prediction.md and draws
docs/figures/prediction.svg; with ``--check`` the exit code tells whether the page is up to date.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import command
from benchmarks.prediction.model import unfitted
from benchmarks.prediction.workload import WIDEST, Point
from milp_planner.pricing.profile import load_profile

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "trust" / "prediction.md"
SIZES = (0, 4, 32, 256, float("inf"))
"""Limits of the groups of table sizes, MiB."""
GOAL = {50: 0.10, 90: 0.25}


def environment(result: dict[str, Any]) -> str:
    """Where and when, in a sentence, and whether the machine was busy."""
    load = result["load_average"]
    busy = (
        f" **The machine was shared with other work (load average {load:.0f}).**"
        if load > result["threads"] + 1 else ""
    )  # fmt: skip
    return (
        f"Measured {result['date']} on {result['processor']}, {result['threads']} threads, "
        f"{result['last_level_cache'] / 2**20:.0f} MiB last-level cache, torch {result['torch']}, "
        f"{result['rounds']} interleaved rounds.{busy}"
    )


def errors(result: dict[str, Any]) -> str:
    """Error distribution of the held-out points beside the machine's own."""
    found = result["summary"]
    lines = [
        f"| {found['points']} held-out points | median | 90th percentile | worst |",
        "|---|---|---|---|",
        f"| step time, predicted against measured | **{found['error_50']:.1%}** | "
        f"**{found['error_90']:.1%}** | {found['error_100']:.1%} |",
        f"| embedding part alone | {found['embedding_error_50']:.1%} | "
        f"{found['embedding_error_90']:.1%} | {found['embedding_error_100']:.1%} |",
        f"| the machine itself: odd against even rounds | {found['repeat_50']:.1%} | "
        f"{found['repeat_90']:.1%} | |",
        f"| the machine itself: half the interquartile range | {found['spread_50']:.1%} | "
        f"{found['spread_90']:.1%} | |",
        f"| goal | {GOAL[50]:.0%} | {GOAL[90]:.0%} | |",
    ]
    return "\n".join(lines)


def groups(result: dict[str, Any]) -> str:
    """Where the embedding part is off, and in which direction."""
    held = [row for row in result["points"] if row["held_out"]]
    sizes = np.array([row["rows"] * row["width"] * 4 / 2**20 for row in held])
    bags = np.array([row["pooling"] for row in held])
    kinds = {f"{ids} id{'s' * (ids > 1)} a bag": bags == ids for ids in sorted(set(bags.tolist()))}
    for low, high in pairwise(SIZES):
        kinds[f"table {_size(low, high)}"] = (sizes >= low) & (sizes < high)
    lines = ["| held-out points | | embedding part, median signed error | step, median error |",
             "|---|---|---|---|"]  # fmt: skip
    for name, chosen in kinds.items():
        rows = [row for row, used in zip(held, chosen, strict=True) if used]
        if rows:
            embedding = np.median([row["embedding_error"] for row in rows])
            step = np.median([abs(row["error"]) for row in rows])
            lines.append(f"| {name} | {len(rows)} | {embedding:+.1%} | {step:.1%} |")
    return "\n".join(lines)


def unfitted_errors(result: dict[str, Any]) -> str:
    """The embedding part from the newest stored profile of ``calibrate``, nothing refitted."""
    newest = max((ROOT / "benchmarks" / "calibration" / "results").glob("*.yaml"))
    profile = load_profile(newest)
    fields = Point.__dataclass_fields__
    points = [Point(**{name: row[name] for name in fields}) for row in result["points"]]
    measured = np.array([row["embedding"] for row in result["points"]])
    cache = result["last_level_cache"]
    errors = np.array([unfitted(profile, point, cache) for point in points]) / measured - 1
    held, widest = (np.array(v) for v in zip(*((p.held_out, p.width == WIDEST) for p in points),
                                             strict=True))  # fmt: skip
    median, high = np.percentile(np.abs(errors[held]), [50, 90])
    lines = [
        f"Over the {held.sum()} held-out points the absolute error is {median:.1%} in the median, "
        f"{high:.1%} at the 90th percentile.",
        "",
        "| table | points | median signed error, rows of 256 floats | narrower rows |",
        "|---|---|---|---|",
    ]
    sizes = np.array([point.rows * point.width * 4 / 2**20 for point in points])
    for low, most in pairwise(SIZES):
        here = (sizes >= low) & (sizes < most)
        found = (errors[here & widest], errors[here & ~widest])
        cells = [f"{np.median(v):+.0%}" if len(v) else "" for v in found]
        lines.append(f"| {_size(low, most)} | {here.sum()} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _size(low: float, high: float) -> str:
    if not low:
        return f"below {high:g} MiB"
    return f"{low:g} to {high:g} MiB" if np.isfinite(high) else f"above {low:g} MiB"


def fitted(result: dict[str, Any]) -> str:
    """The fitted constants."""
    f = result["fitted"]
    c0, c1, c2, c3 = f["dense"]
    return "\n".join(
        [
            "| constant | fitted |",
            "|---|---|",
            f"| `hbm`: rows in the cache | {f['hbm'] / 1e9:.3g} GB/s |",
            f"| `host_link`: rows in DRAM | {f['host_link'] / 1e9:.3g} GB/s |",
            f"| `launch_seconds` | {1e6 * f['launch_seconds']:.3g} µs |",
            f"| bytes that starting a row costs | {f['row_bytes']:.0f} |",
            f"| effective size of the cache | {f['cache_bytes'] / 2**20:.1f} MiB |",
            f"| w, writing an output beyond what the planner charges | "
            f"{1e9 * f['write']:.3g} ns a byte |",
            f"| c0, c1, c2, c3 | {1e6 * c0:.3g} µs, {1e9 * c1:.3g} ns, {1e9 * c2:.3g} ns, "
            f"{1e9 * c3:.3g} ns a byte |",
        ]
    )


def draw(result: dict[str, Any]) -> None:
    """Predicted over measured, and the distribution of the errors."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams.update({"svg.hashsalt": "prediction", "svg.fonttype": "none", "font.size": 8})
    figure = Figure(figsize=(8, 3.3), layout="constrained")
    left, right = figure.subplots(1, 2)
    rows = result["points"]
    for held, marker, label in ((False, "o", "calibration"), (True, "s", "held out")):
        chosen = [row for row in rows if row["held_out"] == held]
        left.plot([1e3 * r["seconds"] for r in chosen], [1e3 * r["predicted"] for r in chosen],
                  marker, markersize=3, linestyle="", label=label)  # fmt: skip
    low, high = (1e3 * f(r["seconds"] for r in rows) for f in (min, max))
    span = np.array([low, high])
    left.plot(span, span, color="black", linewidth=0.8)
    left.fill_between(span, span / 1.25, span * 1.25, color="black", alpha=0.08, label="± 25%")
    left.set(xscale="log", yscale="log", xlabel="measured step, ms", ylabel="predicted step, ms")
    left.legend(frameon=False)
    held = [row for row in rows if row["held_out"]]
    for values, label in (
        ([abs(r["error"]) for r in held], "prediction, held out"),
        ([abs(r["embedding_error"]) for r in held], "its embedding part"),
        ([r["repeat"] for r in held], "machine: odd against even rounds"),
    ):
        right.step(100 * np.sort(values), 100 * np.arange(1, len(values) + 1) / len(values),
                   where="post", label=label)  # fmt: skip
    right.set(xlabel="relative difference, % (below)", ylabel="share of the points, %",
              xlim=(0, None), ylim=(0, 101))  # fmt: skip
    right.legend(frameon=False, loc="lower right")
    figure.savefig(ROOT / "docs" / "figures" / "prediction.svg", metadata={"Date": None})


def blocks(result: dict[str, Any]) -> dict[str, str]:
    """Text of every block of the page, by name."""
    return {"environment": environment(result), "errors": errors(result), "fit": fitted(result),
            "groups": groups(result), "unfitted": unfitted_errors(result)}  # fmt: skip


if __name__ == "__main__":
    sys.exit(command(__doc__, PAGE, HERE / "results", blocks, draw))
