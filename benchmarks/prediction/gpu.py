"""A profile fitted to one GPU's steps, and how well it predicts steps it has not seen.

python benchmarks/prediction/gpu.py FOLDER

FOLDER holds calibrate.yaml and calibrate.raw.json.gz (what ``calibrate --device cuda`` wrote),
steps-training-size.json (fitted with them) and steps-small.json (held out). Writes
gpu/h100-torch.yaml and gpu/h100.json.
"""

import argparse
import gzip
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from milp_planner.features.calibrate.held_out import cross_validated
from milp_planner.features.calibrate.machine import Sample
from milp_planner.features.calibrate.result import profile_text
from milp_planner.features.calibrate.step_fit import fit_steps, predicted_parts
from milp_planner.features.calibrate.steps import StepSpec, StepTable
from milp_planner.features.calibrate.torch_steps import PARTS
from milp_planner.pricing.profile import Profile, load_profile
from milp_planner.pricing.step_model import StepModel

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "trust" / "time.md"
PROFILE, RESULT = HERE / "gpu" / "h100-torch.yaml", HERE / "gpu" / "h100.json"
Samples = dict[StepSpec, Sample]


def spec_of(data: dict[str, Any]) -> StepSpec:
    """A step from its plain values."""
    tables = tuple(StepTable(**table) for table in data["tables"])
    return StepSpec(tables, data["batch"], data["optimizer"])


def calibrated(raw: dict[str, Any]) -> Samples:
    """The steps that a calibration measured."""
    samples = {each["name"]: each for each in raw["samples"]}
    specs = [spec_of(each) for each in raw["steps"]]
    return {spec: _sample(spec, samples[spec.name]["parts"]) for spec in specs}


def measured(rows: list[dict[str, Any]]) -> Samples:
    """Stored steps with their parts' medians."""
    pairs = [(spec_of(row), row["measured"]) for row in rows]
    return {s: _sample(s, {part: [value] for part, value in m.items()}) for s, m in pairs}


def _sample(spec: StepSpec, parts: dict[str, list[float]]) -> Sample:
    seconds = tuple(map(sum, zip(*(parts[part] for part in PARTS), strict=True)))
    return Sample(spec.name, seconds, {part: tuple(values) for part, values in parts.items()})


def fitted(folder: Path) -> tuple[Profile, dict[str, Any]]:
    """The profile of all of calibrate's and the training-size steps, and its errors."""
    raw = json.loads(gzip.decompress((folder / "calibrate.raw.json.gz").read_bytes()))
    large, small = (
        measured(json.loads((folder / f"steps-{name}.json").read_text(encoding="utf-8")))
        for name in ("training-size", "small")
    )
    alone = calibrated(raw)
    known = alone | large
    base, h100 = load_profile(folder / "calibrate.yaml"), load_profile("h100")
    gpu = raw["machine"]["gpu"]
    origin = (
        f"{len(known) - len(large)} steps of calibrate and {len(large)} of 16k to 49k samples on "
        f"one {gpu}, torch {raw['machine']['torch']}; torch's embedding_bag and sparse optimizers"
    )
    model, without = (fit_steps(each, "hbm", origin).model for each in (known, alone))
    assert model is not None and without is not None
    told = (
        f"Measured on one {gpu} with torch's embedding_bag, sparse gradients and torch's "
        "optimizers, one table after another. FBGEMM's fused backward, which TorchRec trains with, "
        "differs: do not price its updates by this profile"
    )
    profile = base.model_copy(
        update={
            "name": "h100-torch", "description": told, "step": model,
            "collectives": h100.collectives,
            "origin": {
                **_with_gpu(base.origin, gpu), "collectives": "as profile h100: each table says"
            },
        }
    )  # fmt: skip
    rows = [each.to_dict() for each in cross_validated(known, "hbm")]
    return profile, {
        "gpu": gpu, "torch": raw["machine"]["torch"], "date": raw["machine"]["date"],
        "cross_validated": rows, "held_out": _errors(model, small, "small"),
        "without_training_size": _errors(without, large, "training size"),
    }  # fmt: skip


def _with_gpu(origin: dict[str, str], gpu: str) -> dict[str, str]:
    """The origins, which name calibrate, with the GPU that it measured."""
    return {
        field: text.replace("milp-planner calibrate:", f"milp-planner calibrate, {gpu}:")
        for field, text in origin.items()
    }


def _errors(model: StepModel, steps: Samples, size: str) -> list[dict[str, Any]]:
    """Errors over steps that the fit did not use, with the optimizers that were measured."""
    errors: dict[str, list[float]] = {}
    for spec, sample in steps.items():
        for part, seconds in predicted_parts(model, spec).items():
            if part not in sample.parts:
                continue
            name = f"update {spec.optimizer}" if part == "update" else part
            errors.setdefault(name, []).append(abs(seconds / sample.part(part) - 1))
    return [
        {"part": part, "size": size, "steps": len(found),
         "median": float(np.median(found)), "high": float(np.percentile(found, 90))}
        for part, found in sorted(errors.items())
    ]  # fmt: skip


def main() -> None:
    """Fit, and store the profile and its errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    profile, result = fitted(parser.parse_args().folder)
    PROFILE.write_text(profile_text(profile), encoding="utf-8")
    RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
