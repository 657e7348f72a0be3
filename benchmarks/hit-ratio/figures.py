"""Table and figure of docs/trust/hit-ratio.md from the newest stored results.

python benchmarks/hit-ratio/figures.py
"""

import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import stored, update

HERE = Path(__file__).parent
DOCS = HERE.parent.parent / "docs"
PANELS = [("CACHING", "lru"), ("CACHING", "lfu"), ("HYBRID", "lru"), ("HYBRID", "lfu")]


def pricing(result: dict[str, Any]) -> str:
    """Markdown: errors of pricing's hit ratios, by their source."""
    points = result["points"]
    everywhere = [p for p in points if not p["edge"]]
    formula = [p for p in everywhere if p["source"] == "formula"]
    hybrid = [p for p in formula if p["mode"] == "HYBRID"]
    groups = {
        "formula, CACHING": [p for p in formula if p["mode"] == "CACHING"],
        "formula, HYBRID, batch fits HBM": [p for p in hybrid if not p["overfull"]],
        "formula, HYBRID, batch overfills HBM": [p for p in hybrid if p["overfull"]],
        "table": [p for p in everywhere if p["source"] == "table"],
        "all of these": everywhere,
        "HYBRID, batch of 0.9–1.1 × HBM": [p for p in points if p["edge"]],
    }
    lines = [
        "| source | points | mean error | 90th percentile | worst | simulated twice: mean, worst |",
        "|---|---|---|---|---|---|",
    ]
    for name, chosen in groups.items():
        found = np.abs([p["priced"] - np.mean(p["simulated"]) for p in chosen])
        apart = np.abs([p["simulated"][0] - p["simulated"][1] for p in chosen])
        worst = chosen[int(found.argmax())]
        lines.append(
            f"| {name} | {len(chosen)} | {found.mean():.4f} | {np.quantile(found, 0.9):.4f} | "
            f"{found.max():.3f} (α {worst['alpha']}, x {worst['x']:.2f}, batch of "
            f"{worst['cover']:.2f} × HBM) | {apart.mean():.4f}, {apart.max():.3f} |"
        )
    return "\n".join([*lines, "", f"{result['rows']:,} rows, {result['date']}."])


def _large(point: dict[str, Any], result: dict[str, Any]) -> bool:
    return bool(point.get("batch", 0) >= result["rows"])


def draw(result: dict[str, Any], path: Path) -> None:
    """Hit ratio over x, a line a skew; dots are simulated."""
    matplotlib.rcParams["svg.hashsalt"] = "hit-ratio"
    figure = Figure(figsize=(12, 3.4), layout="constrained")
    axes = figure.subplots(1, 4, sharey=True)
    colours = matplotlib.colormaps["viridis"]
    for axis, (mode, score) in zip(axes, PANELS, strict=True):
        usual = [p for p in result["points"] if not _large(p, result)]
        chosen = [p for p in usual if (p["mode"], p["score"]) == (mode, score)]
        for alpha in sorted({p["alpha"] for p in chosen}):
            line = sorted((p for p in chosen if p["alpha"] == alpha), key=lambda p: p["x"])
            x, colour = [p["x"] for p in line], colours(alpha / 2)
            axis.plot(x, [p["formula"] for p in line], color=colour, label=f"α {alpha:g}")
            axis.plot(x, [p["simulated"] for p in line], "o", color=colour, markersize=3)
        axis.set(title=f"{mode} {score.upper()}", xlabel="cache ratio x", xlim=(0, 1), ylim=(0, 1))
    axes[0].set_ylabel("hit ratio")
    axes[3].legend(fontsize=8, loc="lower right")
    figure.savefig(path, format="svg", metadata={"Date": None})


def main() -> None:
    """Draw, and rewrite the marked block."""
    result = stored(HERE / "results", "*-*-[0-9][0-9].json")
    draw(result, DOCS / "figures" / "hit-ratio.svg")
    drawn = stored(HERE / "results", "*-pricing.json")
    update(DOCS / "trust" / "hit-ratio.md", {"pricing": pricing(drawn)})


if __name__ == "__main__":
    main()
