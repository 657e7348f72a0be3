"""Draw the ladder's figures into docs and its tables into docs/scale.md.

``python benchmarks/ladder/plot.py [results/DATE.json]`` takes the newest result by default;
``--check`` only says, by its exit code, whether docs/scale.md is up to date.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT)]

from curves import Row, busy, gap_curve, growth, time_to  # noqa: E402

from benchmarks.pages import command  # noqa: E402

PAGE = ROOT / "docs" / "scale.md"
FIGURES = ROOT / "docs" / "figures"
BLOCK = "ladder: benchmarks/ladder/plot.py"
NAMES = {
    "auto": "auto",
    "scale": "scale",
    "cpsat": "whole model, CP-SAT",
    "mip": "whole model, HiGHS",
}
COLOURS = {"auto": "#0b6e99", "scale": "#0b6e99", "cpsat": "#c45a00", "mip": "#6b4fa0"}


def tables(document: dict[str, Any]) -> str:
    """The two tables, as Markdown."""
    rows = sorted(document["rows"], key=lambda r: (int(r["tables"]), int(r["ranks"])))
    lines = [
        f"Measured {document['date']}, {document['machine']}; a cap of 8 GiB on resident memory."
        + _load(rows),
        "",
        "| tables × ranks | options | by | limit s | gap | gap ≤ 1% after s | peak MiB | ended |",
        "|---|---|---|---|---|---|---|---|",
        *(_compared(r) for r in rows if r["kind"] == "compared"),
        "",
        "| tables | ranks | gap ≤ 1% after s | gap then | peak MiB |",
        "|---|---|---|---|---|",
        *(_grown(r) for r in rows if r["kind"] == "growth"),
        "",
        _slope([r for r in rows if r["kind"] == "growth"]),
    ]
    return "\n".join(lines)


def _compared(row: Row) -> str:
    cells = [
        f"{row['tables']:,} × {row['ranks']:,}", f"{row.get('options', 0):,}",
        NAMES[row["formulation"]], f"{row['time_limit']:g}", _percent(row["gap"]),
        _seconds(time_to(row, 1.0)), f"{row['peak_mib']:,}", _ended(row),
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _ended(row: Row) -> str:
    words = {"optimal": "proved", "feasible": "a plan", "unknown": "no plan"}
    found: str = words.get(row["status"], row["status"])
    return found


def _grown(row: Row) -> str:
    cells = [
        f"{row['tables']:,}", f"{row['ranks']:,}", _seconds(time_to(row, 1.0)),
        _percent(row["gap"]), f"{row['peak_mib']:,}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _slope(rows: list[Row]) -> str:
    fit = growth(rows)
    if fit is None:
        return "Too few runs reached a 1% gap for a slope."
    return (
        f"Over the {fit['runs']} of {len(rows)} runs that reached it, the time to a 1% gap grows "
        f"as tables^{fit['tables']:.2f} · ranks^{fit['ranks']:.2f}, or with their product alone as "
        f"(tables × ranks)^{fit['size']:.2f} (least squares on logarithms; the former explains "
        f"{fit['explained']:.0%} of their variance)."
    )


def _load(rows: list[Row]) -> str:
    load = [r["load_before"] for r in rows if busy(r)]
    if not load:
        return ""
    return (
        f"\n**Other work ran beside {len(load)} of {len(rows)} runs (load up to {max(load):g}): "
        "these had a fraction of the processor, their times are upper limits, and gaps still open "
        "are not what the same limit gives on a quiet machine.**"
    )


def _percent(gap: float | None) -> str:
    return "–" if gap is None else f"{100 * gap:.3g}%"


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def draw(document: dict[str, Any]) -> None:
    """Write docs/figures/ladder-time.svg and ladder-growth.svg."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "ladder"
    import matplotlib.pyplot as plt

    rows = [r for r in document["rows"] if r["kind"] == "compared"]
    rows.sort(key=lambda r: int(r["tables"]))
    sizes = list(dict.fromkeys(r["size"] for r in rows))
    figure, axes = plt.subplots(
        2, max(1, len(sizes)), figsize=(9, 5.6), squeeze=False, sharex="col"
    )
    for column, size in enumerate(sizes):
        for row in (r for r in rows if r["size"] == size):
            _over_time(axes[0][column], axes[1][column], row)
        title = "{} tables × {} ranks".format(*size.split("x"))
        axes[0][column].set(yscale="log", ylabel="gap, %", title=title)
        axes[1][column].set(yscale="log", xlabel="seconds", ylabel="resident MiB")
        axes[1][column].axhline(8192, color="#999", lw=0.8, ls=":")
        axes[1][column].legend(fontsize=8)
    _save(figure, "ladder-time.svg")
    grown = [r for r in document["rows"] if r["kind"] == "growth"]
    figure, axis = plt.subplots(figsize=(5.5, 3.8))
    _growth_lines(axis, grown)
    fit = growth(grown)
    title = "" if fit is None else f": (tables × ranks)^{fit['size']:.2f}"
    axis.set(
        xscale="log", yscale="log", xlabel="tables", ylabel="seconds", title=f"to a 1% gap{title}"
    )
    axis.legend(fontsize=8)
    _save(figure, "ladder-growth.svg")


def _over_time(gaps: Any, memory: Any, row: Row) -> None:
    style = {"color": COLOURS[row["formulation"]], "label": NAMES[row["formulation"]]}
    seconds, values = gap_curve(row)
    end = row["wall_seconds"]
    if seconds:
        shown = [max(v, 1e-3) for v in values]
        gaps.step([*seconds, max(end, seconds[-1])], [*shown, shown[-1]], where="post", **style)
        gaps.plot(seconds[0], shown[0], marker="o", ms=4, color=style["color"])
    else:
        gaps.plot(end, 100, marker="x", color=style["color"])
    if row["memory"]:
        memory.plot(*zip(*row["memory"], strict=True), **style)


def _growth_lines(axis: Any, rows: list[Row]) -> None:
    """A line a number of ranks; crosses at the limit of runs that never reached the gap."""
    for ranks in sorted({r["ranks"] for r in rows}):
        own = sorted((r for r in rows if r["ranks"] == ranks), key=lambda r: int(r["tables"]))
        points = [(r["tables"], at) for r in own if (at := time_to(r, 1.0)) is not None]
        never = [(r["tables"], r["time_limit"]) for r in own if time_to(r, 1.0) is None]
        (line,) = axis.plot(*(zip(*points, strict=True) if points else ([], [])), marker="o",
                            label=f"{ranks:,} ranks")  # fmt: skip
        if never:
            axis.plot(*zip(*never, strict=True), marker="x", ls="", color=line.get_color())


def _save(figure: Any, name: str) -> None:
    figure.tight_layout()
    figure.savefig(FIGURES / name, metadata={"Date": None})


if __name__ == "__main__":
    sys.exit(command(__doc__, PAGE, HERE / "results", lambda found: {BLOCK: tables(found)}, draw))
