"""Two curves for docs/gallery.md: step time over HBM, and over bytes stashed.

``python -m benchmarks.frontier.curves`` solves both, stores them in curves.json and draws
docs/figures/frontier.svg and stash.svg; with ``--draw`` it only draws. The stash curve is the
example of docs/hardware.md.
"""

import argparse
import datetime
import json
import re
from pathlib import Path
from typing import Any

import yaml

from formulations import Settings
from formulations.capacity.budget import Budget
from milp_planner import Cluster, Model, plan
from milp_planner.features.explain.frontier import frontier
from milp_planner.files import write_json
from scenarios import catalog

HERE = Path(__file__).resolve().parent
DOCS = HERE.parents[1] / "docs"
STORED = HERE / "curves.json"
GIB, MIB, MS = 2**30, 2**20, 1e9
CURVES = {
    "frontier": ("hbm", [n * GIB for n in (*range(8, 24), *range(24, 72, 4))]),
    "stash": ("stash", [n * MIB for n in range(0, 68, 4)]),
}
"""By picture: what is limited, and the limits in bytes of a rank."""
LIMIT = 30.0
"""Seconds for a plan, and again for its curve."""


def main() -> None:
    """Measure unless told not to, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draw", action="store_true", help="draw what is stored")
    if not parser.parse_args().draw:
        found = {name: measured(name) for name in CURVES}
        write_json(STORED, {"date": f"{datetime.date.today()}", "curves": found})
    document = json.loads(STORED.read_text(encoding="utf-8"))
    for name, curve in document["curves"].items():
        draw(curve, document["date"], DOCS / "figures" / f"{name}.svg")


def measured(name: str) -> dict[str, Any]:
    """A curve: bytes of a rank, and picoseconds of the best plan and of the certified bound."""
    over, budgets = CURVES[name]
    model, cluster = inputs(name)
    best = plan(model, cluster, settings=Settings(time_limit=LIMIT))
    info, _ = frontier(best, over, budgets, Budget(Settings(time_limit=LIMIT)))
    assert all(point.verified for point in info.points)
    points = [[p.budget, p.objective, p.certified] for p in info.points if p.budget in budgets]
    return {"title": f"{model.name} on {cluster.name}", "over": over, "points": points}


def inputs(name: str) -> tuple[Model, Cluster]:
    """A shipped model on one A10, or the example of docs/hardware.md."""
    if name == "frontier":
        return catalog.find_model("kuairand-27k"), catalog.find_cluster("1xa10")
    page = (DOCS / "hardware.md").read_text(encoding="utf-8")
    texts = re.findall(r"```yaml\n# (?:model|cluster)\.yaml\n(.*?)```", page, re.DOTALL)
    model, cluster = (yaml.safe_load(text) for text in texts)
    return Model.from_dict(model), Cluster.from_dict(cluster)


def draw(curve: dict[str, Any], date: str, target: Path) -> None:
    """The plans as steps, the certified bound below them."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "milp-planner", "font.size": 9, "svg.fonttype": "none"})
    figure, axis = plt.subplots(figsize=(5.6, 2.9), layout="constrained")
    unit, word = (GIB, "HBM of a rank, GiB") if curve["over"] == "hbm" else (MIB, "stash, MiB")
    known = [point for point in curve["points"] if point[1] is not None]
    x = [budget / unit for budget, _, _ in known]
    times, bounds = ([point[which] / MS for point in known] for which in (1, 2))
    axis.step(x, times, where="post", color="#81c3d7", linewidth=4, label="best plan found")
    axis.step(x, bounds, where="post", color="#d1495b", linewidth=1, label="certified bound")
    axis.set(xlabel=word, ylabel="ms a step (embeddings)")
    if max(times) > 10 * min(times):
        axis.set_yscale("log")
    else:
        axis.set_ylim(0, None)
    axis.grid(alpha=0.3)
    axis.legend(frameon=False, fontsize=8)
    axis.set_title(f"{curve['title']}, {date}", fontsize=9)
    figure.savefig(target, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
