"""The law of the tiers: fitted to the published times, and priced against them.

    python benchmarks/pricing/law.py [--check]

Prints the fitted numbers, which stand in the profiles (a test compares them), and writes the tables
of docs/pricing.md: the fit, and every published time against its price. With
``--check`` the exit code tells whether the page is up to date, and nothing is written.
"""

import argparse
import sys
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from statistics import mean

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import update
from benchmarks.pricing.conditions import (
    A10_RATIOS,
    A10_ROWS,
    HYBRID_RATIO,
    Point,
    priced_points,
    zipf_hits,
)
from milp_planner.features.calibrate.sweep import Sweep, read_sweep
from milp_planner.pricing.profile import load_profile

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "pricing.md"
PUBLISHED = ROOT / "benchmarks" / "calibration" / "published"
ADAM_STATE = 2
"""Copies of a row that Adam keeps."""
BACKWARD = 2 / 3
"""Share of the backward pass in a step without optimizer state."""
A10_HOST = 0.11
"""x_eff of HOST_ONLY on the A10, which was not measured: TorchEasyRec's HYBRID line at ratio 0."""


@dataclass(frozen=True)
class Fit:
    """The numbers of a profile, as they stand in its file."""

    caching: float
    """x_eff at hit ratio 1."""
    hybrid: float
    """x_eff at hit ratio 1."""
    host_only: float
    """x_eff at hit ratio 0."""
    divisor: float | None = None
    state: float | None = None
    """Extra backward time for each copy of the row that is kept as state."""
    hit_at_four_fifths: float | None = None
    """Hit ratio that the times imply for a cache of 0.8 of a batch's distinct rows."""


def fit_a10() -> Fit:
    """Paths that put the dearest ratio as far above the one time as the cheapest is below it.

    Over ratios 0.1 to 0.9 with the hit ratios of the sweep's own Zipf 1.05; the times do not say
    what misses add, only that they hardly count.
    """
    sweep = read_sweep(PUBLISHED / "a10.json")
    share = _share(sweep)
    host = 1 / (A10_HOST + (1 - A10_HOST) * share)
    paths = {}
    for mode in ("CACHING", "HYBRID"):
        miss = 1 - zipf_hits(mode, A10_ROWS, A10_RATIOS)
        middle = float(miss[0] + miss[-1]) / 2
        slow = _ms(sweep, mode) / _ms(sweep, "HBM_ONLY")
        paths[mode] = (slow - middle * host) / (1 - middle)
    return Fit(*(round(_x_eff(paths[m], share), 4) for m in ("CACHING", "HYBRID")), A10_HOST)


def fit_h100() -> Fit:
    """Both rows together: least squares of relative errors, Adam one factor over SGD.

    The paths follow from the hit ratios: 1 in a cache of all of a batch's rows; Zipf 1.05's in
    HYBRID, as the published times do not say.
    """
    adam, sgd = (read_sweep(PUBLISHED / f"{name}.json") for name in ("h100", "h100-sgd"))
    pairs = {(p.mode, p.x): (p.ms, q.ms) for p, q in zip(adam.points, sgd.points, strict=True)}
    factor = exp(mean(log(a / s) for a, s in pairs.values()))
    base = {key: exp((log(a / factor) + log(s)) / 2) for key, (a, s) in pairs.items()}
    fastest, share = base["HBM_ONLY", 1.0], _share(adam)
    slow = {key: ms / fastest for key, ms in base.items()}
    host, cached = slow["HOST_ONLY", 0.0], slow["CACHING", 1.0]
    hit = float(zipf_hits("HYBRID", A10_ROWS, np.array([HYBRID_RATIO]))[0])
    hybrid = (slow["HYBRID", HYBRID_RATIO] - (1 - hit) * host) / hit
    assert adam.hbm is not None and adam.moved_bytes is not None
    return Fit(
        *(round(_x_eff(path, share), 4) for path in (cached, hybrid, host)),
        divisor=round(adam.hbm * fastest / 1e3 / adam.moved_bytes, 3),
        state=round((factor - 1) / ADAM_STATE / BACKWARD, 4),
        hit_at_four_fifths=round((host - slow["CACHING", 0.8]) / (host - cached), 3),
    )


def _share(sweep: Sweep) -> float:
    assert sweep.hbm is not None and sweep.host_link is not None
    return sweep.host_link / sweep.hbm


def _ms(sweep: Sweep, mode: str) -> float:
    return next(point.ms for point in sweep.points if point.mode == mode)


def _x_eff(slow: float, share: float) -> float:
    """x_eff of a lookup that takes so many times as long as one in HBM."""
    return (1 / slow - share) / (1 - share)


def slowdown(profile: str, x_eff: float) -> float:
    """Time over HBM_ONLY's."""
    found = load_profile(profile)
    return 1 / (x_eff + (1 - x_eff) * found.host_link / found.hbm)


def points() -> list[Point]:
    """Every published time with its price."""
    hit = fit_h100().hit_at_four_fifths
    assert hit is not None
    return priced_points({n: read_sweep(PUBLISHED / f"{n}.json") for n in NAMES}, hit)


NAMES = ("a10", "h100", "h100-sgd")


def blocks() -> dict[str, str]:
    """Text of every block of the page, by name."""
    return {"law": _fits(), "published": _published()}


def _fits() -> str:
    lines = ["| | `a10` | `h100` |", "|---|---|---|"]
    fits = {"a10": fit_a10(), "h100": fit_h100()}
    for what, name in (
        ("CACHING, every lookup hits", "caching"),
        ("HYBRID, every lookup hits", "hybrid"),
        ("HOST_ONLY: nothing hits", "host_only"),
    ):
        cells = [
            f"{slowdown(profile, getattr(fit, name)):.2f} × HBM_ONLY (x_eff {getattr(fit, name)})"
            for profile, fit in fits.items()
        ]
        lines.append(f"| {what} | {' | '.join(cells)} |")
    h100 = fits["h100"]
    lines.append(f"| `dynamicemb_divisor` | 10 (TorchEasyRec's) | {h100.divisor} |")
    lines.append(f"| `dynamicemb_state_multiple` | 0 (one optimizer measured) | {h100.state} |")
    return "\n".join(lines)


def _published() -> str:
    lines = ["| point | conditions | measured | priced | error |", "|---|---|---|---|---|"]
    for p in points():
        priced = f"{p.low:.2f}" if p.high - p.low < 0.005 else f"{p.low:.2f} to {p.high:.2f}"
        lines.append(
            f"| {p.name} | {p.conditions} | {p.measured:.2f} ms | {priced} ms | {p.error:+.1%} |"
        )
    return "\n".join(lines)


def main() -> int:
    """Print the fits and write the page, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only tell whether it is up to date")
    check = parser.parse_args().check
    for name, fit in (("a10", fit_a10()), ("h100", fit_h100())):
        print(name, fit)
    for point in points():
        print(f"{point.name:52} {point.measured:6.2f} {point.low:6.2f} {point.error:+.1%}")
    return update(PAGE, blocks(), check=check)


if __name__ == "__main__":
    sys.exit(main())
