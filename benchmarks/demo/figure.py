"""Draw the README's picture: time per rank and phase as DLRMv4's trainer runs it, alone and ours.

``python benchmarks/demo/figure.py [--time-limit 60] [-o docs/figures/readme.svg]`` plans for the
trainer and replays its own planner with nothing set; it ends without a picture unless the export of
the plan says that what runs is the plan.
"""

import argparse
import datetime
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from milp_planner.drawing.units import show_time
from milp_planner.features.plan.ranks import ranks_of
from milp_planner.integrations.replay.dlrmv4 import runs_now
from milp_planner.integrations.replay.judge import judge, placed
from milp_planner.integrations.replay.plan_for import plan_for
from milp_planner.plans.placement import Plan
from scenarios import catalog

ROOT = Path(__file__).resolve().parents[2]
MODEL, CLUSTER, TRAINER = "dlrmv4-yambda5b", "8xmi350x", "dlrmv4"
COLOURS = ("#2f6690", "#81c3d7", "#d1495b", "#edae49", "#66a182")
MS = 1e9


def main() -> None:
    """Plan, replay and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("-o", type=Path, default=ROOT / "docs" / "figures" / "readme.svg")
    arguments = parser.parse_args()
    model, cluster = catalog.find_model(MODEL), catalog.find_cluster(CLUSTER)
    ours = plan_for(TRAINER, model, cluster, time_limit=arguments.time_limit)
    judgement, _ = judge(ours, TRAINER)
    if not judgement.exact:
        raise SystemExit(" ".join(judgement.sentences()))
    alone = placed(ours, runs_now("", model, cluster))
    draw({"the trainer's planner alone": alone, "milp-planner --for dlrmv4": ours}, arguments.o)
    print(*judgement.sentences(), arguments.o, sep="\n")


def draw(plans: dict[str, Plan], target: Path) -> None:
    """One panel a plan: a bar of phases for each rank, the last one's bound as a line."""
    plt.rcParams.update({"svg.hashsalt": "milp-planner", "font.size": 9, "svg.fonttype": "none"})
    figure, axes = plt.subplots(
        1, len(plans), figsize=(8.2, 2.9), sharey=True, layout="constrained", squeeze=False
    )
    bound = [*plans.values()][-1].outcome.certified_bound
    for axis, (name, plan) in zip(axes[0], plans.items(), strict=True):
        _panel(axis, name, plan, bound)
    axes[0][0].set_ylabel("ms a step (embeddings)")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=7, frameon=False, fontsize=8)
    date = datetime.date.today().isoformat()
    figure.suptitle(f"{MODEL} on {CLUSTER}, as its trainer runs it, {date}", fontsize=10)
    figure.savefig(target, metadata={"Date": None})
    plt.close(figure)


def _panel(axis: Any, name: str, plan: Plan, bound: int | None) -> None:
    placement, verdict = plan.outcome.placement, plan.verdict
    assert placement is not None and verdict is not None
    found = ranks_of(plan.instance, placement)
    bottom = [0.0] * len(found.rows)
    for index, phase in enumerate(found.phases):
        height = [row.phases[index] / MS for row in found.rows]
        if any(height):
            axis.bar(range(len(height)), height, bottom=bottom, color=COLOURS[index], label=phase)
        bottom = [b + h for b, h in zip(bottom, height, strict=True)]
    cost = verdict.objectives["step_time"]
    axis.axhline(cost / MS, color="black", lw=1, label="step time")
    if bound is not None:
        axis.axhline(bound / MS, color="black", lw=1, ls=":", label="no plan is below (certified)")
    axis.set_title(f"{name}: {show_time(cost)}", fontsize=9)
    axis.set_xticks(range(len(found.rows)))
    axis.set_xlabel("rank")
    axis.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
