"""The picture of docs/trust/memory.md: each case's fullest moment, measured beside predicted."""

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

from benchmarks.memory.cases import PARTS, STEP, Case

COLOURS = ("#2f6690", "#edae49", "#66a182", "#d1495b")


def draw(result: dict[str, Any], target: Path) -> None:
    """Two bars a case, stacked by part: measured above, the ledger's below, hatched."""
    cases = result["cases"]
    plt.rcParams.update({"svg.hashsalt": "milp-planner", "font.size": 7, "svg.fonttype": "none"})
    figure, axis = plt.subplots(figsize=(8.2, 0.27 * len(cases) + 1.0), layout="constrained")
    for row, case in enumerate(cases):
        for side, shift, hatch in (("measured", -0.2, ""), ("predicted", 0.2, "////")):
            left = 0.0
            fullest = max(
                (case[side][moment] for moment in STEP), key=lambda each: sum(each.values())
            )
            for colour, (part, names) in zip(COLOURS, PARTS.items(), strict=True):
                amount = sum(fullest.get(name, 0) for name in {part, *names}) / 1e6
                style = {"color": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0}
                label = part if not row and not hatch else None
                axis.barh(row + shift, amount, height=0.38, left=left, label=label, **style)
                left += amount
    axis.set_yticks(range(len(cases)), [Case(**case["case"]).name for case in cases])
    axis.invert_yaxis()
    axis.margins(y=0.01)
    axis.set_xlabel("MB at the fullest moment: measured (plain), by the ledger (hatched)")
    figure.legend(loc="outside upper center", ncols=len(PARTS), frameon=False)
    figure.savefig(target, metadata={"Date": None})
    plt.close(figure)
