"""A calibration on the terminal: the fitted curves, and what bounds the two micro-DLRMs."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table

from milp_planner.features.calibrate import Calibration
from milp_planner.features.calibrate.micro_dlrm import Regime
from milp_planner.pricing.lookup import tiered_bandwidth
from milp_planner.pricing.profile import EfficiencyCurve, Profile


def draw(found: Calibration) -> list[RenderableType]:
    """Everything a person wants to know of a calibration, in a few lines."""
    kernel = found.profile.kernel
    return [
        found.profile.description,
        draw_curves(found.profile),
        f"launch {1e6 * kernel.launch_seconds:.3g} µs; backward {kernel.backward_multiple:.3g} × "
        f"forward; a matrix product {found.peak_flops / 1e9:.4g} GFLOP/s; rows gathered from the "
        f"far tier {found.gather_bandwidth / 1e9:.3g} GB/s",
        _regimes(found.regimes),
    ]


def draw_curves(profile: Profile) -> RenderableType:
    """Bandwidths, and x_eff of the tiered modes, each with its spread."""
    table = Table("", title=profile.name, title_justify="left")
    for name in ("x", "x_eff", "GB/s", "±"):
        table.add_column(name, justify="right")
    for name in ("hbm", "ddr", "host_link"):
        rate = getattr(profile, name)
        table.add_row(name, "", "", f"{rate / 1e9:.4g}", _spread(profile, name))
    for name in ("caching", "hybrid"):
        curve: EfficiencyCurve = getattr(profile, name)
        for x, x_eff in curve.points:
            table.add_row(f"{name} over {curve.over}", f"{x:g}", *_reached(profile, x_eff, name))
    table.add_row("host_only", "0", *_reached(profile, profile.host_only, "host_only"))
    return table


def _reached(profile: Profile, x_eff: float, name: str) -> tuple[str, str, str]:
    import numpy as np

    rate = float(tiered_bandwidth(profile, np.array(x_eff)))
    return f"{x_eff:.4f}", f"{rate / 1e9:.4g}", _spread(profile, name)


def _spread(profile: Profile, name: str) -> str:
    value = {**profile.spread}.get(name)  # type: ignore[call-overload]
    return "" if value is None else f"{value:.1%}"


def _regimes(regimes: tuple[Regime, ...]) -> RenderableType:
    table = Table(
        "micro-DLRM", title="where a forward step goes, and a training step", title_justify="left"
    )
    for name in ("ms", "embedding", "MLP", "rest", "GB/s", "GFLOP/s, roof", "bound by"):
        table.add_column(name, justify="right")
    for each in regimes:
        roof = f"{each.flops / 1e9:.3g}, {each.ceiling / 1e9:.3g}"
        table.add_row(
            each.shape, f"{1e3 * each.seconds:.3g}", *_shares(each.shares),
            f"{each.bandwidth / 1e9:.3g}", roof, each.name,
        )  # fmt: skip
        table.add_row(
            "  in training", f"{1e3 * each.training_seconds:.3g}", *_shares(each.training_shares),
            "", "", "",
        )  # fmt: skip
    return table


def _shares(shares: dict[str, float]) -> tuple[str, ...]:
    return tuple(f"{shares[part]:.0%}" for part in ("embedding", "mlp", "rest"))
