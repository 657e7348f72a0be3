"""Training steps on this machine's CPU, predicted from calibrate's own file and measured.

python benchmarks/prediction/run.py -o FILE [--profile FILE] [--threads N]
"""

import argparse
import json
import os
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.prediction.held_out import HELD_OUT, predicted
from milp_planner.features.calibrate.machine import MAX_SPREAD, Sample, measure
from milp_planner.features.calibrate.result import MOVED
from milp_planner.features.calibrate.steps import StepSpec, draw_steps
from milp_planner.features.calibrate.torch_machine import cpu_machine
from milp_planner.pricing.profile import Profile, load_profile

COUNT, ROUNDS, SEED = 80, 11, 39
PARTS = ("lookup", "update", "dense")


def calibrate(profile: Path, threads: int | None) -> None:
    """Write the profile as a user does, in a process of its own."""
    more = ["--threads", str(threads)] if threads else []
    command = [sys.executable, "-m", "milp_planner", "calibrate", "-o", str(profile), *more]
    subprocess.run(command, check=True)


def judged(spec: StepSpec, sample: Sample, profile: Profile) -> dict[str, Any]:
    """A step's row of the result: measured and predicted seconds by part."""
    halves = [float(np.median(sample.seconds[start::2])) for start in (0, 1)]
    bare = profile.model_copy(update={"step": None})
    return {
        **spec.to_dict(),
        "measured": {part: sample.part(part) for part in PARTS},
        "predicted": predicted(spec, profile),
        "bandwidths_alone": predicted(spec, bare),
        "rounds": len(sample.seconds),
        "spread": sample.spread,
        "repeat": abs(halves[0] - halves[1]) / sample.median,
    }


def main() -> None:
    """Calibrate where there is no profile yet; measure, predict, store everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--profile", type=Path, help="calibrate's file; written if absent")
    parser.add_argument("--threads", type=int, help="default: all cores")
    arguments = parser.parse_args()
    path = arguments.profile or arguments.output.with_suffix(".yaml")
    if not path.exists():
        calibrate(path, arguments.threads)
    profile = load_profile(path)
    machine = cpu_machine(False, arguments.threads, SEED)
    specs = draw_steps(HELD_OUT, COUNT, most=machine.room, moved=MOVED, seed=SEED)
    samples = measure(
        [machine.step(spec) for spec in specs], ROUNDS, time.perf_counter, limit=MAX_SPREAD
    )
    steady = [spec for spec in specs if samples[spec.name].steady(MAX_SPREAD)]
    result = {
        "date": date.today().isoformat(),
        "machine": machine.facts(),
        "load_average": os.getloadavg()[0],
        "profile": profile.to_dict(),
        "drawn": len(specs),
        "steps": [judged(spec, samples[spec.name], profile) for spec in steady],
    }
    arguments.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
