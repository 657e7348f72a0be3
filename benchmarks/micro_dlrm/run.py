"""Measure the micro-DLRM pair on this machine and judge its published contract.

``python benchmarks/micro_dlrm/run.py`` prints what it found (needs torch: ``pip install
'.[routing]'``; about three minutes and 7 GB of memory); ``--quick`` takes a quarter of the table
and half a minute; ``-o FILE`` stores it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.micro_dlrm.contract import claims
from benchmarks.micro_dlrm.model import FLOAT, ROWS, WIDTH, Dram, MicroDlrm, Resident
from benchmarks.micro_dlrm.roofline import Ceilings, ceiling_probes, ceilings
from benchmarks.micro_dlrm.steps import BATCH, forward_probe, training_probe
from milp_planner.features.calibrate.machine import (
    Probe,
    Sample,
    last_level_cache,
    measure,
    processor,
)
from milp_planner.features.calibrate.torch_machine import keep_freed_memory

SIZES = (2_000, 16_000, 125_000, 500_000, ROWS)
WIDTHS = (16, 32, 64, 128, WIDTH)
MLPS = (1, 2, 4)
ROUNDS, WARMUPS = 50, 3


def found(model: MicroDlrm, sample: Sample, limits: Ceilings | None) -> dict[str, Any]:
    """What one probe took, by part, and where it stands under the roofline."""
    parts = {part: sample.part(part) for part in sample.parts}
    row: dict[str, Any] = {
        "seconds": sample.median, "spread": sample.spread, "parts": parts,
        "working_set_bytes": model.working_set_bytes(),
    }  # fmt: skip
    if limits is not None:
        flops, moved = model.flops(BATCH), model.moved_bytes(BATCH)
        regime, reached = limits.regime(flops, moved, sample.median)
        row |= {
            "flops": flops, "moved_bytes": moved, "bytes_per_second": moved / sample.median,
            "lookup_bytes_per_second": BATCH * model.features * model.width * FLOAT
            / parts["lookup"],
            "regime": regime, "of_ceiling": reached,
        }  # fmt: skip
    return row


def measured(rows: int, rounds: int) -> dict[str, Any]:
    """The pair forward and in training, the sweeps, the ceilings; all interleaved."""
    dram, resident = Dram(rows), Resident()
    storage = dram.table.weight.detach().view(-1)
    sizes = [size for size in SIZES if size < rows] + [rows]
    sweep = {
        (size, width): Dram(size, width, storage=storage) for size, width in product(sizes, WIDTHS)
    }
    wide = {mlp: Dram(rows, WIDTH, mlp, storage) for mlp in MLPS}
    pair: list[tuple[str, MicroDlrm]] = [("micro-dlrm-dram", dram), ("micro-dlrm", resident)]
    probes: list[Probe] = ceiling_probes()
    probes += [forward_probe(name, model) for name, model in pair]
    probes += [forward_probe(f"{key}", model) for key, model in sweep.items()]
    probes += [forward_probe(f"mlp {mlp}", model) for mlp, model in wide.items()]
    samples = measure(probes, rounds, time.perf_counter, warmups=WARMUPS)
    trained = [training_probe(f"{name} training", model) for name, model in pair]
    samples |= measure(trained, rounds, time.perf_counter, warmups=WARMUPS)
    limits = ceilings(samples)
    return {
        "ceilings": {"bandwidth": limits.bandwidth, "flops": limits.flops},
        "forward": {name: found(model, samples[name], limits) for name, model in pair},
        "training": {name: found(m, samples[f"{name} training"], None) for name, m in pair},
        "sweep": [
            {"rows": size, "width": width, **found(model, samples[f"{size, width}"], limits)}
            for (size, width), model in sweep.items()
        ],
        "mlp": [{"times": mlp, **found(m, samples[f"mlp {mlp}"], limits)}
                for mlp, m in wide.items()],
    }  # fmt: skip


def environment() -> dict[str, Any]:
    """Where and when."""
    return {
        "date": date.today().isoformat(), "processor": processor(),
        "cores": os.cpu_count(), "threads": torch.get_num_threads(),
        "last_level_cache": last_level_cache(), "load_average": os.getloadavg()[0],
        "python": platform.python_version(), "torch": torch.__version__,
    }  # fmt: skip


def main() -> None:
    """Measure, judge, print, and store where it is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a quarter of the table, 10 rounds")
    parser.add_argument("--threads", type=int, help="default: all cores")
    parser.add_argument("-o", "--output", type=Path)
    arguments = parser.parse_args()
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    keep_freed_memory()
    where = environment()
    rows, rounds = (ROWS // 4, 10) if arguments.quick else (ROWS, ROUNDS)
    result = {"machine": where, "rows": rows, "rounds": rounds, **measured(rows, rounds)}
    result["claims"] = claims(result)
    from benchmarks.micro_dlrm.figures import show

    print(show(result))
    if arguments.output:
        arguments.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
