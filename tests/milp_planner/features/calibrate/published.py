"""The published sweeps, by the name of their GPU."""

from pathlib import Path

from milp_planner.features.calibrate.sweep import Sweep, read_sweep

FOLDER = Path(__file__).parents[4] / "benchmarks" / "calibration" / "published"


def published(name: str) -> Sweep:
    """``a10`` or ``h100``."""
    return read_sweep(FOLDER / f"{name}.json")
