"""Figures and tables of docs/suites from the stored runs: ``python benchmarks/suites/figures.py``.

Draws the newest run of every suite and writes the tables of its page anew.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import tables

from scenarios.batch import connect

HERE = Path(__file__).parent
COLOURS = ("#2f6690", "#d1495b", "#66a182", "#edae49", "#6d597a")
MARKERS = "osD^v"
MODELS = (
    "criteo-kaggle", "criteo-terabyte", "dlrmv4-yambda5b", "kuairand-27k", "mlperf-dlrm-dcnv2",
)  # fmt: skip
MS = 1e9
PUBLISHED = 100
"""HBM bins per device of the published DP; the others are on the page."""


def main() -> None:
    """Every suite, newest run."""
    plt.rcParams.update({"svg.hashsalt": "milp-planner", "font.size": 9, "svg.fonttype": "none"})
    for name, draw in FIGURES.items():
        runs = sorted(path.parent for path in HERE.glob(f"{name}/*/results.jsonl"))
        if runs:
            figure = draw(connect(runs[-1]))
            figure.savefig(runs[-1] / "figure.svg", metadata={"Date": None})
            plt.close(figure)
            print(runs[-1] / "figure.svg")
            print(tables.write(name, runs[-1]))


def dp_vs_exact(rows: sqlite3.Connection) -> Any:
    """Share of the instances that are within a gap of the proved optimum, one panel an objective.

    A performance profile: the curve that is higher is the better heuristic.
    """
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 2.9), sharey=True, layout="constrained")
    for axis, objective in zip(axes, ("total", "busiest_rank"), strict=True):
        for index, name in enumerate(("dp", "greedy")):
            found = rows.execute(_BESIDE_EXACT, (name, objective, PUBLISHED)).fetchall()
            gaps = sorted(100 * row[0] for row in found if row[0] is not None)
            shares = [100 * (i + 1) / len(found) for i in range(len(gaps))]
            axis.step([0.01, *(max(g, 0.01) for g in gaps)], [0, *shares], where="post",
                      color=COLOURS[index], label=name)  # fmt: skip
        axis.set(xscale="log", title=f"minimising {objective}", ylim=(0, 104))
        axis.set_xlabel("above the proved optimum, % (0.01: equal)")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("share of the instances, %")
    axes[1].legend(frameon=False, loc="lower right")
    return figure


_BESIDE_EXACT = """
select 1.0 * a.objective / b.objective - 1
from results a join results b using (model, cluster, hbm, ranks_per_machine, objective_kind, seed)
where b.formulation = 'cpsat' and b.status = 'optimal'
  and a.formulation = ?1 and a.objective_kind = ?2
  and coalesce(json_extract(a.options, '$.hbm_bins_per_device'), ?3) = ?3
"""


def capacity(rows: sqlite3.Connection) -> Any:
    """Step time against ranks, one panel a limit of modes; solid: one machine, dashed: four."""
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.1), sharey=True, layout="constrained")
    for axis, mode in zip(axes, ("any", "HBM_ONLY"), strict=True):
        query = (
            "select model, ranks_per_machine, objective from results where mode = ? and "
            "cluster = '8xh100' and objective is not null order by model, ranks"
        )
        _lines(axis, rows.execute(query, (mode,)).fetchall())
        many = (
            "select model || ', 4', ranks_per_machine, objective from results where mode = ? and "
            "cluster = '4x8xh100' and objective is not null order by model, ranks"
        )
        _lines(axis, rows.execute(many, (mode,)).fetchall(), "--")
        axis.set(xscale="log", yscale="log", xlabel="ranks a machine (H100)")
        axis.set_xticks([1, 2, 4, 8], ["1", "2", "4", "8"])
        axis.set_xticks([], minor=True)
        axis.set_title("every mode" if mode == "any" else "HBM alone")
    axes[0].set_ylabel("ms a step (embeddings)")
    figure.suptitle("solid: one machine, dashed: four", fontsize=9)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3,
                  frameon=False, fontsize=8)  # fmt: skip
    return figure


def skew(rows: sqlite3.Connection) -> Any:
    """Step time against the Zipf exponent, one line a sharding."""
    figure, axis = plt.subplots(figsize=(5.6, 3), layout="constrained")
    query = (
        "select skew, objective from results"
        " where sharding = ? and objective is not null order by skew"
    )
    for index, (sharding, style) in enumerate(
        (("column_wise", {"linewidth": 4, "alpha": 0.5}), ("any", {"linestyle": "--"}),
         ("row_wise", {}))
    ):  # fmt: skip
        found = rows.execute(query, (sharding,)).fetchall()
        axis.plot([r[0] for r in found], [r[1] / MS for r in found], marker=MARKERS[index],
                  markersize=4, color=COLOURS[index], label=sharding, **style)  # fmt: skip
    axis.grid(alpha=0.3)
    axis.set(xlabel="Zipf exponent of the three sequence tables", ylim=(0, None))
    axis.set_ylabel("ms a step (embeddings)")
    axis.legend(frameon=False)
    return figure


def growth(rows: sqlite3.Connection) -> Any:
    """Step time against growth, one panel a cluster, one line a model."""
    clusters = [r[0] for r in rows.execute("select distinct cluster from results order by 1")]
    figure, axes = plt.subplots(
        1, len(clusters), figsize=(7.6, 3), sharey=True, layout="constrained", squeeze=False
    )
    for axis, cluster in zip(axes[0], clusters, strict=True):
        query = (
            "select model, cast(growth as real), objective from results where cluster = ? "
            "and objective is not null order by model, 2"
        )
        _lines(axis, rows.execute(query, (cluster,)).fetchall())
        axis.set(xlabel="tables larger by, %", title=cluster, yscale="log")
    axes[0][0].set_ylabel("ms a step (embeddings)")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3,
                  frameon=False, fontsize=8)  # fmt: skip
    return figure


def profiles(rows: sqlite3.Connection) -> Any:
    """Step time of every model on every cluster, as groups of bars."""
    figure, axis = plt.subplots(figsize=(7.6, 3), layout="constrained")
    found = rows.execute("select model, cluster, objective from results order by model").fetchall()
    models = list(dict.fromkeys(row[0] for row in found))
    for index, cluster in enumerate(("1xa10", "8xh100", "8xh200", "8xb200", "8xmi350x")):
        times = {row[0]: row[2] for row in found if row[1] == cluster}
        places = [m + 0.16 * (index - 2) for m in range(len(models))]
        heights = [(times.get(model) or 0) / MS for model in models]
        axis.bar(places, heights, width=0.15, color=COLOURS[index], label=cluster)
    axis.set_xticks(range(len(models)), models)
    axis.set(yscale="log", ylabel="ms a step (embeddings)")
    axis.legend(frameon=False, ncols=5, fontsize=8, loc="upper left")
    axis.set_ylim(top=axis.get_ylim()[1] * 3)
    return figure


def _lines(axis: Any, found: list[Any], style: str = "-") -> None:
    """Rows (name, x, picoseconds) as one line a name; dashed ones stay out of the legend."""
    for name in dict.fromkeys(row[0] for row in found):
        index = MODELS.index(name.split(",")[0])
        points = [(row[1], row[2] / MS) for row in found if row[0] == name]
        axis.plot(*zip(*points, strict=True), color=COLOURS[index % len(COLOURS)],
                  marker=MARKERS[index % len(MARKERS)], markersize=4, linestyle=style,
                  label=name if style == "-" else None)  # fmt: skip
    axis.grid(alpha=0.3)


def catalogue(rows: sqlite3.Connection) -> Any:
    """Certified gap of every model that is not certified optimal, the widest first."""
    figure, axis = plt.subplots(figsize=(7.6, 4.4), layout="constrained")
    query = "select model, certified_gap from results where certified_gap > 0 order by 2"
    found = rows.execute(query).fetchall()
    axis.barh([r[0] for r in found], [max(100 * r[1], 1e-3) for r in found], color=COLOURS[0])
    axis.set(xscale="log", xlabel="certified gap, % (at least 0.001 drawn)")
    axis.grid(alpha=0.3, axis="x")
    return figure


def scale_up(rows: sqlite3.Connection) -> Any:
    """Step time against the interval of averaging, one line a cluster; dashed: undivided."""
    figure, axis = plt.subplots(figsize=(5.6, 3), layout="constrained")
    query = (
        "select cluster, cast(sync_interval as integer), objective from results where "
        "sharding_group_size = ? and objective is not null order by 1, 2"
    )
    for size, style in (("auto", "-"), ("all", "--")):
        found = rows.execute(query, (size,)).fetchall()
        for index, cluster in enumerate(dict.fromkeys(row[0] for row in found)):
            points = [(row[1], row[2] / MS) for row in found if row[0] == cluster]
            label = f"{cluster}, {'best groups' if size == 'auto' else 'undivided'}"
            axis.plot(*zip(*points, strict=True), style, color=COLOURS[index],
                      marker=MARKERS[index], markersize=4, label=label)  # fmt: skip
    axis.set(xscale="log", xlabel="steps from one averaging to the next", ylim=(0, None))
    axis.set_ylabel("ms a step (embeddings)")
    axis.grid(alpha=0.3)
    axis.legend(frameon=False, fontsize=8)
    return figure


FIGURES: dict[str, Callable[[sqlite3.Connection], Any]] = {
    "catalogue": catalogue,
    "dp-vs-exact": dp_vs_exact,
    "capacity": capacity,
    "skew": skew,
    "growth": growth,
    "profiles": profiles,
    "scale-up": scale_up,
}

if __name__ == "__main__":
    main()
