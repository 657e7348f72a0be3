"""Before and after `formulations` was rebuilt around one model, side by side, into README.md.

``before.json`` holds plans, bounds and seconds of the benchmarks as stored at the commit named in
it, the last one before the rebuild; the results *after* are those stored just after it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

BENCHMARKS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(BENCHMARKS.parent))

from benchmarks.pages import stored, update  # noqa: E402

HERE = Path(__file__).resolve().parent
BLOCK = "rebuild: benchmarks/rebuild/table.py"
Row = tuple[str, str, int, int, float]


def before() -> dict[tuple[str, str], Row]:
    """Rows as they were stored: suite, name, objective, bound, seconds."""
    rows = stored(HERE / "before.json")["rows"]
    return {
        (row["suite"], row["name"]): next(_row(row["suite"], row["name"], row, row["seconds"]))
        for row in rows
    }


def after() -> Iterator[Row]:
    """The same after the rebuild, one row a solve; later results have other bytes and limits."""
    for row in stored(BENCHMARKS / "torchrec-gap" / "results" / "2026-11-24.json")["rows"]:
        yield from _row("torchrec-gap", row["instance"], row, row["seconds"])
    for entry in stored(BENCHMARKS / "demo" / "results" / "2026-11-24.json")["entries"]:
        given = entry["verdict"]
        if given["formulation"] == "auto":
            yield from _row("demo", entry["cluster"], given, given["seconds"])
    for row in stored(BENCHMARKS / "exact-scale" / "results" / "2026-11-25-cpsat-1000.json")[
        "rows"
    ]:
        name = f"{row['ranks']} ranks, seed {row['seed']}, share {row['share']}"
        yield from _row("exact-scale", name, row, row["wall_seconds"])
    for line in (BENCHMARKS / "literature" / "results" / "results.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["formulation"] == "auto":
            yield from _row("literature", row["instance"], row, row["seconds"])


def _row(suite: str, name: str, of: dict[str, Any], seconds: float) -> Iterator[Row]:
    yield suite, name, of["objective"], of["bound"], seconds


def lines(suites: tuple[str, ...]) -> Iterator[str]:
    """Instance by instance: plan, gap and seconds before, and the median after with its range."""
    heads = ("suite", "instance", "plan before", "plan after", "worse by", "gap before",
             "gap after", "s before", "s after")  # fmt: skip
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    now: dict[tuple[str, str], list[Row]] = {}
    for row in after():
        now.setdefault(row[:2], []).append(row)
    for key, old in before().items():
        if key[0] not in suites or key not in now:
            continue
        plans = [row[2] for row in now[key]]
        middle = median(plans)
        spread = "" if len(plans) == 1 else f" ({_ms(min(plans))} to {_ms(max(plans))})"
        gaps = [_gap(old), median(_gap(row) for row in now[key])]
        yield (
            f"| {key[0]} | {key[1]} | {_ms(old[2])} | {_ms(middle)}{spread} | "
            f"{100 * (middle - old[2]) / abs(old[2]):.3f}% | {100 * gaps[0]:.3f}% | "
            f"{100 * gaps[1]:.3f}% | {old[4]:.1f} | {median(row[4] for row in now[key]):.1f} |"
        )


def many(suite: str) -> str:
    """A suite with many instances in one sentence."""
    now = {row[:2]: row for row in after()}
    pairs = [(old, now[key]) for key, old in before().items() if key[0] == suite and key in now]
    proved = [sum(row[2] == row[3] for row in side) for side in zip(*pairs, strict=True)]
    worse = [new[1] for old, new in pairs if new[2] > old[2]]
    times = [median(row[4] for row in side) for side in zip(*pairs, strict=True)]
    return (
        f"**{suite}**: {len(pairs)} instances; proved {proved[0]} before, {proved[1]} after; plans "
        f"that are worse after: {', '.join(worse) or 'none'}; median seconds {times[0]:.2f} "
        f"before, {times[1]:.2f} after."
    )


def _gap(row: Row) -> float:
    return (row[2] - row[3]) / max(1, abs(row[2]))


def _ms(value: float) -> str:
    return f"{value / 1e9:.4f} ms"


def main() -> int:
    """Write the block, or with ``--check`` compare."""
    parts = [*lines(("torchrec-gap", "demo"))]
    parts += ["", many("exact-scale"), "", many("literature")]
    return update(HERE / "README.md", {BLOCK: "\n".join(parts)}, check="--check" in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
