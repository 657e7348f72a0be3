"""Tables and figures of the experiment: ``python benchmarks/dp-vs-exact/figures.py``.

Reads ``results/published.jsonl`` and ``results/sweep.jsonl``; writes ``results/tables.md`` and the
SVG figures beside them. Nothing is measured here; everything is counted from those rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).parent / "results"
MERGED = "merged 100x25"
AWARE = "fusion-aware 100x25"
BINS = ("merged 10x5", "merged 25x6", MERGED, "first 100x50", "merged 400x100")
Row = dict[str, Any]


def main() -> None:
    """Write everything."""
    published, sweep = rows("published"), rows("sweep")
    large = rows("large")
    parts = [
        "## The published failure classes, again",
        class_table(published, lambda r: r["group"]),
        "## The sweep by kind of model, fusion and budgets (merged variant, 100 × 25 bins)",
        class_table(sweep, budget_class, names=(MERGED, AWARE, "greedy")),
        "## The same without the slacks",
        class_table(
            sweep, lambda r: budget_class({**r, "slack": None}), names=(MERGED, AWARE, "greedy")
        ),
        "## The sweep by bins (fusion off)",
        class_table([r for r in sweep if not r["fusion"]], lambda r: r["kind"], names=BINS),
        "## Fusion groups on: the plan believed, the plan run, the fusion-aware DP, exact",
        fusion_table([r for r in sweep if r["fusion"]]),
        "## Seconds (median / largest)",
        time_table(sweep),
        "## Large sizes: loose, and both budgets 5 % above a drawn plan",
        large_table(large),
        time_table(large),
    ]  # fmt: skip
    (HERE / "tables.md").write_text("\n\n".join(parts) + "\n")
    draw(sweep)


def rows(name: str) -> list[Row]:
    """Rows of one file in which an exact answer is known."""
    path = HERE / f"{name}.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    found = [json.loads(line) for line in lines]
    return [r for r in found if r.get("exact", {}).get("objective") is not None]


def budget_class(row: Row) -> str:
    """Kind, fusion and budgets of a row, in words."""
    tight = {"none": "loose", "hbm": "HBM tight", "both": "both tight"}[row["tight"]]
    plain = row["tight"] == "none" or row["slack"] is None
    slack = "" if plain else f" {row['slack']:.0%}"
    return f"{row['kind']}, fusion {'on' if row['fusion'] else 'off'}, {tight}{slack}"


def gap(row: Row, name: str) -> float | None:
    """How much more a heuristic's plan costs than the best known; None where it found none."""
    found = row[name]["objective"]
    return None if found is None else found / row["exact"]["objective"] - 1


def class_table(
    found: list[Row], by: Callable[[Row], str], names: Iterable[str] = (*BINS, "greedy")
) -> str:
    """Cases, exact answers proved, and how often each heuristic fails or is worse, and how much."""
    lines = ["| cases | number (proved) | formulation | found nothing | worse | median of worse | "
             "largest |", "|---|---|---|---|---|---|---|"]  # fmt: skip
    for label in dict.fromkeys(map(by, found)):
        for name in names:
            own = [r for r in found if by(r) == label and name in r]
            if not own:
                continue
            proved = sum(r["exact"]["status"] == "optimal" for r in own)
            gaps = [gap(r, name) for r in own]
            worse = [g for g in gaps if g is not None and g > 1e-9]
            lines.append(
                f"| {label} | {len(own)} ({proved}) | {name} | {gaps.count(None)} | {len(worse)} | "
                f"{_percent(median(worse) if worse else None)} | "
                f"{_percent(max(worse, default=None))} |"
            )
    return "\n".join(lines)


def fusion_table(found: list[Row]) -> str:
    """What ignoring fusion groups costs, by kind of model."""
    lines = [
        "| kind | cases | DP's plan mixes a group | of these, as run breaks memory | "
        "as run above plan: median / largest | as run above exact: median / largest | "
        "fusion-aware DP above exact: worse, largest |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind in dict.fromkeys(r["kind"] for r in found):
        own = [r for r in found if r["kind"] == kind]
        mixed = [r for r in own if r[MERGED].get("planned") is not None]
        run = [r for r in mixed if r[MERGED]["objective"] is not None]
        above = [r[MERGED]["objective"] / r[MERGED]["planned"] - 1 for r in run]
        exact = [r[MERGED]["objective"] / r["exact"]["objective"] - 1 for r in run]
        aware = [g for r in own if (g := gap(r, AWARE)) is not None and g > 1e-9]
        lines.append(
            f"| {kind} | {len(own)} | {len(mixed)} | {len(mixed) - len(run)} | {_spread(above)} | "
            f"{_spread(exact)} | {len(aware)}, {_percent(max(aware, default=None))} |"
        )
    return "\n".join(lines)


def large_table(found: list[Row]) -> str:
    """One row a case: how far each heuristic is above the best plan known."""
    names = (MERGED, "merged 25x6", AWARE, "greedy")
    lines = [f"| ranks × tables | case | exact | {' | '.join(names)} |", "|---" * 7 + "|"]
    for row in found:
        cells = []
        for name in names:
            if name not in row:
                cells.append("–")
            elif row[name]["objective"] is None:
                limit = row[name]["stopped_by"] == "time_limit"
                cells.append("nothing (time limit)" if limit else "nothing")
            else:
                cells.append(_percent(max(0.0, gap(row, name) or 0.0)))
        size = f"{row['machines'] * row['local']} × {row['tables']}"
        proved = "proved" if row["exact"]["status"] == "optimal" else "best known"
        lines.append(f"| {size} | {budget_class(row)} | {proved} | {' | '.join(cells)} |")
    return "\n".join(lines)


def time_table(found: list[Row]) -> str:
    """Seconds of the DP and of the exact solve by size."""
    lines = ["| ranks × tables | merged DP | first DP | fusion-aware DP | exact | proved |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    size = {(r["machines"] * r["local"], r["tables"]) for r in found}
    for ranks, tables in sorted(size):
        own = [r for r in found if (r["machines"] * r["local"], r["tables"]) == (ranks, tables)]
        cells = []
        for name in (MERGED, "first 100x50", AWARE, "exact"):
            seconds = [r[name]["seconds"] for r in own if name in r]
            cells.append(f"{median(seconds):.2f} / {max(seconds):.1f}" if seconds else "–")
        proved = sum(r["exact"]["status"] == "optimal" for r in own)
        lines.append(f"| {ranks} × {tables} | {' | '.join(cells)} | {proved} of {len(own)} |")
    return "\n".join(lines)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{value:.2%}"


def _spread(values: list[float]) -> str:
    return "–" if not values else f"{_percent(median(values))} / {_percent(max(values))}"


def draw(found: list[Row]) -> None:
    """The gap's distribution by budgets and by bins, and what fusion does to it."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "dp-vs-exact"
    from matplotlib import pyplot as plt

    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    free = [r for r in found if not r["fusion"]]
    for kind, style in (("dynamicemb", "-"), ("mixed", "--")):
        for tight, colour in (("none", "tab:green"), ("hbm", "tab:orange"), ("both", "tab:red")):
            own = [r for r in free if r["kind"] == kind and r["tight"] == tight]
            label = f"{kind}, {dict(none='loose', hbm='HBM tight', both='both tight')[tight]}"
            _curve(left, [gap(r, MERGED) for r in own], label, style, colour)
    for name in BINS:
        own = [r for r in free if r["tight"] != "none" and name in r]
        _curve(middle, [gap(r, name) for r in own], name)
    fused = [r for r in found if r["fusion"] and r["tight"] != "none"]
    _curve(right, [_believed(r) for r in fused], "DP, as it believes")
    _curve(right, [gap(r, MERGED) for r in fused], "DP, as the runtime runs it")
    _curve(right, [gap(r, AWARE) for r in fused], "fusion-aware DP")
    titles = (
        "merged DP, fusion off",
        "bins, tight budgets, fusion off",
        "fusion on, tight budgets",
    )
    for axes, title in zip((left, middle, right), titles, strict=True):
        axes.set(title=title, xlabel="above the best plan known", ylabel="share of cases",
                 ylim=(0, 1.02))  # fmt: skip
        axes.set_xscale("symlog", linthresh=0.01)
        axes.set_xlim(left=-0.002)
        axes.legend(fontsize=7, loc="lower right")
    figure.savefig(HERE / "gaps.svg", metadata={"Date": None})


def _believed(row: Row) -> float | None:
    planned = row[MERGED].get("planned", row[MERGED]["objective"])
    return None if planned is None else planned / row["exact"]["objective"] - 1


def _curve(
    axes: Any, gaps: list[float | None], label: str, style: str = "-", colour: str | None = None
) -> None:
    """Share of cases within a gap; a case without a plan is within none."""
    if not gaps:
        return
    known = sorted(g for g in gaps if g is not None)
    share = [(i + 1) / len(gaps) for i in range(len(known))]
    start = [min(0.0, *known)] if known else [0.0]
    axes.step([*start, *known], [0.0, *share], style, where="post", label=label, color=colour)


if __name__ == "__main__":
    main()
