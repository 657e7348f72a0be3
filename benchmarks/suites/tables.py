"""The tables of docs/suites and docs/dp-vs-exact.md, from the newest stored run of every suite.

``python benchmarks/suites/figures.py`` calls this: it rewrites each page between its two marks and
measures nothing.
"""

from __future__ import annotations

import json
import os
import sqlite3
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import update
from milp_planner.drawing.units import UNKNOWN, show_bytes, show_gap, show_time
from scenarios.batch import connect
from scenarios.batch.suite import load_suite
from scenarios.catalog import find_model

DOCS = Path(__file__).resolve().parents[2] / "docs"
ELSEWHERE = {
    "dp-vs-exact": DOCS / "dp-vs-exact.md", "catalogue": DOCS / "suites" / "catalogue.md",
}  # fmt: skip
"""Pages of suites that answer a question of their own."""
KILLS = Path(__file__).with_name("kills.json")
MS = 1e9
Rows = sqlite3.Connection


def write(name: str, run: Path) -> Path:
    """Put a run's tables, figure and origin between the marks of the suite's page."""
    page = ELSEWHERE.get(name, DOCS / "suites" / "results.md")
    link = os.path.relpath(run, page.parent)
    parts = [
        *TABLES[name](connect(run), run),
        f"![{ABOUT[name]}]({link}/figure.svg)",
        _origin(connect(run), run, link),
    ]
    update(page, {f"{name}: benchmarks/suites/figures.py": "\n\n".join(parts)})
    return page


def dp_vs_exact(rows: Rows, run: Path) -> Iterable[str]:
    """Heuristics against the proved optimum, then the DP's bins, then what kills.py found."""
    found = rows.execute(_BESIDE_EXACT).fetchall()
    series = sorted({(r["formulation"], r["bins"]) for r in found}, key=lambda s: (s[0], s[1] or 0))
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
    yield _kills(json.loads(KILLS.read_text()))


def capacity(rows: Rows, run: Path) -> Iterable[str]:
    """Fewest ranks with every mode and with HBM alone, then step times."""
    models = [r[0] for r in rows.execute("select distinct model from results order by 1")]
    fewest = [[m, *(_fewest(rows, m, mode) for mode in ("any", "HBM_ONLY"))] for m in models]
    yield _table(["model", "fewest ranks, every mode", "fewest ranks, HBM alone"], fewest)
    yield _LEGEND + " The batch is per rank: eight ranks do eight times the work of one."
    places = [(c, n) for c in ("8xh100", "4x8xh100") for n in (1, 2, 4, 8)]
    heads = [str(n) if c == "8xh100" else f"4 × {n}" for c, n in places]
    table = []
    for model in models:
        query = (
            "select * from results where model = ? and cluster = ? and ranks_per_machine = ? "
            "and mode = 'any'"
        )
        table.append([model, *(_cell(rows.execute(query, (model, *p)).fetchone()) for p in places)])
    yield _table(["model", *heads], table)


def skew(rows: Rows, run: Path) -> Iterable[str]:
    """Step time for every exponent and sharding."""
    yield _LEGEND
    yield _pivot(rows, "skew", "sharding", ["row_wise", "column_wise", "any"], "Zipf exponent")


def growth(rows: Rows, run: Path) -> Iterable[str]:
    """Step time and free HBM against growth."""
    yield _LEGEND + " After the comma: the least share of HBM left free on any rank."
    keys = rows.execute("select distinct model, cluster from results order by 1, 2").fetchall()
    steps = [
        r[0]
        for r in rows.execute("select distinct growth from results order by cast(growth as real)")
    ]
    table = []
    for model, cluster in keys:
        found = {
            r["growth"]: r
            for r in rows.execute(
                "select * from results where model = ? and cluster = ?", (model, cluster)
            )
        }
        cells = [_cell(found[step], free=True) for step in steps]
        table.append([model, cluster, *cells])
    yield _table(["model", "cluster", *(f"+{step}%" for step in steps)], table)


def profiles(rows: Rows, run: Path) -> Iterable[str]:
    """Step time of every model on every cluster."""
    yield _LEGEND + " The batch is per rank: eight ranks do eight times the work of the A10."
    clusters = ["1xa10", "8xh100", "8xh200", "8xb200", "8xmi350x"]
    yield _pivot(rows, "model", "cluster", clusters, "model")


def catalogue(rows: Rows, run: Path) -> Iterable[str]:
    """Every model with its size, its cluster, and what became of it."""
    table = []
    for row in rows.execute("select * from results order by model").fetchall():
        model = find_model(row["model"])
        ids = sum(each.lookups_per_sample for each in model.tables)
        gap = UNKNOWN if row["certified_gap"] is None else show_gap(row["certified_gap"])
        table.append([
            f"`{row['model']}`", f"{len(model.tables):,}", show_bytes(model.weight_bytes),
            f"{ids:,.0f}", f"`{row['cluster']}`", show_time(row["objective"]), gap,
            str(row["standing"]), f"{row['seconds']:.3g}",
        ])  # fmt: skip
    yield _table(["model", "tables", "weights", "ids a sample", "cluster", "step time",
                  "certified gap", "verdict", "seconds"], table)  # fmt: skip


def scale_up(rows: Rows, run: Path) -> Iterable[str]:
    """Every cluster and interval: undivided, and the best sharding groups beside."""
    query = (
        "select * from results where cluster = ? and sharding_group_size = ? and sync_interval = ?"
    )
    places = rows.execute("select distinct cluster, sync_interval from results").fetchall()
    table = []
    for cluster, interval in sorted(places, key=lambda place: (place[0], int(place[1]))):
        whole, best = (rows.execute(query, (cluster, s, interval)).fetchone() for s in _SIZES)
        table.append([
            f"`{cluster}`", str(interval), _cell(whole), _cell(best), best["division"] or "",
            show_time(best["sync"]), "" if not best["objective"] or not whole["objective"] else
            f"{whole['objective'] / best['objective']:.2f}",
        ])  # fmt: skip
    yield _LEGEND
    yield _table(["cluster", "averaged every … steps", "undivided", "best of all divisions",
                  "which", "of it sync", "times as fast"], table)  # fmt: skip


_SIZES = ("all", "auto")
TABLES: dict[str, Callable[[Rows, Path], Iterable[str]]] = {
    "catalogue": catalogue,
    "dp-vs-exact": dp_vs_exact,
    "capacity": capacity,
    "skew": skew,
    "growth": growth,
    "profiles": profiles,
    "scale-up": scale_up,
}
ABOUT = {
    "catalogue": "Certified gaps",
    "dp-vs-exact": "Share of the instances within a gap",
    "capacity": "Step time against ranks",
    "skew": "Step time against skew",
    "growth": "Step time against growth",
    "profiles": "Step time by kind of GPU",
    "scale-up": "Step time with and without sharding groups",
}
_LEGEND = "`step_time` in ms with the certified gap; bold: certified optimal; †: optimal by CP-SAT."
_BESIDE_EXACT = """
select a.formulation, json_extract(a.options, '$.hbm_bins_per_device') bins, a.objective_kind,
       a.ranks_per_machine ranks, 1.0 * a.objective / b.objective - 1 gap
from results a join results b using (model, cluster, hbm, ranks_per_machine, objective_kind, seed)
where b.formulation = 'cpsat' and b.status = 'optimal' and a.formulation <> 'cpsat'
"""


def _kills(found: dict[str, object]) -> str:
    same = found["same_proved_objectives"]
    assert isinstance(same, dict)
    seconds, after = found["seconds_by_processes"], found["killed_after"]
    assert isinstance(seconds, dict) and isinstance(after, list)
    verdict = "the same in all of them" if all(same.values()) else f"NOT all the same: {same}"
    ray = ", and on a local Ray" if "ray" in same else ""
    return (
        f"**Killed and resumed** ({found['date']}, `benchmarks/suites/kills.py`): whole with one "
        f"and with two processes, killed (SIGKILL) with {', '.join(map(str, after))} of "
        f"{found['scenarios']} results on the disk and resumed{ray}: all {found['proved']} proved "
        f"objectives are {verdict}. One process took {seconds['1']:g} s, two {seconds['2']:g} s: "
        f"{found['speed_up']:.2f} times as fast (load average before: "
        f"{found['load_average_before']:.1f} on {found['cores']} cores)."
    )


def _fewest(rows: Rows, model: str, mode: str) -> str:
    found = rows.execute(
        "select ranks, status, standing from results where model = ? and mode = ? order by ranks",
        (model, mode),
    ).fetchall()
    fits = [r["ranks"] for r in found if r["status"] in ("optimal", "feasible")]
    if not fits:
        return "none of these"
    smaller = [r for r in found if r["ranks"] < fits[0]]
    refuted = [r for r in smaller if r["status"] == "infeasible"]
    told = "certified" if all(r["standing"].startswith("certified") for r in refuted) else "proved"
    places = ", ".join(dict.fromkeys(str(r["ranks"]) for r in refuted))
    return f"{fits[0]} ({places}: {told} not to fit)" if refuted else str(fits[0])


def _pivot(rows: Rows, down: str, across: str, columns: Sequence[str], head: str) -> str:
    found = {(r[down], r[across]): r for r in rows.execute("select * from results")}
    lines = sorted({key[0] for key in found})
    table = [[str(each), *(_cell(found.get((each, c))) for c in columns)] for each in lines]
    return _table([head, *(c.replace("any", "free") for c in columns)], table)


def _cell(row: sqlite3.Row | None, free: bool = False) -> str:
    """Milliseconds, bold where certified, with the certified gap where not."""
    if row is None:
        return ""
    if row["objective"] is None:
        return {"unknown": "none found"}.get(row["status"], f"none ({row['standing']})")
    time = row["objective"] / MS
    value = f"{time:,.0f}" if time >= 1000 else f"{time:.4g}"
    room = f", {row['hbm_headroom']:.0%}" if free and row["hbm_headroom"] is not None else ""
    if row["certified_gap"] == 0:
        return f"**{value}**{room}"
    gap = "nothing" if row["certified_gap"] is None else show_gap(row["certified_gap"])
    return f"{value}{'†' if row['status'] == 'optimal' else ''} ({gap}){room}"


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
