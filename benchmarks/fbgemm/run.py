"""Time FBGEMM's table-batched embeddings (TBE) on the current GPU.

python benchmarks/fbgemm/run.py -o FILE.json [--steps | --weights] [--small] [--device cpu]

Every case of cases.py: device seconds of forward and of backward with the optimizer's step, on new
ids each time, and for ``cached`` of the prefetch, the rows that missed and the distinct rows. The
host runs ahead of the device, so that dispatch is not in them; ``host`` is what the calls took on
it. ``--steps`` times training steps instead, which no calibration draws, with the parts that
calibrate measures; ``--weights`` the kernels of one published shape by name.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from statistics import median, quantiles
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.fbgemm.cases import PUBLISHED, Case, cases
from benchmarks.prediction.held_out import HELD_OUT
from milp_planner.features.calibrate.cuda_machine import cuda_machine
from milp_planner.features.calibrate.device_clock import DeviceClock
from milp_planner.features.calibrate.fused_tables import OPTIMIZERS, fbgemm_version, fused, offsets
from milp_planner.features.calibrate.machine import measure, processor
from milp_planner.features.calibrate.result import LARGE_MOVED, MOVED
from milp_planner.features.calibrate.steps import TRAINING, StepSpec, draw_ids, draw_steps
from milp_planner.features.calibrate.torch_steps import Drawn

REPEATS, INPUTS, WARMUPS = 9, 4, 3
"""Timed runs of a case, its batches of ids (a cached table has a new one each run), and untimed
runs."""
CACHE_WARMUPS = 40
"""Untimed runs that fill a cache."""
SEED = 71
COPIED = 2**30
"""Bytes of a plain copy."""


def timed(case: Case, device: str) -> dict[str, Any]:
    """The case's row of the result."""
    import torch

    tbe = fused([(t.rows, t.dim) for t in case.tables], device, case.optimizer, **_options(case))
    with torch.no_grad():
        for part in (tbe.weights_dev, tbe.weights_uvm, tbe.weights_host):
            if part.numel():
                part.uniform_(-0.1, 0.1)
    cached = case.memory == "cached"
    warmups = CACHE_WARMUPS if cached else WARMUPS
    count = warmups + REPEATS
    inputs = [_inputs(case, number, device) for number in range(count if cached else INPUTS)]
    clock = DeviceClock(device)
    runs = [_once(tbe, inputs[n % len(inputs)], clock, case) for n in range(count)][warmups:]
    return {**case.to_dict(), "seconds": {part: _told([r[part] for r in runs]) for part in runs[0]}}


def _options(case: Case) -> dict[str, Any]:
    from fbgemm_gpu.split_embedding_configs import SparseType
    from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
        EmbeddingLocation,
        RecordCacheMetrics,
    )

    kind = getattr(SparseType, case.dtype.upper())
    options: dict[str, Any] = {"weights_precision": kind, "output_dtype": kind}
    if case.memory != "hbm":
        place = {"uvm": "MANAGED", "cached": "MANAGED_CACHING"}[case.memory]
        options |= {"location": getattr(EmbeddingLocation, place), "uvm_host_mapped": True}
    if case.memory == "cached":
        options |= {"cache_load_factor": case.cache, "prefetch_pipeline": False,
                    "record_cache_metrics": RecordCacheMetrics(True, False)}  # fmt: skip
    return options


def _inputs(case: Case, number: int, device: str) -> dict[str, Any]:
    import torch

    drawn = Drawn([SEED, number], device)
    ids = [draw_ids(t, case.batch * t.pooling, drawn, torch) for t in case.tables]
    lengths = torch.tensor([t.pooling for t in case.tables], device=device)
    found: dict[str, Any] = {
        "indices": torch.cat(ids), "offsets": offsets(lengths.repeat_interleave(case.batch))
    }  # fmt: skip
    if case.weights != "none":
        weights = torch.rand(len(found["indices"]), device=device)
        found["per_sample_weights"] = weights.requires_grad_(case.weights == "trained")
    return found


def _once(tbe: Any, inputs: dict[str, Any], clock: DeviceClock, case: Case) -> dict[str, float]:
    import torch

    before = int(tbe.get_cache_miss_counter()[1]) if case.memory == "cached" else None
    clock.start()
    if before is not None:
        tbe.prefetch(inputs["indices"], inputs["offsets"])
        clock.lap("prefetch")
    output = tbe(**inputs)
    clock.lap("forward")
    gradient = torch.rand_like(output)
    clock.lap("")
    output.backward(gradient)
    clock.lap("backward")
    found = clock.stop()
    if before is not None:
        missed = int(tbe.get_cache_miss_counter()[1]) - before
        found["missed rows"] = float(missed)
        found["distinct rows"] = float(len(torch.unique(inputs["indices"])))
    return found


def _told(values: list[float]) -> dict[str, float]:
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return {"median": middle, "low": low, "high": high}


def copies() -> dict[str, float]:
    """Bytes per second of plain copies; in HBM, bytes read and bytes written count."""
    import torch

    def rate(source: Any, target: Any, bytes_: int) -> float:
        clock, found = DeviceClock("cuda"), []
        for _ in range(REPEATS):
            clock.start()
            target.copy_(source, non_blocking=True)
            clock.lap("copy")
            found.append(clock.stop()["copy"])
        return bytes_ / median(found)

    here = torch.rand(COPIED // 4, device="cuda")
    there = torch.rand(COPIED // 4).pin_memory()
    return {
        "hbm": rate(here, torch.empty_like(here), 2 * COPIED),
        "host to device": rate(there, here, COPIED),
        "device to host": rate(here, there, COPIED),
    }


def steps() -> Iterator[StepSpec]:
    """Steps of shapes that calibrate does not draw, small and of training size."""
    optimizers = tuple(OPTIMIZERS)
    most = 2**28
    small = replace(HELD_OUT, optimizers=optimizers)
    yield from draw_steps(small, 60, most=most, moved=MOVED, seed=SEED)
    large = replace(
        TRAINING, tables=(2, 3, 8, 20), dims=(16, 48, 96, 128, 192), poolings=(1, 3, 12, 30),
        alphas=(0.0, 0.7, 1.05, 1.3), optimizers=optimizers,
    )  # fmt: skip
    yield from draw_steps(large, 48, most=most, moved=LARGE_MOVED, seed=SEED)


def step_rows(rounds: int) -> list[dict[str, Any]]:
    """The steps and their parts, as calibrate measures them."""
    machine = cuda_machine(False, SEED)
    probes = {spec: machine.step(spec) for spec in steps()}
    samples = measure([*probes.values()], rounds, machine.now)
    rows = []
    for spec, probe in probes.items():
        sample = samples[probe.name]
        parts = {part: median(values) for part, values in sample.parts.items()}
        rows.append({**spec.to_dict(), "measured": parts, "spread": sample.spread})
    return rows


def kernels(case: Case) -> dict[str, float]:
    """Median seconds of every kernel of forward and backward, by name, as the profiler tells."""
    import torch

    tbe = fused([(t.rows, t.dim) for t in case.tables], "cuda", case.optimizer)
    found: dict[str, list[float]] = {}
    for number in range(WARMUPS + REPEATS):
        inputs = _inputs(case, number % INPUTS, "cuda")
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            output = tbe(**inputs)
            output.backward(torch.ones_like(output))
            torch.cuda.synchronize()
        if number >= WARMUPS:
            for each in profile.key_averages():
                found.setdefault(each.key[:120], []).append(each.self_device_time_total / 1e6)
    return {name: median(seconds) for name, seconds in found.items()}


def facts(device: str) -> dict[str, Any]:
    """What was measured, and when."""
    import torch

    found = {
        "date": date.today().isoformat(), "processor": processor(), "torch": torch.__version__,
        "fbgemm": fbgemm_version(device),
    }  # fmt: skip
    return {**found, "gpu": torch.cuda.get_device_name()} if device == "cuda" else found


def _say(row: dict[str, Any]) -> None:
    seconds = {part: f"{1e3 * value['median']:.3f}" for part, value in row["seconds"].items()}
    shape = row["tables"][0]
    print(row["group"], len(row["tables"]), shape, row["batch"], row["optimizer"], row["dtype"],
          row["memory"], row["cache"], row["weights"], seconds, flush=True)  # fmt: skip


def main() -> None:
    """Measure; write after every case, so that a stopped run has its rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--steps", action="store_true", help="training steps instead of cases")
    parser.add_argument("--weights", action="store_true", help="kernels of weighted tables")
    parser.add_argument("--small", action="store_true", help="tiny cases, to try the code")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    given = parser.parse_args()
    result: dict[str, Any] = {"machine": facts(given.device)}
    if given.steps:
        result["steps"] = step_rows(REPEATS)
    elif given.weights:
        result |= {"case": PUBLISHED.to_dict(), "kernels": kernels(PUBLISHED)}
    else:
        result["copies"] = {} if given.device == "cpu" else copies()
        result["rows"] = []
        _all(lambda row: result["rows"].append(row), given, result)
    given.output.write_text(json.dumps(result) + "\n", encoding="utf-8")


def _all(keep: Callable[[Any], None], given: argparse.Namespace, result: dict[str, Any]) -> None:
    for case in cases(given.small):
        if given.device == "cpu" and (case.memory != "hbm" or case.optimizer == "adam"):
            continue
        row = timed(case, given.device)
        keep(row)
        _say(row)
        given.output.write_text(json.dumps(result) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
