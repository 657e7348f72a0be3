"""Picture of docs/trust/time.md: two plans on one machine, as timed and as priced."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

COLOURS = ("#d1495b", "#2f6690")
WIDTH = 0.38


def draw(
    rows: Sequence[Mapping[str, Any]], ours: Mapping[str, Sequence[float]], target: Path
) -> None:
    """One panel a batch: both plans as published and at each bandwidth, with their difference.

    Parameters
    ----------
    rows : sequence of mappings
        Published steps, ``ms`` each; two neighbours are the two plans of one ``batch``.
    ours : mapping of str to sequence of float
        What is beside them: by bandwidth, our milliseconds of every row.
    target : Path
        The SVG to write.
    """
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "milp-planner", "font.size": 9, "svg.fonttype": "none"})
    figure, axes = plt.subplots(1, len(rows) // 2, figsize=(8.2, 3.1), layout="constrained")
    for axis, first in zip(axes, range(0, len(rows), 2), strict=True):
        pair = rows[first : first + 2]
        bars = {"published,\nwhole step": [row["ms"] for row in pair]}
        bars |= {name: list(each[first : first + 2]) for name, each in ours.items()}
        _panel(axis, bars, [row["plan"] for row in pair])
        axis.set_title(f"batch {pair[0]['batch']:,}", fontsize=9)
    axes[0].set_ylabel("ms")
    axes[0].legend(frameon=False, fontsize=8)
    figure.suptitle("DLRM-DCNv2 on 8 × B200: above the bars, their difference", fontsize=10)
    figure.savefig(target, metadata={"Date": None})
    plt.close(figure)


def _panel(axis: Any, bars: Mapping[str, Sequence[float]], plans: Sequence[str]) -> None:
    """Groups of two bars."""
    for which, (plan, colour) in enumerate(zip(plans, COLOURS, strict=True)):
        places = [place + (which - 0.5) * WIDTH for place in range(len(bars))]
        axis.bar(places, [pair[which] for pair in bars.values()], WIDTH, color=colour, label=plan)
    for place, (slow, fast) in enumerate(bars.values()):
        axis.text(place, max(slow, fast), f"{slow - fast:.2f}", ha="center", va="bottom")
    axis.set_xticks(range(len(bars)), bars, fontsize=7)
    axis.spines[["top", "right"]].set_visible(False)
