"""How well a fit predicts steps that it has not seen: cross-validation, by part and size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from milp_planner.features.calibrate.machine import Sample
from milp_planner.features.calibrate.step_fit import fit_steps, predicted_parts
from milp_planner.features.calibrate.steps import StepSpec

FOLDS = 6
TRAINING_SIZE = 8192
"""Samples beyond which a step is one of training size."""


@dataclass(frozen=True)
class HeldOut:
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

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


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
        if model is not None:
            for spec in out:
                _judge(spec, samples[spec], predicted_parts(model, spec), found)
    return [
        HeldOut(part, size, len(errors), *np.percentile(errors, (50, 90)).tolist())
        for (part, size), errors in sorted(found.items())
    ]


def size_of(spec: StepSpec) -> str:
    """``small``, or ``training size``."""
    return "training size" if spec.batch > TRAINING_SIZE else "small"


def _judge(
    spec: StepSpec, sample: Sample, said: dict[str, float],
    found: dict[tuple[str, str], list[float]],
) -> None:  # fmt: skip
    for part, seconds in said.items():
        if part in sample.parts:
            error = abs(seconds / sample.part(part) - 1)
            found.setdefault((_name(part, spec), size_of(spec)), []).append(error)


def _name(part: str, spec: StepSpec) -> str:
    return f"{part} {spec.optimizer}" if part.endswith("update") else part
