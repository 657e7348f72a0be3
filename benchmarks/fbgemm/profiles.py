"""Profiles of FBGEMM's tables, from measurements of two GPUs, and how well they predict.

python benchmarks/fbgemm/profiles.py [--check]

Writes milp_planner/pricing/profiles/*-fbgemm.yaml and docs/trust/time.md's block ``fbgemm``
from results/ (run.py, ``calibrate --device cuda``). The fit takes calibrate's steps and the cases
of run.py on rows in HBM; the steps of run.py are held out. Blackwell gets the H100's terms, those
of the device's work times a ratio (:func:`slower`).
"""

import argparse
import gzip
import json
import sys
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.pages import update
from benchmarks.prediction.gpu import PAGE, Samples, calibrated, measured
from benchmarks.publications.pricing import published
from milp_planner.features.calibrate.held_out import cross_validated, size_of
from milp_planner.features.calibrate.machine import ON_DEVICE, Sample
from milp_planner.features.calibrate.result import profile_text
from milp_planner.features.calibrate.step_fit import fit_steps, predicted_parts
from milp_planner.features.calibrate.steps import StepSpec, StepTable
from milp_planner.features.calibrate.torch_steps import PARTS
from milp_planner.pricing.profile import Profile, load_profile
from milp_planner.pricing.sources import ASSUMED, Operator, Source
from milp_planner.pricing.step_model import StepModel, TableTerms

RESULTS = Path(__file__).resolve().parent / "results"
FOLDER = PAGE.parents[2] / "milp_planner" / "pricing" / "profiles"
MEASURED, CARRIED = ("h100", "h200"), ("b200", "gb200")
DISPATCH = ("seconds", "step_seconds", "start_seconds")
"""Terms that do not follow the bandwidth."""


@cache
def stored(name: str, part: str = "h100") -> Any:
    """A stored measurement of a part."""
    return json.loads(gzip.decompress((RESULTS / part / f"{name}.json.gz").read_bytes()))


def fitted_to(part: str = "h100") -> Samples:
    """Calibrate's steps, and the cases of fp32 rows in HBM without weights."""
    return calibrated(stored("calibrate.raw", part)) | in_hbm(part)


def in_hbm(part: str) -> Samples:
    """The device's seconds of the cases of fp32 rows in HBM without weights."""
    found: Samples = {}
    for row in stored("operators", part)["rows"]:
        if (row["memory"], row["dtype"], row["weights"]) == ("hbm", "fp32", "none"):
            tables = tuple(StepTable(**table) for table in row["tables"])
            spec = StepSpec(tables, row["batch"], row["optimizer"])
            seconds = {
                ON_DEVICE + name: (row["seconds"][own]["median"],)
                for name, own in (("lookup", "forward"), ("update", "backward"))
            }
            found[spec] = Sample(spec.name, (), seconds)
    return found


@cache
def model(part: str = "h100") -> StepModel:
    """The terms of a part's steps."""
    raw = stored("calibrate.raw", part)
    origin = (
        f"benchmarks/fbgemm, {raw['machine']['date']}: {len(raw['steps'])} steps of milp-planner "
        f"calibrate and the cases of run.py on one {raw['machine']['gpu']}, torch "
        f"{raw['machine']['torch']}, FBGEMM {raw['machine']['fbgemm']}: one TBE of all tables with "
        "its fused optimizer, fp32; the device's own seconds, and dispatch beyond them"
    )
    found = fit_steps(fitted_to(part), "hbm", origin, fused=True).model
    assert found is not None
    return found


def host_divisor(part: str) -> float:
    """What divides the host link's bandwidth for rows of 128 floats read over it."""
    rates = []
    for row in stored("operators", part)["rows"]:
        table = row["tables"][0]
        if row["memory"] == "uvm" and table["dim"] == 128 and row["batch"] >= 16_384:
            ids = row["batch"] * table["pooling"]
            moved = ids * 8 + (ids + row["batch"]) * 4 * table["dim"]
            rates.append(moved / row["seconds"]["forward"]["median"])
    return round(load_profile(part).host_link / median(rates), 2)


def pass_seconds() -> float:
    """Seconds of the H100's pass over the rows of the weighted tables that others timed on B200."""
    found: float = sum(s for n, s in stored("weights")["kernels"].items() if "grad_indice" in n)
    return found


def slower() -> tuple[float, str]:
    """Blackwell's time for the device's work over the H100's, and where that is from."""
    ms = published()["one_pass"]["ms"]
    return ms / 1e3 / pass_seconds(), (
        f"the one kernel of FBGEMM that was timed on both (gradient of per-sample weights, 80 "
        f"tables of 256 columns: {ms} ms on B200 by TorchRec's PRs 4703 and 4749, "
        f"{1e3 * pass_seconds():.1f} ms on the H100)"
    )


def made(name: str) -> Profile:
    """The profile of FBGEMM's tables on a GPU."""
    base, part = load_profile(name), name if name in MEASURED else MEASURED[0]
    machine, step = stored("calibrate.raw", part)["machine"], model(part)
    what = (
        f"TorchRec's tables in HBM at the cost of FBGEMM {machine['fbgemm']}'s lookups and fused "
        f"updates, measured on one {machine['gpu']} by optimizer"
    )
    if name in CARRIED:
        times, why = slower()
        what = (
            f"TorchRec's tables in HBM at the cost of FBGEMM {machine['fbgemm']}'s lookups and "
            f"fused updates, carried over from profile {part}-fbgemm and NOT measured on this "
            f"part. The device's work takes {times:.3g} times as long, by {why}"
        )
        terms = {optimizer: scaled(each, times) for optimizer, each in step.update.items()}
        step = step.model_copy(
            update={
                "lookup": scaled(step.lookup, times), "update": terms, "batch": None,
                "origin": f"{step.origin}; carried over by {why}",
            }
        )  # fmt: skip
    told = (
        f"{what}. host_divisor from rows in host memory that the {part.upper()} reads. Replicated "
        f"tables, caches, dynamicemb and everything else as in profile {name}"
    )
    return base.model_copy(
        update={
            "name": f"{name}-fbgemm", "description": told, "step": step,
            "kernel": base.kernel.model_copy(update={"host_divisor": host_divisor(part)}),
            "origin": {
                **base.origin,
                "kernel": f"{base.origin['kernel']}; host_divisor: benchmarks/fbgemm, "
                f"{machine['gpu']}, rows of 128 floats in mapped host memory",
            },
            "sources": {**base.sources, **sources(name, str(machine["gpu"]))},
        }
    )  # fmt: skip


def sources(name: str, gpu: str) -> dict[Operator, Source]:
    """What was measured on this part: nothing if its terms are carried over."""
    if name in CARRIED:
        return {"lookup": ASSUMED}
    seen = Source(how="measured", hardware=gpu, dtypes=("fp32",))
    return {"lookup": seen, "host_memory": seen}


def scaled(terms: TableTerms, times: float) -> TableTerms:
    """The terms with the device's work ``times`` as long."""
    more: dict[str, Any] = {
        name: float(f"{value * times:.4g}")
        for name, value in terms.to_dict().items()
        if name.endswith("_seconds") and name not in DISPATCH
    }
    more["missed"] = tuple((size, float(f"{cost * times:.4g}")) for size, cost in terms.missed)
    return terms.model_copy(update=more)


def errors(steps: Samples) -> dict[tuple[str, str], list[float]]:
    """Relative errors of the parts of steps that the fit has not seen, by part and size."""
    found: dict[tuple[str, str], list[float]] = {}
    for spec, sample in steps.items():
        said = predicted_parts(model(), spec)
        wrong = {part: said[part] / sample.part(part) - 1 for part in said if part in sample.parts}
        whole = sum(sample.part(part) for part in PARTS)
        wrong["step"] = sum(said[part] for part in PARTS) / whole - 1
        for part, error in wrong.items():
            name = f"{part} {spec.optimizer}" if part.endswith("update") else part
            found.setdefault((name, size_of(spec)), []).append(abs(error))
    return found


def block() -> str:
    """Errors by part and size: held-out steps, and calibrate's own cross-validated."""
    machine = stored("calibrate.raw")["machine"]
    held = errors(measured(held_out()))
    crossed = {
        (row.part, row.size): row
        for row in cross_validated(calibrated(stored("calibrate.raw")), "hbm", fused=True)
    }
    lines = [
        f"{machine['gpu']}, {machine['date']}, torch {machine['torch']}, FBGEMM "
        f"{machine['fbgemm']}; relative errors, median (90th percentile).", "",
        "| part | held-out steps, 300 to 7,000 samples | held-out steps, 8k to 64k "
        "| calibrate's small steps, cross-validated | calibrate's of training size |",
        "|---" * 5 + "|",
    ]  # fmt: skip
    shown = {part for part, _ in held if part.startswith("device") or part in ("dense", "step")}
    for part in sorted(shown):
        cells = []
        for size in ("small", "training size"):
            some = held[part, size]
            cells.append(_shown(float(np.median(some)), float(np.percentile(some, 90)), len(some)))
        for size in ("small", "training size"):
            row = crossed.get((part, size))
            cells.append("" if row is None else _shown(row.median, row.high, row.steps))
        lines.append(f"| {part} | {' | '.join(cells)} |")
    return "\n".join(lines)


def held_out() -> list[dict[str, Any]]:
    """The held-out steps."""
    found: list[dict[str, Any]] = stored("steps")["steps"]
    return found


def _shown(middle: float, high: float, count: int) -> str:
    return f"{middle:.1%} ({high:.0%}) of {count}"


def main() -> int:
    """Write or check profiles and page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only tell whether they are current")
    given = parser.parse_args()
    stale = 0
    for name in (*MEASURED, *CARRIED):
        text, path = profile_text(made(name)), FOLDER / f"{name}-fbgemm.yaml"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale = 1
            if not given.check:
                path.write_text(text, encoding="utf-8")
    return update(PAGE, {"fbgemm": block()}, check=given.check) or (stale if given.check else 0)


if __name__ == "__main__":
    sys.exit(main())
