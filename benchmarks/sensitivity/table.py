"""Write the table of docs/trust/time.md from the newest stored result.

``python benchmarks/sensitivity/table.py [FILE]`` replaces what stands between the two markers.
"""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import command
from milp_planner.drawing.units import show_gap, show_time
from milp_planner.features.explain.draw import interval_text

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "trust" / "time.md"
BLOCK = "table: benchmarks/sensitivity/table.py"
HEAD = (
    "| plan | step time | gap | changed by | draws: same / changed / open / no fit "
    "| regret: median, worst |"
)


def table(document: dict[str, Any]) -> str:
    """The table in Markdown, with date and limits."""
    limits = document["limits"]
    rows = [row(case) for case in document["cases"]]
    return "\n".join([
        HEAD, "|---|---|---|---|---|---|", *rows, "",
        f"Measured {document['date']}, {document['machine']['cores']} cores, "
        f"{limits['plan']:g} s to plan and {limits['sensitivity']:g} s for the answer of each row.",
    ])  # fmt: skip


def row(case: dict[str, Any]) -> str:
    """One model on one cluster."""
    info = case["sensitivity"]
    found = info["summary"]
    verdicts = " / ".join(str(found[v]) for v in ("same", "changes", "open", "unfit"))
    regrets = (interval_text(found["least"][i], found["most"][i]) for i in (0, 1))
    cells = [
        f"`{case['case']}`", show_time(info["now"]), show_gap(case["gap"]), changed_by(info),
        verdicts, ", ".join(regrets),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def changed_by(info: dict[str, Any]) -> str:
    """Parameters that change the plan by themselves, with the smallest change tried that does."""
    parts = []
    for one in info["singles"]:
        for side in (one["lower"], one["higher"]):
            if side is not None and side["changes_at"] is not None:
                parts.append(f"{one['parameter']['name']} {100 * side['changes_at']:+.3g}%")
    return ", ".join(parts) or "none alone"


if __name__ == "__main__":
    sys.exit(command(__doc__, PAGE, HERE / "results", lambda found: {BLOCK: table(found)}))
