"""Parity and speed of the CUDA kernels on whatever CUDA machine this runs on.

``python benchmarks/routing-gpu/gpu.py -o benchmarks/routing-gpu/results/DATE-DEVICE.json``

Checks the kernels against the NumPy definition first, and stops at a difference. Then, for each
cell, prints keys/s, the bytes that must move, and the share of this machine's measured copy
bandwidth; beside it a row-serial kernel (one thread per row) and torch's stable sort by owner.
"""

import argparse
import ctypes
import datetime
import itertools
import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cuda_routing.bucketize import bucketize
from cuda_routing.rules import Rule

SIZES = (1_000_000, 10_000_000, 100_000_000)
ROW_LENGTHS = (2, 20, 200, 8192)
RANKS = (2, 8, 64, 256)
HSTU = (96, 8192)  # rows, keys a row: a batch of long sequences
REPEATS = 20


@dataclass(frozen=True)
class Cell:
    """One combination; microseconds are medians of single calls replayed from a CUDA graph."""

    keys: int
    row_length: int
    ranks: int
    rule: str
    ours_us: float
    gkeys_s: float
    least_bytes: int
    share_of_copy: float
    row_serial_us: float | None
    sort_us: float | None


class RowSerial:
    """The row-serial kernels, compiled for this device."""

    class Rows(ctypes.Structure):
        """Argument of the kernels, as ``struct Rows``."""

        _fields_ = [
            *((name, ctypes.c_uint64) for name in
              ("keys", "starts", "lengths", "places", "next", "out_keys", "permute")),
            ("rows", ctypes.c_int64), ("ranks", ctypes.c_uint64),
        ]  # fmt: skip

    def __init__(self) -> None:
        import torch

        from cuda_routing.driver import Driver, Module

        facts = torch.cuda.get_device_properties(0)
        code = compile_row_serial(f"sm_{facts.major}{facts.minor}")
        self.module = Module(Driver(), code, facts.multi_processor_count)

    def __call__(self, lengths: Any, keys: Any, ranks: int) -> tuple[Any, Any, Any]:
        """Lengths, keys and permutation."""
        import torch

        rows = lengths.numel()
        starts = torch.zeros(rows + 1, dtype=torch.int64, device="cuda")
        torch.cumsum(lengths, 0, out=starts[1:])
        counts = torch.zeros(ranks * rows, dtype=torch.int64, device="cuda")
        out, permute = torch.empty_like(keys), torch.empty_like(keys)
        argument = self.Rows(
            keys=keys.data_ptr(), starts=starts.data_ptr(), lengths=counts.data_ptr(),
            out_keys=out.data_ptr(), permute=permute.data_ptr(), rows=rows, ranks=ranks,
        )  # fmt: skip
        self._launch("count_rows", rows, argument)
        places = torch.cumsum(counts, 0) - counts
        argument.next = places.data_ptr()
        self._launch("scatter_rows", rows, argument)
        return counts, out, permute

    def _launch(self, kernel: str, rows: int, argument: Any) -> None:
        import torch

        stream = torch.cuda.current_stream().cuda_stream
        sizes = (-(-rows // 256), 256, 0)
        self.module.launch(kernel, sizes, argument, stream, cooperative=False)


def compile_row_serial(arch: str) -> bytes:
    """Cubin of ``row_serial.cu``."""
    from cuda_routing.nvrtc import Nvrtc

    source = Path(__file__).with_name("row_serial.cu").read_text()
    return Nvrtc.load().compile(source, {}, (f"--gpu-architecture={arch}", "--std=c++17"))


def by_sort(keys: Any, ranks: int) -> tuple[Any, Any]:
    """Stable sort by owner with torch, and the gather (no lengths)."""
    import torch

    order = torch.sort((keys & (2**62 - 1)).remainder(ranks).to(torch.int16), stable=True).indices
    return keys[order], order


def batch(rows: int, row_length: int) -> tuple[Any, Any]:
    """Rows of equal length with random keys, on the device."""
    import torch

    lengths = torch.full((rows,), row_length, dtype=torch.int64, device="cuda")
    keys = torch.randint(0, 1 << 40, (rows * row_length,), device="cuda")
    return lengths, keys


def check_parity() -> int:
    """Compare kernels and definition over rules, ranks and shapes; returns how many batches."""
    import torch

    generator = np.random.default_rng(1)
    checked = 0
    shapes = ([0, 9000, 0, 1], generator.integers(0, 6, 3000), [8192] * 96, [3], [0, 0])
    for lengths, ranks, rule, width in itertools.product(
        shapes, (1, 2, 7, 8, 64, 256, 512, 2048), Rule, (np.int32, np.int64)
    ):
        sizes = np.asarray(lengths, np.int64)
        info = np.iinfo(width)
        keys = generator.integers(info.min, info.max, int(sizes.sum()), dtype=width)
        weights = generator.random(keys.size).astype(np.float32)
        options: dict[str, Any] = {
            "num_features": 1, "ranks": ranks, "rule": rule, "block_sizes": 1000,
            "positions": True,
        }  # fmt: skip
        expected = bucketize(sizes, keys, weights=weights, backend="numpy", **options)
        found = bucketize(
            torch.from_numpy(sizes).cuda(), torch.from_numpy(keys).cuda(),
            weights=torch.from_numpy(weights).cuda(), backend="cuda", **options,
        )  # fmt: skip
        for name in ("lengths", "keys", "weights", "positions", "permute"):
            if not np.array_equal(getattr(found, name).cpu().numpy(), getattr(expected, name)):
                sys.exit(f"{name} differ: ranks {ranks}, {rule.dist_type}, {width.__name__}")
        checked += 1
    return checked


def microseconds(call: Callable[[], Any]) -> float:
    """Median device time of one call, replayed from a CUDA graph after a warm-up."""
    import torch

    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    for _ in range(3):
        graph.replay()
    times = []
    for _ in range(REPEATS):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) * 1000)
    return statistics.median(times)


def copy_bandwidth() -> float:
    """Bytes a second (read + written) of a device-to-device copy of 1 GiB."""
    import torch

    source = torch.empty(1 << 27, dtype=torch.int64, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() * 8 / (microseconds(lambda: target.copy_(source)) / 1e6)


def least_bytes(keys: int, rows: int, ranks: int, resident: bool) -> int:
    """Bytes that must move: keys once (or twice), keys and permutation out, lengths in and out."""
    reads = 8 if resident else 16
    return keys * (reads + 8 + 8) + 8 * rows * (1 + ranks)


def measure(rows: int, row_length: int, ranks: int, rule: Rule, serial: RowSerial,
            bandwidth: float) -> Cell:  # fmt: skip
    """Time one cell three ways."""
    from cuda_routing.cuda_path import device_kernels

    lengths, keys = batch(rows, row_length)
    ours = microseconds(
        lambda: bucketize(lengths, keys, num_features=1, ranks=ranks, rule=rule, backend="cuda")
    )
    kernels = device_kernels(0, 64, 64)
    tiles = kernels.geometry.tiles(keys.numel())
    shared = kernels.geometry.shared_bytes(ranks)
    resident = tiles <= kernels.most_blocks_at_once(shared) // 2
    least = least_bytes(keys.numel(), rows, ranks, resident)
    plain = rule is Rule.ROUNDROBIN
    return Cell(
        keys.numel(), row_length, ranks, rule.dist_type, ours, keys.numel() / ours / 1e3, least,
        least / (ours / 1e6) / bandwidth,
        microseconds(lambda: serial(lengths, keys, ranks)) if plain else None,
        microseconds(lambda: by_sort(keys, ranks)) if plain else None,
    )  # fmt: skip


def cells() -> list[tuple[int, int, int, Rule]]:
    """Rows, row length, ranks, rule."""
    found = [(n // length, length, p, Rule.ROUNDROBIN)
             for n, length, p in itertools.product(SIZES, ROW_LENGTHS, RANKS)]  # fmt: skip
    found += [(*HSTU, p, Rule.ROUNDROBIN) for p in RANKS]
    return found + [
        (50_000, 200, 8, rule) for rule in (Rule.HASH_ROUNDROBIN, Rule.HASH_INDEPENDENT)
    ]


def main() -> None:
    """Check, then measure every cell that fits the device's memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--parity-only", action="store_true")
    arguments = parser.parse_args()
    import torch

    if not torch.cuda.is_available():
        sys.exit("this script needs a CUDA device and a torch built for it")
    print(f"{check_parity()} batches equal the NumPy definition on {torch.cuda.get_device_name()}")
    if arguments.parity_only:
        return
    bandwidth, serial = copy_bandwidth(), RowSerial()
    result: dict[str, Any] = {
        "device": torch.cuda.get_device_name(), "torch": torch.__version__,
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "copy_bytes_s": bandwidth, "cells": [],
    }  # fmt: skip
    print(f"copy bandwidth {bandwidth / 1e12:.2f} TB/s")
    for rows, row_length, ranks, rule in cells():
        if 8 * rows * ranks * 6 > torch.cuda.mem_get_info()[0]:
            continue
        cell = measure(rows, row_length, ranks, rule, serial, bandwidth)
        print(cell, flush=True)
        result["cells"].append(asdict(cell))
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(json.dumps(result, indent=1) + "\n")
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
