"""How well a fit predicts steps that it has not seen: cross-validation, by part and size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from milp_planner.features.calibrate.machine import Sample
from milp_planner.features.calibrate.step_fit import fit_steps, predicted_parts
from milp_planner.features.calibrate.steps import StepSpec
from milp_planner.files import Facts

FOLDS = 6
TRAINING_SIZE = 8192
"""Samples beyond which a step is one of training size."""


@dataclass(frozen=True)
class HeldOut(Facts):
    """Relative errors of one part of the steps of one size."""

    part: str
    """``lookup``, ``dense``, or ``update`` and the optimizer; on a GPU also the device's work
    alone, which is what a plan pays."""
    size: str
    """``small`` or ``training size``."""
    steps: int
    median: float
    high: float
    """90th percentile."""


def cross_validated(
    samples: Mapping[StepSpec, Sample], tier: Literal["hbm", "ddr"], *, fused: bool = False
) -> list[HeldOut]:
    """Errors of steps, each predicted by a fit without it and the others of its fold.

    Steps of one size and optimizer are dealt out to the folds in turn. A fold whose other steps are
    too few to fit a part says nothing about that part.
    """
    order = sorted(samples, key=lambda spec: (size_of(spec), spec.optimizer))
    found: dict[tuple[str, str], list[float]] = {}
    for fold in range(FOLDS):
        out = order[fold::FOLDS]
        kept = {spec: sample for spec, sample in samples.items() if spec not in out}
        model = fit_steps(kept, tier, "", fused=fused).model
        if model is None:
            continue
        for spec in out:
            for part, seconds in predicted_parts(model, spec).items():
                if part in samples[spec].parts:
                    name = f"{part} {spec.optimizer}" if part.endswith("update") else part
                    error = abs(seconds / samples[spec].part(part) - 1)
                    found.setdefault((name, size_of(spec)), []).append(error)
    return [
        HeldOut(part, size, len(errors), *np.percentile(errors, (50, 90)).tolist())
        for (part, size), errors in sorted(found.items())
    ]


def size_of(spec: StepSpec) -> str:
    """``small``, or ``training size``."""
    return "training size" if spec.batch > TRAINING_SIZE else "small"
