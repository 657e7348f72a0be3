"""Rewrite the figures of docs/dp-vs-exact.md: ``python benchmarks/dp-vs-exact/page.py [--check]``.

The blocks ``NAME: page.py`` are replaced by what the stored results say; with ``--check`` the exit
code tells whether the page is up to date.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from figures import (
    AWARE,
    BINS,
    MERGED,
    Row,
    budget_class,
    class_table,
    fusion_table,
    gap,
    large_table,
    rows,
    time_table,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import update

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "dp-vs-exact.md"
SPEED = HERE.parent / "dp-speed" / "results" / "results.json"


def main(arguments: list[str]) -> int:
    """Write, or with ``--check`` compare."""
    named = {f"{name}: page.py": text for name, text in blocks().items()}
    return update(PAGE, named, check="--check" in arguments)


def blocks() -> dict[str, str]:
    """Text of every block, by name."""
    published, sweep, large = rows("published"), rows("sweep"), rows("large")
    by_budget = class_table(
        sweep, lambda r: budget_class({**r, "slack": None}), names=(MERGED, AWARE, "greedy")
    )
    free = [r for r in sweep if not r["fusion"]]
    return {
        "answer": answer(published, sweep),
        "published": class_table(published, lambda r: r["group"]),
        "sweep": by_budget,
        "bins": class_table(free, lambda r: r["kind"], names=BINS),
        "fusion": fusion_table([r for r in sweep if r["fusion"]]),
        "large": f"{large_table(large)}\n\n{time_table(large)}",
        "seconds": time_table(sweep),
        "two-tier": two_tier_table(),
        "speed": speed_table(),
    }


def answer(published: list[Row], sweep: list[Row]) -> str:
    """When the DP is enough, in counts of cases."""
    plain = [r for r in sweep if r["kind"] == "dynamicemb" and not r["fusion"]]
    mixed = [r for r in sweep if r["kind"] == "mixed" and not r["fusion"]]
    tight = [r for r in sweep if r["kind"] == "dynamicemb" and r["fusion"] and r["tight"] != "none"]
    byte = [r for r in published if r["group"] == "1.0005x-1-rank"]
    nothing = sum(gap(r, MERGED) is None for r in byte)
    factor = max(gap(r, MERGED) or 0.0 for r in tight) + 1
    proved = sum(r["exact"]["status"] == "optimal" for r in mixed)
    most = max(gap(r, MERGED) or 0.0 for r in plain)
    return (
        f"- dynamicemb tables, fusion groups free, loose or at least 2 % of slack: worse than the "
        f"proved optimum in **{_worse(plain)} of {len(plain)}** cases, by {most:.1%} at most.\n"
        f'- A budget met nearly to the byte (0.05 % on one rank): false "infeasible" in '
        f"**{nothing} of {len(byte)}**.\n"
        f"- Mixed with TorchRec tables, which may sit on single ranks: worse in **{_worse(mixed)} "
        f"of {len(mixed)}** ({proved} optima proved): it minimises a sum, the step waits for a "
        f"maximum.\n"
        f"- Fusion groups shared and memory tight: the runtime runs something worse in "
        f"**{_worse(tight)} of {len(tight)}**, up to {factor:.1f} times the optimum."
    )


def _worse(found: list[Row]) -> int:
    return sum(g is None or g > 1e-9 for g in (gap(r, MERGED) for r in found))


def two_tier_table() -> str:
    """TorchRec tables under two tight tiers: a plan exists in every case, by construction."""
    stored = (HERE / "results" / "two-tier.jsonl").read_text().splitlines()
    found = [r for r in map(json.loads, stored) if "skipped" not in r]
    lines = ["| above need | cases | greedy and uniform find nothing | the DP finds nothing | "
             "auto, 15 s, finds nothing | greedy above the best plan |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    for slack in sorted({r["slack"] for r in found}):
        own = [r for r in found if r["slack"] == slack]
        default = [_least(r["greedy"]["objective"], r["uniform"]["objective"]) for r in own]
        dp = [r[MERGED]["objective"] for r in own]
        exact = [r["exact"]["objective"] for r in own]
        above = [d / e - 1 for d, e in zip(default, exact, strict=True) if d and e]
        lines.append(
            f"| {slack:.0%} | {len(own)} | {default.count(None)} | {dp.count(None)} | "
            f"{exact.count(None)} | {_range(above)} |"
        )
    return "\n".join(lines)


def _least(*values: int | None) -> int | None:
    return min((v for v in values if v is not None), default=None)


def _range(values: list[float]) -> str:
    return f"{min(values):.0%} to {max(values):.0%}" if values else "–"


def speed_table() -> str:
    """The vectorised programme against a plain loop."""
    lines = ["| bins | cells reached | plain loop, s | vectorised, s | times faster |",
             "|---|---|---|---|---|"]  # fmt: skip
    for row in json.loads(SPEED.read_text())["against_loop"]:
        lines.append(
            f"| {row['bins'][0]} × {row['bins'][1]} | {row['cells']:,} | {row['loop_seconds']:.3f} "
            f"| {row['seconds']:.3f} | {row['times_faster']:.1f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
