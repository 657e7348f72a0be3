"""What a calibration measures, and the hardware profile fitted to it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import yaml

from milp_planner.features.calibrate.held_out import HeldOut, cross_validated
from milp_planner.features.calibrate.machine import Probe, Sample, TooNoisy
from milp_planner.features.calibrate.step_fit import fit_steps
from milp_planner.features.calibrate.steps import (
    FITTED,
    OPTIMIZERS,
    TRAINING,
    StepSpec,
    draw_steps,
)
from milp_planner.features.calibrate.sweep import Sweep
from milp_planner.features.calibrate.tiers import DIM, NARROW, TierProbes, Tiers, fit_tiers
from milp_planner.features.calibrate.torch_machine import TorchMachine
from milp_planner.pricing.profile import Kernel, Profile, load_profile
from milp_planner.pricing.sources import Operator, Source

HITS = (0.25, 0.5, 0.75, 0.9, 0.97)
"""Shares of the lookups in the near tier at which the tiered modes are measured."""
RATIOS = (0.1, 0.4, 0.7)
"""Cache ratios at which dynamicemb tables are measured."""
STEPS, QUICK_STEPS = 120, 36
"""Number of training steps to draw and measure."""
TIER_FIELDS = ("hbm", "ddr", "host_link", "caching", "uvm_caching", "hybrid", "host_only")
"""Fields of a profile that lookups in the tiers determine."""
NEVER = (
    "dense_share", "weighted_multiple", "batched_copy_multiple", "least_columns",
    "dynamicemb_state_multiple",
)  # fmt: skip
"""Factors of the kernels that nothing here measures."""
CONSTANTS = "TorchRec's constants for a GPU"
MOVED, QUICK_MOVED = 2**24, 2**22
"""Most bytes that the lookups of one step may read."""
ON_GPU = (*OPTIMIZERS, "adagrad")
"""Optimizers that a GPU measures."""
LARGE, QUICK_LARGE = 48, 16
"""Number of training steps of training size that a GPU measures besides."""
LARGE_MOVED = 2**33
"""Most bytes that the lookups of one of them may read."""


@dataclass(frozen=True, eq=False)
class MeasurementPlan:
    """The probes of a calibration by purpose."""

    tiers: TierProbes
    lookup_training: Probe
    dense_update: tuple[Probe, float]
    """The probe, and the bytes of its table."""
    steps: dict[StepSpec, Probe]
    rounds: int
    """Timed rounds of all probes but the steps."""
    step_rounds: int
    """Timed rounds of the steps: fewer, as there are many steps."""

    @property
    def probes(self) -> list[Probe]:
        """All probes but the steps."""
        return [*self.tiers.probes, self.lookup_training, self.dense_update[0]]


def measurement_plan(machine: TorchMachine, quick: bool, seed: int = 0) -> MeasurementPlan:
    """The probes of a calibration; ``quick`` means fewer points and rounds, for a first look."""
    hits = HITS[1:2] if quick else HITS
    tiers = {("HBM_ONLY", 1.0): machine.lookup("HBM_ONLY", 1.0, DIM),
             ("HOST_ONLY", 0.0): machine.lookup("HOST_ONLY", 0.0, DIM)}  # fmt: skip
    for mode in ("CACHING", "HYBRID"):
        tiers |= {(mode, hit): machine.lookup(mode, hit, DIM) for hit in hits}
    whole = ("HOST_ONLY", 0.0) if machine.device == "cpu" else ("HBM_ONLY", 1.0)
    count, moved = (QUICK_STEPS, QUICK_MOVED) if quick else (STEPS, MOVED)
    drawn = replace(FITTED, optimizers=ON_GPU) if machine.device == "cuda" else FITTED
    specs = draw_steps(drawn, count, most=machine.room, moved=moved, seed=seed)
    if machine.device == "cuda":
        specs += _training_steps(machine, QUICK_LARGE if quick else LARGE, seed)
    return MeasurementPlan(
        tiers=TierProbes(
            lookups=tiers,
            widths={dim: machine.lookup(*whole, dim) for dim in NARROW},
            launch=machine.launch(),
            copy=machine.copy(),
            runtime=_runtime(machine, RATIOS[:1] if quick else RATIOS),
        ),
        lookup_training=machine.lookup_training(DIM),
        dense_update=machine.dense_update(),
        steps={spec: machine.step(spec) for spec in specs},
        rounds=5 if quick else 31,
        step_rounds=5 if quick else 11,
    )


def _training_steps(machine: TorchMachine, count: int, seed: int) -> list[StepSpec]:
    """Steps of training size, equally many of each number of tables."""
    each = count // len(TRAINING.tables)
    ranges = [replace(TRAINING, tables=(number,), optimizers=ON_GPU) for number in TRAINING.tables]
    return [
        spec
        for some in ranges
        for spec in draw_steps(some, each, most=machine.room, moved=LARGE_MOVED, seed=seed)
    ]


def _runtime(machine: TorchMachine, ratios: tuple[float, ...]) -> dict[tuple[str, float], Probe]:
    keys = [("HBM_ONLY", 1.0), ("HOST_ONLY", 0.0)]
    keys += [(mode, ratio) for mode in ("CACHING", "HYBRID") for ratio in ratios]
    probes = {key: machine.runtime(*key) for key in keys}
    return {key: probe for key, probe in probes.items() if probe is not None}


@dataclass(frozen=True, eq=False)
class Calibration:
    """A fitted profile and its measurements."""

    profile: Profile
    sweep: Sweep | None
    """Times of the tiers, as ``calibrate --raw`` reads them; None if they were left out."""
    samples: dict[str, Sample]
    """Every measured :class:`~milp_planner.features.calibrate.machine.Sample`."""
    facts: dict[str, object]
    """Facts about the machine; see :meth:`TorchMachine.facts`."""
    seconds: float
    """Wall time of the measurement, including preparation between the runs."""
    steps: tuple[StepSpec, ...] = ()
    """The measured steps."""
    left_out: tuple[str, ...] = field(default=())
    """One sentence for each measurement that was too noisy or contradictory to be fitted."""
    lost: tuple[str, ...] = ()
    """Fields of the profile that should have been measured and are the base's constants."""
    held_out: tuple[HeldOut, ...] = ()
    """Errors of the step model over steps that it was not fitted to, by part and size."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values: all measurements and everything fitted to them."""
        samples = [
            {"name": s.name, "median_s": s.median, "spread": s.spread, "seconds": s.seconds,
             "parts": {part: list(values) for part, values in s.parts.items()}}
            for s in self.samples.values()
        ]  # fmt: skip
        return {
            "machine": self.facts,
            "seconds": self.seconds,
            "left_out": list(self.left_out),
            "not_measured": list(self.lost),
            "held_out": [each.to_dict() for each in self.held_out],
            "profile": self.profile.to_dict(),
            "sweep": None if self.sweep is None else self.sweep.to_dict(),
            "steps": [spec.to_dict() for spec in self.steps],
            "samples": samples,
        }


def calibration(
    name: str,
    machine: TorchMachine,
    plan: MeasurementPlan,
    samples: dict[str, Sample],
    max_spread: float,
    seconds: float,
) -> Calibration:
    """Fit a profile to all steady measurements; the base profile supplies the rest.

    Raises TooNoisy if neither the tiers nor the steps can be fitted.
    """
    base = load_profile("torchrec-default")
    steady = {key: sample for key, sample in samples.items() if sample.steady(max_spread)}
    left = [
        f"{s.name}: its repeats spread by ±{s.spread:.0%} around {s.ms:.3g} ms"
        for s in samples.values()
        if s.name not in steady
    ]
    tiers = fit_tiers(name, machine, plan.tiers, steady, base)
    tier: Literal["hbm", "ddr"] = "ddr" if machine.device == "cpu" else "hbm"
    kept = {spec: steady[p.name] for spec, p in plan.steps.items() if p.name in steady}
    origin = _steps_origin(machine, len(kept), len(plan.steps))
    steps = fit_steps(kept, tier, origin, fused=machine.fused)
    left += [*tiers.left_out, *steps.left_out]
    if tiers.sweep is None and steps.model is None:
        raise TooNoisy(f"nothing could be fitted (is something else running?): {'; '.join(left)}")
    memory = {"hbm": base.hbm, "ddr": base.ddr, **tiers.fields}[tier]
    kernel = _multiples(tiers.fields["kernel"], plan, steady, memory)
    lost = _lost(plan, tiers, steady)
    optimizers = sorted({spec.optimizer for spec in plan.steps} - {*steps.optimizers})
    made = base.model_copy(
        update={
            **tiers.fields,
            "name": name,
            "description": _description(machine, lost, optimizers),
            "kernel": kernel,
            "step": steps.model,
            "origin": {**base.origin, **_origins(tiers, lost)},
            "sources": _sources(machine, lost, steps.model is not None, bool(plan.tiers.runtime)),
        }
    )
    return Calibration(
        Profile.from_dict(made.to_dict()), tiers.sweep, samples, machine.facts(), seconds,
        tuple(plan.steps), tuple(left), lost,
        () if steps.model is None else tuple(cross_validated(kept, tier, fused=machine.fused)),
    )  # fmt: skip


def _lost(plan: MeasurementPlan, tiers: Tiers, steady: dict[str, Sample]) -> tuple[str, ...]:
    """Fields that stay the base's constants although there are probes for them."""
    of_tiers = ("launch_seconds", "narrow_penalties", "host_divisor", "dynamicemb_divisor")
    factors = {
        **dict.fromkeys(of_tiers, tiers.sweep is not None),
        "backward_multiple": plan.lookup_training.name in steady,
        "dense_update_multiple": plan.dense_update[0].name in steady,
    }
    absent = [name for name in TIER_FIELDS if name not in tiers.fields]
    return (*absent, *(f"kernel.{name}" for name, known in factors.items() if not known))


def _sources(
    machine: TorchMachine, lost: tuple[str, ...], steps: bool, runtime: bool
) -> dict[Operator, Source]:
    """What was measured here, dynamicemb's tables if they run; the rest is the base's, assumed."""
    fields: dict[Operator, str] = {
        "lookup": "hbm", "replicated": "kernel.dense_update_multiple",
        "caching": "uvm_caching", "host_memory": "kernel.host_divisor", "prefetch": "host_link",
    }  # fmt: skip
    if runtime:
        fields |= {
            "dynamicemb": "kernel.dynamicemb_divisor", "dynamicemb_caching": "caching",
            "dynamicemb_hybrid": "hybrid", "dynamicemb_host": "host_only",
        }  # fmt: skip
    on = str(_measured(machine))
    seen, between = (
        Source(how="measured", hardware=on, dtypes=("fp32",)),
        Source(how="interpolated", hardware=on),
    )
    curves = ("caching", "dynamicemb_caching", "dynamicemb_hybrid")
    return {
        operator: between if operator in curves else seen
        for operator, field_ in fields.items()
        if field_ not in lost or (operator == "lookup" and steps)
    }


def _origins(tiers: Tiers, lost: tuple[str, ...]) -> dict[str, str]:
    """Origins of what was measured, and of what was not although it should have been."""
    told = {name: text for name, text in tiers.origin.items() if name not in lost}
    kernel = [name for name in lost if name.startswith("kernel.")]
    if kernel:
        told["kernel"] += f". Of these not measured, but {CONSTANTS}: {', '.join(kernel)}"
    return told


def _multiples(
    kernel: Kernel, plan: MeasurementPlan, steady: dict[str, Sample], memory: float
) -> Kernel:
    """The kernel with its backward and dense-update multiples, where they were steady.

    A pass over a replicated table is priced at ``memory`` bytes per second times the share of it
    that dense kernels reach.
    """
    update: dict[str, float] = {}
    if (training := steady.get(plan.lookup_training.name)) is not None:
        update["backward_multiple"] = round(training.part("backward") / training.part("forward"), 4)
    probe, size = plan.dense_update
    if (dense := steady.get(probe.name)) is not None:
        passes = dense.median * memory * kernel.dense_share / size
        update["dense_update_multiple"] = round(passes, 4)
    return kernel.model_copy(update=update)


def _description(machine: TorchMachine, lost: tuple[str, ...], optimizers: list[str]) -> str:
    """What was measured where, and every constant that was not."""
    parts = [f"Measured by milp-planner calibrate on {_measured(machine)}"]
    if lost:
        parts.append(f"NOT measured, as times were too noisy, but {CONSTANTS}: {', '.join(lost)}")
    if optimizers:
        parts.append(f"No step with {', '.join(optimizers)} is in the step model")
    near = "" if "hbm" in lost else f"hbm stands for {machine.near}, host_link for {machine.far}; "
    parts.append(
        f"{near}{'l' if near else 'L'}ookups by {_operators(machine)}, fp32, "
        f"{machine.load.bags} bags of {machine.load.pooling} ids"
    )
    if machine.fused:
        parts.append("Steps by FBGEMM's fused lookups and updates, all tables in one call")
    elif machine.device == "cuda":
        parts.append("Updates by torch's sparse optimizers; FBGEMM's fused ones differ")
    never = ", ".join(f"kernel.{name}" for name in NEVER)
    return ". ".join([*parts, f"Of no machine, but {CONSTANTS}: {never}"])


def _measured(machine: TorchMachine) -> object:
    facts = machine.facts()
    return facts.get("gpu", facts["processor"])


def _steps_origin(machine: TorchMachine, kept: int, drawn: int) -> str:
    how = "one embedding_bag a table with sparse gradients"
    if machine.fused:
        how = "one TBE of all tables with its fused optimizer"
    return (
        f"milp-planner calibrate: {kept} of {drawn} training steps of a small DLRM on "
        f"{_measured(machine)}, torch {machine.facts()['torch']}, "
        f"{machine.facts().get('threads', 1)} threads, {_operators(machine)}: {how}; "
        "least squares of relative errors, no term negative"
    )


def _operators(machine: TorchMachine) -> str:
    if machine.fused:
        return f"FBGEMM {machine.facts()['fbgemm']}'s TBE"
    return "torch's embedding_bag"


_HEAD = "# Hardware profile; see docs/pricing.md for what each number prices.\n"


def profile_text(profile: Profile) -> str:
    """YAML that reads back as an equal profile."""
    data = profile.to_dict()
    return _HEAD + yaml.safe_dump(
        data, sort_keys=False, allow_unicode=True, width=100, default_flow_style=None
    )
