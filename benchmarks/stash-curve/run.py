"""How even a stash can be, and what that costs: splits as the fastest plan has them, or free.

    python benchmarks/stash-curve/run.py run --folder FOLDER    # some minutes; resumable
    python benchmarks/stash-curve/run.py page [--check]         # docs/hardware.md and its figure

TorchRec's published production model, everything in HBM; tables of at least ``LEAST`` bytes of
weights are stashed, others never. The fastest plan comes first. Then the largest stashed bytes of a
rank are limited, once with every table split as in that plan, so that only ranks change, and once
with all splits free.
"""

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import update
from formulations import Settings
from formulations.capacity.budget import Budget
from formulations.result.check import compute_loads
from milp_planner import Cluster, Model, Plan, plan, read_plan
from milp_planner.features.explain.frontier import frontier
from milp_planner.files import write_json
from milp_planner.request.questions import STASH
from scenarios.catalog import find_cluster, find_model

ROOT, HERE = Path(__file__).resolve().parents[2], Path(__file__).resolve().parent
GIB = 2**30
LEAST = GIB
WINDOW_MS = 10_000.0
LIMITS = (2, 3, 4, 6, 8, 11, 16, 22)
"""GiB that a rank may stash."""
WORDS = {"whole": "splits of the fastest plan", "free": "splits free"}


def inputs(fastest: Plan | None = None) -> tuple[Model, Cluster]:
    """The model with its stashed tables, and the cluster; with a plan, its splits are pinned."""
    model, cluster = (
        find_model("torchrec-production").to_dict(),
        find_cluster("12x8xtorchrec-default").to_dict(),
    )
    model["workload"]["stash_window_ms"] = WINDOW_MS
    cluster["reservations"]["activations"] = "1GiB"
    for table in model["tables"]:
        size = 2 * table["rows"] * table["dim"]
        table["constraints"] = {
            "modes": ["HBM_ONLY"],
            "stash": "always" if size >= LEAST else "never",
        }
        if fastest is not None:
            placed = fastest.table(table["name"])
            pin = {"sharding_type": placed.sharding_type, "column_width": placed.column_width}
            table["constraints"]["pin"] = {k: v for k, v in pin.items() if v}
    return Model.from_dict(model), Cluster.from_dict(cluster)


def run(folder: Path, seconds: float) -> None:
    """Plan, then both curves; what is in the folder is not done again."""
    folder.mkdir(parents=True, exist_ok=True)
    first = folder / "fastest.json"
    if not first.exists():
        plan(*inputs(), objective="busiest_rank", time_limit=seconds).save(first)
    fastest = read_plan(first)
    for name in WORDS:
        path = folder / f"{name}.json"
        if path.exists():
            continue
        start = fastest
        if name == "whole":
            start = plan(*inputs(fastest), objective="busiest_rank", time_limit=seconds)
        print(name, start.outcome.objective, flush=True)
        budget = Budget(Settings(time_limit=seconds * len(LIMITS)))
        found, _ = frontier(start, STASH, [limit * GIB for limit in LIMITS], budget)
        write_json(path, [vars(point) for point in found.points])
        for point in found.points:
            print(
                name, point.budget / GIB, point.objective, point.certified, point.status, flush=True
            )
    write_json(HERE / "results.json", summed(folder, fastest, seconds))


def summed(folder: Path, fastest: Plan, seconds: float) -> dict[str, Any]:
    """What the page shows."""
    placement = fastest.outcome.placement
    assert placement is not None
    names = [resource.name for resource in fastest.instance.resources]
    held = compute_loads(fastest.instance, placement).use[names.index(STASH)]
    return {
        "date": datetime.now(UTC).date().isoformat(), "seconds": seconds,
        "stashed": sum(table.constraints.stash == "always" for table in fastest.model.tables),
        "bytes": int(held.sum()), "ranks": len(held),
        "fastest": {"stash": int(held.max()), "objective": fastest.outcome.objective},
        "curves": {name: json.loads((folder / f"{name}.json").read_text()) for name in WORDS},
    }  # fmt: skip


def words(result: dict[str, Any]) -> str:
    """The page's table and sentence."""
    whole, free = ({p["budget"]: p for p in result["curves"][name]} for name in WORDS)
    lines = [
        f"| a rank stashes at most | {WORDS['whole']} | at least | {WORDS['free']} | at least |",
        "|---|---|---|---|---|",
    ]
    for limit in (limit * GIB for limit in LIMITS):
        cells = [text for curve in (whole, free) for text in _cells(curve[limit])]
        lines.append(f"| {limit // GIB} GiB | {' | '.join(cells)} |")
    first, total = result["fastest"], result["bytes"] / GIB
    told = (
        f"Measured {result['date']}, {result['seconds']:g} s a plan. {result['stashed']} tables "
        f"are stashed, {total:.1f} GiB, {total / result['ranks']:.2f} GiB a rank; the fastest plan "
        f"stashes {first['stash'] / GIB:.2f} GiB on one rank and takes "
        f"{first['objective'] / 1e9:.1f} ms."
    )
    return "\n".join([*lines, "", told])


def _cells(point: dict[str, Any]) -> list[str]:
    if point["status"] == "infeasible":
        return ["no plan exists", ""]
    return [
        "?" if value is None else f"{value / 1e9:.1f} ms"
        for value in (point["objective"], point["certified"])
    ]


def draw(result: dict[str, Any]) -> None:
    """Both curves: plans, and below them what is certified."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    rcParams.update({"svg.hashsalt": "stash-curve", "svg.fonttype": "none", "font.size": 9})
    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    axis = figure.subplots()
    for (name, label), colour in zip(WORDS.items(), ("#c44", "#27a"), strict=True):
        points = [p for p in result["curves"][name] if p["objective"] is not None]
        points = [p for p in points if p["budget"] <= LIMITS[-1] * GIB]
        across = [p["budget"] / GIB for p in points]
        axis.step(across, [p["objective"] / 1e9 for p in points], where="post", color=colour,
                  marker="o", ms=4, label=label)  # fmt: skip
        axis.fill_between(across, [p["certified"] / 1e9 for p in points],
                          [p["objective"] / 1e9 for p in points], step="post", color=colour,
                          alpha=0.2, lw=0)  # fmt: skip
        if points and len(points) < len(LIMITS):
            axis.axvline(across[0], color=colour, lw=0.8, ls=":")
    even = result["bytes"] / result["ranks"] / GIB
    axis.axvline(even, color="black", lw=0.8, ls="--", label=f"even on all ranks: {even:.2f} GiB")
    axis.set(xlabel="GiB that a rank stashes at most", ylabel="busiest rank, ms", xlim=(0, None))
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(ROOT / "docs" / "figures" / "stash-curve.svg", metadata={"Date": None})


def main() -> int:
    """Measure and store, or show what is stored."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["run", "page"])
    parser.add_argument("--folder", type=Path, default=Path("out/stash-curve"))
    parser.add_argument("--seconds", type=float, default=20.0, help="for each plan")
    parser.add_argument("--check", action="store_true", help="only say whether the page is current")
    asked = parser.parse_args()
    if asked.what == "run":
        run(asked.folder, asked.seconds)
        return 0
    result = json.loads((HERE / "results.json").read_text())
    if not asked.check:
        draw(result)
    return update(ROOT / "docs" / "hardware.md", {"stash-curve": words(result)}, check=asked.check)


if __name__ == "__main__":
    raise SystemExit(main())
