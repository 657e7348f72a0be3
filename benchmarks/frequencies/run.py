"""What measured frequencies and Zipf 1.05 say of one table: a block of docs/trust/hit-ratio.md.

python benchmarks/frequencies/run.py
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import update
from milp_planner.inputs import Table
from milp_planner.pricing.hit_ratios import CachePolicy, hit_ratios
from milp_planner.pricing.popularity import hot_share, popularity, unique_fraction

PAGE = Path(__file__).resolve().parents[2] / "docs" / "trust" / "hit-ratio.md"
ROWS, BATCH = 40_000_000, 8192
ZIPF = {"kind": "zipf", "alpha": 1.05}
CURVES = {
    "Zipf 1.05": ZIPF,
    "criteo-large": {"kind": "frequency", "curve": "criteo-large"},
    "criteo": {"kind": "frequency", "curve": "criteo"},
}


def statistics() -> str:
    """What each access says of one table of 40M rows."""
    ratios = np.array([0.001, 0.01, 0.1])
    head = " | ".join(f"cache of {100 * x:g}%" for x in ratios)
    lines = [f"| access | {head} | distinct ids of 8,192 | hot rank of 8, over the mean |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    for name, access in CURVES.items():
        table = Table.from_dict({"name": "t", "rows": ROWS, "dim": 128, "access": access})
        policy = CachePolicy("CACHING", False, 8 * BATCH)
        hits = hit_ratios(table.access, ROWS, ratios, policy).values.tolist()
        unique = unique_fraction(table.access, ROWS, BATCH)
        hot = 8 * hot_share(popularity(table.access, ROWS), 8)
        cells = [f"{h:.3f}" for h in hits] + [f"{unique:.1%}", f"{hot:.2f}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(update(PAGE, {"statistics": statistics()}))
