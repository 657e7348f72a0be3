"""The tables of docs/suites.md and docs/results.md, from the newest stored run of every suite.

``python benchmarks/suites/tables.py`` rewrites each page between its marks and measures nothing;
with ``--check`` the exit code tells whether they are up to date.
"""

import os
import sqlite3
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import update
from milp_planner.drawing.units import show_gap
from scenarios.batch import connect
from scenarios.batch.suite import load_suite

DOCS = Path(__file__).resolve().parents[2] / "docs"
ELSEWHERE = {"dp-vs-exact": DOCS / "results.md"}
"""Pages of suites that answer a question of their own."""
PUBLISHED = 100
"""HBM bins per device of the published DP."""
MS = 1e9
Rows = sqlite3.Connection


def write(name: str, run: Path, check: bool) -> int:
    """Put a run's tables and origin between the marks of the suite's page."""
    page = ELSEWHERE.get(name, DOCS / "suites.md")
    link = os.path.relpath(run, page.parent)
    parts = [
        *TABLES[name](connect(run), run),
        _origin(connect(run), run, link),
    ]
    blocks = {f"{name}: benchmarks/suites/tables.py": "\n\n".join(parts)}
    return update(page, blocks, check=check)


def main() -> int:
    """Every suite, newest run."""
    check = "--check" in sys.argv[1:]
    newest = {name: max(Path(__file__).parent.glob(f"{name}/*/results.jsonl")) for name in TABLES}
    return max(write(name, path.parent, check) for name, path in newest.items())


def dp_vs_exact(rows: Rows, run: Path) -> Iterable[str]:
    """Heuristics against the proved optimum."""
    found = rows.execute(_BESIDE_EXACT).fetchall()
    series = sorted(
        {(r["formulation"], r["bins"]) for r in found if r["bins"] in (None, PUBLISHED)}
    )
    table = []
    for kind, ranks in (("total", 1), ("total", 2), ("busiest_rank", 2)):
        what = f"`{kind}`, {ranks}" if ranks > 1 else "either, 1"
        for name, bins in series:
            gaps = [
                r["gap"] for r in found
                if (r["formulation"], r["bins"]) == (name, bins)
                and (r["objective_kind"], r["ranks"]) == (kind, ranks)
            ]  # fmt: skip
            known = [gap for gap in gaps if gap is not None]
            table.append([
                what, f"`{name}`" + (f", {bins} bins" if bins else ""),
                f"{sum(g == 0 for g in known)} of {len(gaps)}",
                str(sum(g > 0.05 for g in known)), f"{100 * max(known, default=0):,.1f}%",
                str(len(gaps) - len(known)) if len(known) < len(gaps) else "",
            ])  # fmt: skip
    yield _table(["objective, ranks", "formulation", "equal to the optimum", "more than 5% above",
                  "worst", "no plan"], table)  # fmt: skip
    proved, certified, slowest = rows.execute(
        "select count(*), sum(certified_gap = 0), max(seconds) from results where "
        "formulation = 'cpsat' and status = 'optimal'"
    ).fetchone()
    yield (
        f"{proved} optima are proved, {certified} of them certified; the slowest took "
        f"{slowest:.2g} s with one thread, its certificate included."
    )


def profiles(rows: Rows, run: Path) -> Iterable[str]:
    """Step time of every model on every cluster."""
    yield _LEGEND + " The batch is per rank: eight ranks do eight times the work of the A10."
    clusters = ["1xa10", "8xh100", "8xh200", "8xb200", "8xmi350x"]
    yield _pivot(rows, "model", "cluster", clusters, "model")


TABLES: dict[str, Callable[[Rows, Path], Iterable[str]]] = {
    "dp-vs-exact": dp_vs_exact,
    "profiles": profiles,
}
_LEGEND = "`step_time` in ms with the certified gap; bold: certified optimal; †: optimal by CP-SAT."
_BESIDE_EXACT = """
select a.formulation, json_extract(a.options, '$.hbm_bins_per_device') bins, a.objective_kind,
       a.ranks_per_machine ranks, 1.0 * a.objective / b.objective - 1 gap
from results a join results b using (model, cluster, hbm, ranks_per_machine, objective_kind, seed)
where b.formulation = 'cpsat' and b.status = 'optimal' and a.formulation <> 'cpsat'
"""


def _pivot(rows: Rows, down: str, across: str, columns: Sequence[str], head: str) -> str:
    found = {(r[down], r[across]): r for r in rows.execute("select * from results")}
    lines = sorted({key[0] for key in found})
    table = [[str(each), *(_cell(found.get((each, c))) for c in columns)] for each in lines]
    return _table([head, *(c.replace("any", "free") for c in columns)], table)


def _cell(row: sqlite3.Row | None) -> str:
    """Milliseconds, bold where certified, with the certified gap where not."""
    if row is None:
        return ""
    if row["objective"] is None:
        return {"unknown": "none found"}.get(row["status"], f"none ({row['standing']})")
    time = row["objective"] / MS
    value = f"{time:,.0f}" if time >= 1000 else f"{time:.4g}"
    if row["certified_gap"] == 0:
        return f"**{value}**"
    gap = "nothing" if row["certified_gap"] is None else show_gap(row["certified_gap"])
    return f"{value}{'†' if row['status'] == 'optimal' else ''} ({gap})"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _origin(rows: Rows, run: Path, link: str) -> str:
    suite = load_suite(run / "suite.json")
    versions = [r[0] for r in rows.execute("select distinct version from results")]
    count, day = rows.execute("select count(*), max(date(finished)) from results").fetchone()
    return (
        f"Run of {day}, milp-planner {', '.join(versions)}, {count} scenarios of at most "
        f"{suite.time_limit:g} s on one thread each: [results]({link}/results.jsonl). "
        + _certified(rows)
    )


def _certified(rows: Rows) -> str:
    """What certificates prove, of the scenario itself or of another with the same inputs."""
    found = rows.execute("select standing, objective, certified_gap gap from results").fetchall()
    none = [row["standing"] for row in found if row["objective"] is None]
    gaps = [row["gap"] for row in found if row["objective"] is not None]
    known = [gap for gap in gaps if gap is not None]
    text = (
        f"Of {len(gaps)} plans {known.count(0)} are certified optimal, "
        f"{len(known) - known.count(0)} to a gap, {len(gaps) - len(known)} not at all; certified "
        f"gap {show_gap(statistics.median(known))} in the median, {show_gap(max(known))} at worst."
    )
    if not none:
        return text
    sure = none.count("certified infeasible")
    return f"{text} Without a plan: {len(none)}, of which {sure} certified infeasible."


if __name__ == "__main__":
    sys.exit(main())
