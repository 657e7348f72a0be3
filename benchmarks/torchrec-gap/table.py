"""Write the tables of result files of ``run.py`` into docs/against-torchrec.md.

    python benchmarks/torchrec-gap/table.py

The newest ``results/2*.json`` (the instances that settings were chosen on) and the newest
``results/unseen-2*.json`` (seeds that nobody looked at before the run) fill a block each; the
latter, with ``results/busy-2*.json`` (the same beside other work), also fill the block of goals and
the sentence in README.md.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import stored, update

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "against-torchrec.md"
README = HERE.parents[1] / "README.md"
BLOCKS = {
    "known: benchmarks/torchrec-gap/table.py": "2*.json",
    "unseen: benchmarks/torchrec-gap/table.py": "unseen-2*.json",
}

#: TorchRec published its statistics, not its planner's plan for these estimates.
PRODUCTION = "1935x96_production"

#: Goals on unseen instances, by tables and ranks.
GOALS = {
    (20, 8): "all proved",
    (50, 8): "median ≤ 0.1%, worst ≤ 1%",
    (50, 16): "median ≤ 0.1%, worst ≤ 1%",
    (100, 16): "median ≤ 0.5%, worst ≤ 1.5%",
    (300, 32): "≤ 1%",
    (300, 64): "≤ 3%",
    (1000, 128): "≤ 0.05%",
    (1935, 96): "≤ 1% after 60 s",
}

#: Formulations that solved the same instances, with how the table calls them.
PEERS = {
    "greedy": "greedy ms", "cpsat": "CP-SAT ms", "mip": "HiGHS ms", "rebalancer": "Rebalancer ms",
}  # fmt: skip


def milliseconds(picoseconds: int | None) -> str:
    """Picoseconds as ms with four digits after the point."""
    return "none" if picoseconds is None else f"{picoseconds / 1e9:.4f}"


def seconds(value: float | None) -> str:
    """Seconds with one digit."""
    return "–" if value is None else f"{value:.1f}"


def percent(value: float | None) -> str:
    """A share as a percentage; 0 stays 0."""
    if value is None:
        return "–"
    return "0" if value == 0 else f"{100 * value:.3f}%"


def certified_gap(row: dict[str, Any]) -> float | None:
    """(objective − certified bound)/objective of one run."""
    if row["objective"] is None or row["certified_bound"] is None:
        return None
    gap: float = (row["objective"] - row["certified_bound"]) / max(1, abs(row["objective"]))
    return gap


def worst_certified(rows: list[dict[str, Any]]) -> float | None:
    """The largest certified gap; None where a run certified nothing."""
    gaps = [gap for row in rows if (gap := certified_gap(row)) is not None]
    return max(gaps) if len(gaps) == len(rows) else None


def near_final(row: dict[str, Any]) -> float | None:
    """Seconds until the first plan within 1% of the last."""
    for time, objective, *_ in row["trace"]:
        if objective is not None and objective <= 1.01 * row["objective"]:
            return float(time)
    return None


def middle(values: list[Any]) -> Any:
    """The median of what is known; None where nothing is."""
    known = [v for v in values if v is not None]
    return statistics.median(known) if known else None


def line(rows: list[dict[str, Any]], peers: list[str]) -> str:
    """One row of the table: all seeds of one instance, and the peers."""
    ours = [r for r in rows if r["formulation"] not in PEERS]
    plans = sorted(r["objective"] for r in ours if r["objective"] is not None)
    theirs = {r["formulation"]: r["objective"] for r in rows}
    proved = sum(r["status"] == "optimal" for r in ours)
    cells = [
        rows[0]["instance"],
        milliseconds(rows[0]["reference"]),
        *(milliseconds(theirs[peer]) if peer in theirs else "" for peer in peers),
        *(milliseconds(value) for value in spread(plans)),
        seconds(middle([r["first_better_seconds"] for r in ours])),
        seconds(middle([near_final(r) for r in ours])),
        *(percent(value) for value in spread([r["gap"] for r in ours])),
        percent(worst_certified(ours)),
        f"{proved} of {len(ours)}",
    ]
    return "| " + " | ".join(cells) + " |"


def spread(values: list[Any]) -> tuple[Any, Any, Any]:
    """Best, median and worst."""
    known = sorted(v for v in values if v is not None)
    return (known[0], middle(known), known[-1]) if known else (None, None, None)


def worse_than(rows: list[dict[str, Any]], theirs: dict[str, int | None]) -> str:
    """Instances on which some run of ours is worse than the plan given, as part of a sentence."""
    worse = {
        r["instance"]
        for r in rows
        if (limit := theirs.get(r["instance"])) is not None
        and (r["objective"] is None or r["objective"] > limit)
    }
    return ", ".join(sorted(worse)) or "none"


def summary(rows: list[dict[str, Any]], peers: list[str]) -> str:
    """How the goals stand, in a few sentences."""
    ours = [r for r in rows if r["formulation"] not in PEERS]
    gaps = [r["gap"] for r in ours if r["gap"] is not None]
    certified = [g for g in map(certified_gap, ours) if g is not None]
    others = {"TorchRec": {r["instance"]: r["reference"] for r in rows}}
    others |= {
        PEERS[peer].removesuffix(" ms"): {
            r["instance"]: r["objective"] for r in rows if r["formulation"] == peer
        }
        for peer in peers
    }
    proved = sum(r["status"] == "optimal" for r in ours)
    return (
        f"{len(ours)} runs: gap median {percent(statistics.median(gaps))}, worst "
        f"{percent(max(gaps))}; certified gap median {percent(statistics.median(certified))}, "
        f"worst {percent(max(certified))}; {proved} proved optimal. Worse than "
        + "; than ".join(f"{name}: {worse_than(ours, plans)}" for name, plans in others.items())
        + "."
    )


def with_peers(document: dict[str, Any]) -> dict[str, Any]:
    """The result with what peers found on the same instances, Rebalancer by ``peers.py`` included;
    if only ``auto`` ran, with the peers of the newest result that has some."""
    results, known = HERE / "results", {r["instance"]: r for r in document["rows"]}
    if all(r["formulation"] not in PEERS for r in document["rows"]):
        for path in sorted(results.glob("unseen-2*.json"), reverse=True):
            other = json.loads(path.read_text())
            rows = [r for r in other["rows"]
                    if r["formulation"] in PEERS and r["instance"] in known]  # fmt: skip
            if rows:
                document = {**document, "rows": [*document["rows"], *rows]}
                break
    path = max(results.glob("rebalancer-2*.json"), default=None)
    found = json.loads(path.read_text()) if path else []
    rows = [
        {**known[r["instance"]], "formulation": "rebalancer", "objective": r["objective"]}
        for r in found
        if r["instance"] in known
    ]
    return {**document, "rows": [*document["rows"], *rows]}


def table(document: dict[str, Any]) -> str:
    """Date and machine, the table, the summary."""
    document = with_peers(document)
    by_name: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(document["rows"], key=lambda r: (r["tables"], r["ranks"], r["instance"])):
        by_name.setdefault(row["instance"], []).append(row)
    played = {r["formulation"] for r in document["rows"]}
    played_at = f"; peers: {document['peers']}" if "peers" in document else ""
    peers = [peer for peer in PEERS if peer in played]
    head = [
        "instance", "TorchRec ms", *(PEERS[peer] for peer in peers), "ours ms: best", "median",
        "worst", "first better s", "to 1% of the last s", "gap: best", "median", "worst",
        "certified gap, worst", "proved",
    ]  # fmt: skip
    return "\n".join([
        f"{document['date']}, {document['machine']}{played_at}", "",
        f"| {' | '.join(head)} |", "|---" * len(head) + "|",
        *(line(rows, peers) for rows in by_name.values()), "",
        summary(document["rows"], peers),
    ])  # fmt: skip


def known_at(row: dict[str, Any], moment: float) -> float | None:
    """The gap between the best plan and bound known at a moment."""
    told = [point for point in row["trace"] if point[0] <= moment]
    plans = [point[1] for point in told if point[1] is not None]
    bounds = [point[2] for point in told if point[2] is not None]
    return (min(plans) - max(bounds)) / min(plans) if plans and bounds else None


def apart(rows: list[dict[str, Any]]) -> float:
    """How far the worst plan of an instance is from its best, over seeds: the largest of all."""
    plans: dict[str, list[int]] = {}
    for row in rows:
        plans.setdefault(row["instance"], []).append(row["objective"])
    return max(max(each) / min(each) - 1 for each in plans.values())


def goals(document: dict[str, Any], busy: dict[str, Any] | None) -> str:
    """Every size against its goal; and what other work on the machine costs."""
    ours = [r for r in document["rows"] if r["formulation"] not in PEERS]
    lines = [
        "| size | goal for the gap | median | worst | median after 60 s | proved | seeds apart |",
        "|---|---|---|---|---|---|---|",
    ]
    for (tables, ranks), goal in GOALS.items():
        rows = [r for r in ours if (r["tables"], r["ranks"]) == (tables, ranks)]
        if rows:
            cells = [
                f"{tables:,}×{ranks}", goal, *map(percent, spread([r["gap"] for r in rows])[1:]),
                percent(middle([known_at(r, 60.0) for r in rows])),
                f"{sum(r['status'] == 'optimal' for r in rows)} of {len(rows)}",
                percent(apart(rows)),
            ]  # fmt: skip
            lines.append("| " + " | ".join(cells) + " |")
    if busy is None:
        return "\n".join(lines)
    for name in dict.fromkeys(r["instance"] for r in busy["rows"]):
        mine = [r for r in ours if r["instance"] == name]
        idle = middle([r["objective"] for r in mine])
        beside = [r["objective"] for r in busy["rows"] if r["instance"] == name]
        low, mid, high = spread(beside)
        lines += ["", (
            f"Beside a process that keeps one of two cores busy, `{name}` ended at "
            f"{milliseconds(low)} to {milliseconds(high)} ms ({len(beside)} solver seeds), the "
            f"median {percent(mid / idle - 1)} from the median of {len(mine)} seeds without "
            f"({busy['date']})."
        )]  # fmt: skip
    return "\n".join(lines)


def headline(document: dict[str, Any]) -> str:
    """How much longer TorchRec's plans take than ours, on the synthetic instances."""
    ours: dict[str, list[int]] = {}
    theirs: dict[str, int | None] = {}
    for row in document["rows"]:
        if row["formulation"] not in PEERS and row["instance"] != PRODUCTION:
            ours.setdefault(row["instance"], []).append(row["objective"])
            theirs[row["instance"]] = row["reference"]
    both = sorted(plan / middle(ours[name]) for name, plan in theirs.items() if plan is not None)
    return (
        "Compared with TorchRec's default planner, on TorchRec's own estimates: on "
        f"{len(both)} synthetic instances that nobody tuned on, its plans take {both[0]:.1f} to "
        f"{both[-1]:.1f} times as long as ours ({statistics.median(both):.1f} in the median); on "
        f"{len(theirs) - len(both)} more it finds no plan, and milp-planner does "
        f"({document['date']}, [table](docs/against-torchrec.md))."
    )


def newest(pattern: str) -> dict[str, Any] | None:
    """The newest result of a pattern; None: there is none."""
    results = HERE / "results"
    return stored(results, pattern) if any(results.glob(pattern)) else None


if __name__ == "__main__":
    tables = {block: table(stored(HERE / "results", pattern)) for block, pattern in BLOCKS.items()}
    unseen = stored(HERE / "results", "unseen-2*.json")
    tables["goals: benchmarks/torchrec-gap/table.py"] = goals(unseen, newest("busy-2*.json"))
    check = "--check" in sys.argv[1:]
    stale = update(
        README, {"torchrec: benchmarks/torchrec-gap/table.py": headline(unseen)}, check=check
    )
    sys.exit(update(PAGE, tables, check=check) or stale)
