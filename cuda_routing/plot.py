"""Draw a route report: the load of every rank under every rule."""

from __future__ import annotations

from typing import Any

from cuda_routing.report import RouteInfo

MOST_BARS = 256


def draw_route(info: RouteInfo) -> Any:
    """Bars of load per rank, one panel per rule; the dashed line is the mean.

    Parameters
    ----------
    info : RouteInfo

    Returns
    -------
    matplotlib.figure.Figure
    """
    from matplotlib.figure import Figure

    panels = len(info.balances)
    figure = Figure(figsize=(9, 1.2 + 1.5 * panels), layout="constrained")
    axes = figure.subplots(panels, 1, sharex=True, sharey=True, squeeze=False)[:, 0]
    for axis, (rule, found) in zip(axes, info.balances.items(), strict=True):
        loads = found.loads * 100
        if found.ranks > MOST_BARS:
            axis.fill_between(range(found.ranks), loads, step="mid", color="#4878a8")
        else:
            axis.bar(range(found.ranks), loads, color="#4878a8", label="every lookup")
        axis.step(
            range(found.ranks), info.after_dedup[rule].loads * 100, where="mid",
            color="#c44e52", linewidth=1, label="de-duplicated",
        )  # fmt: skip
        axis.axhline(100 / found.ranks, color="black", linestyle="--", linewidth=0.8)
        axis.set_title(
            f"{rule.dist_type}: busiest {found.max_over_mean:.2f} × mean, Gini {found.gini:.2f}",
            fontsize=9, loc="left",
        )  # fmt: skip
    axes[-1].set_xlabel("rank")
    figure.supylabel("share of the lookups, %", fontsize=9)
    figure.suptitle(f"{info.source} on {info.ranks} ranks", fontsize=10)
    axes[0].legend(fontsize=8, frameon=False)
    return figure
