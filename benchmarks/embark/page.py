"""The tables of docs/against-planners.md, from the newest stored result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.embark import lists
from benchmarks.pages import stored, update
from milp_planner.drawing.units import show_gap

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "against-planners.md"
RESULTS = HERE / "results"
OTHERS = "HugeCTR", "CP-SAT", "HiGHS", "Rebalancer"


def write(*, check: bool = False) -> int:
    """Write the blocks of the page; with ``check`` only say (1) that they are out of date."""
    return update(PAGE, blocks(stored(RESULTS)), check=check)


def blocks(document: dict[str, Any]) -> dict[str, str]:
    """Every block's text."""
    rows = sorted(document["rows"], key=lambda r: (r["case"].rpartition("_")[0], r["ranks"]))
    published = [row for row in rows if row["case"] in lists.PUBLISHED]
    rest = [row for row in rows if row["case"] not in lists.PUBLISHED]
    return {
        "overview": _overview(document, rows),
        "published": _table(published, OTHERS),
        "lists": _table(rest, OTHERS[1:]),
    }


def line(row: dict[str, Any]) -> str:
    """A case in one line, for a terminal."""
    ours = row["planners"]["auto"]
    found = [f"{name} {_beside(row, name)}" for name in OTHERS]
    return f"{row['case']}: {ours['status']} {ours['objective']} {_gap(ours)}; {', '.join(found)}"


def _overview(document: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    limits = sorted({f"{row['time_limit']:g} s" for row in rows})
    busy = sorted(row["busy_cores"] for row in rows)
    fit = [row for row in rows if row["planners"]["auto"]["status"] != "infeasible"]
    lines = [
        f"Measured {document['date']} on {document['cores']} cores, {' or '.join(limits)} for every "
        f"planner (this benchmark had {busy[len(busy) // 2]:g} cores in the median case, "
        f"{busy[0]:g} at least; a planner that ends early leaves cores idle).",
        f"{len(rows)} cases, of which {len(rows) - len(fit)} cannot fit (proved).",
        "",
        "| planner | its cases | dearer than `auto` | the same | cheaper | no plan | median excess of its plans |",
        "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name in OTHERS:
        tried = [r for r in fit if (r["planners"].get(name) or {}).get("note", "") != _LARGE
                 and r["planners"].get(name)]  # fmt: skip
        excess = sorted(x for r in tried if (x := _excess(r, name)) is not None)
        middle = show_gap(excess[len(excess) // 2]) if excess else "–"
        counts = [sum(x > 0 for x in excess), excess.count(0), sum(x < 0 for x in excess)]
        shown = " | ".join(map(str, [len(tried), *counts, len(tried) - len(excess), middle]))
        lines.append(f"| {name} | {shown} |")
    worse = [f"{r['case']}: {name} by {show_gap(-x)}" for r in fit for name in OTHERS
             if (x := _excess(r, name)) is not None and x < 0]  # fmt: skip
    open_ = [r for r in fit if _open(r["planners"]["auto"]) > 0.01]
    behind = [r["case"] for r in fit for name in ("CP-SAT", "HiGHS")
              if ((r["planners"].get(name) or {}).get("bound") or 0)
              > (r["planners"]["auto"]["bound"] or 0)]  # fmt: skip
    gaps = sorted(_open(r["planners"]["auto"]) for r in fit)
    lines += [
        "",
        f"- Plans of others that are cheaper than `auto`'s: {'; '.join(worse) or 'none'}.",
        f"- Cases where a solver's bound is above `auto`'s: {', '.join(dict.fromkeys(behind)) or 'none'}.",
        f"- Certified gap of `auto`: median {show_gap(gaps[len(gaps) // 2])}, worst {show_gap(gaps[-1])}; "
        f"{sum(g == 0 for g in gaps)} of {len(gaps)} closed.",
        "- More than 1% open: "
        + ("; ".join(f"{r['case']} {_gap(r['planners']['auto'])}" for r in open_) or "none")
        + ".",
    ]  # fmt: skip
    return "\n".join(lines)


_LARGE = "too large for this machine's memory"


def _table(rows: list[dict[str, Any]], others: tuple[str, ...]) -> str:
    lines = [
        "| case | tables × ranks | the larger of mean and largest shard | `auto` | certified gap | seconds | "
        + " | ".join(others) + " |",
        "|---|---|---|---|---|---|" + "---|" * len(others),
    ]  # fmt: skip
    for row in rows:
        ours = row["planners"]["auto"]
        head = f"| {row['case']} | {row['tables']} × {row['ranks']} | "
        if ours["status"] == "infeasible":
            lines.append(
                f"{head}– | cannot fit | – | {ours['seconds']:.1f} |" + " – |" * len(others)
            )
            continue
        plan = f"{ours['objective']:,}" if ours["objective"] else "no plan"
        lines.append(f"{head}{row['trivial']:,} | {plan} | {_gap(ours)} | {ours['seconds']:.1f} | "
                     + " | ".join(_beside(row, name) for name in others) + " |")  # fmt: skip
    return "\n".join(lines)


def _excess(row: dict[str, Any], name: str) -> float | None:
    """By how much another's plan is dearer than ours, as a share of ours."""
    found, ours = row["planners"].get(name) or {}, row["planners"]["auto"]
    if not found.get("objective") or not ours["objective"]:
        return None
    return float(found["objective"] / ours["objective"] - 1)


def _beside(row: dict[str, Any], name: str) -> str:
    found = row["planners"].get(name)
    if not found:
        return "–"
    excess = _excess(row, name)
    if excess is None:
        return "not run" if found.get("note") == _LARGE else "no plan"
    sign = "" if excess == 0 else "+" if excess > 0 else "−"
    proved = ", proved" if found.get("status") == "optimal" else ""
    return (f"{sign}{show_gap(abs(excess))}" if excess else "the same") + proved


def _open(found: dict[str, Any]) -> float:
    if not found["objective"] or found["certified"] is None:
        return 1.0
    return float(1 - found["certified"] / found["objective"])


def _gap(found: dict[str, Any]) -> str:
    return show_gap(_open(found)) if found["objective"] else "–"
