"""Hardware profiles measured on the machine at hand, or fitted to published sweeps.

torch is needed to measure and loads then; fitting a sweep needs none.
"""

from milp_planner.features.calibrate.machine import TooNoisy
from milp_planner.features.calibrate.result import Calibration
from milp_planner.features.calibrate.run import calibrate, find_machine
from milp_planner.features.calibrate.sweep import (
    Fit,
    Sweep,
    SweepPoint,
    fit_sweep,
    fitted_profile,
    read_sweep,
)

__all__ = [
    "Calibration", "Fit", "Sweep", "SweepPoint", "TooNoisy", "calibrate", "find_machine",
    "fit_sweep", "fitted_profile", "read_sweep",
]  # fmt: skip
