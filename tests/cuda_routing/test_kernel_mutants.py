"""The parity tests catch deliberately broken kernels."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cuda_routing.shim.host import KERNELS, compile_kernels

SOURCE = (KERNELS / "bucketize.cu").read_text()
ROOT = Path(__file__).resolve().parents[2]

MUTANTS = {
    "peers ignore the last bit": ("bit < bits; ++bit", "bit + 1 < bits; ++bit"),
    "lanes beyond the end take part": (
        "u32 peers = __ballot_sync(ALL, valid);",
        "u32 peers = __ballot_sync(ALL, true);",
    ),
    "lanes count themselves": (
        "u32 earlier = (1u << lane()) - 1;\n#pragma",
        "u32 earlier = (2u << lane()) - 1;\n#pragma",
    ),
    "rounds forget earlier rounds": (
        "items[j].place = before + __popc(peers & earlier);",
        "items[j].place = __popc(peers & earlier);",
    ),
    "no barrier after clearing counts": (
        "i < WARPS * ranks; i += BLOCK) s.counts[i] = 0;\n    __syncthreads();",
        "i < WARPS * ranks; i += BLOCK) s.counts[i] = 0;",
    ),
    "no warp barrier between read and write": (
        "u32 before = mine[items[j].owner];\n        __syncwarp();",
        "u32 before = mine[items[j].owner];",
    ),
    "warps forget earlier warps": ("(unsigned short)sum;", "0;"),
    "tiles forget earlier tiles": (
        "b.tile_counts[(u64)tile * ranks + rank] - s.start[rank];",
        "0u - s.start[rank];",
    ),
    "slices of the scan forget earlier slices": ("if (slice < warp()) before += other;", ";"),
    "chunks of the scan forget earlier chunks": ("c < chunk; c += slices", "c < 0; c += slices"),
    "chunks of the scan forget slices": ("before += sums[slice * 32", "before = sums[slice * 32"),
    "totals of a chunk for all": ("if (warp() == 0 && end == b.tiles)", "if (warp() == 0)"),
    "scan barrier missing": (
        "sums[threadIdx.x] = sum;\n    __syncthreads();\n    u32 all",
        "sums[threadIdx.x] = sum;\n    u32 all",
    ),
    "block scan forgets earlier warps": ("if (w < warp()) before += scratch[w];", ";"),
    "block scan steps one short": ("step < 32; step <<= 1", "step < 16; step <<= 1"),
    "row of the next key": ("ALL >> (31 - lane())", "ALL >> (30 - (lane() & 30))"),
    "rows forget earlier rounds": ("highest = marked ? newest : highest;", "highest = 0;"),
    "rows forget earlier warps": ("items[j].row ? items[j].row : earlier;", "items[j].row;"),
    "empty rows take keys": ("if (b.offsets[row + 1] > b.offsets[row]) marks", "marks"),
    "row search off by one": ("b.offsets[at] <= i);", "b.offsets[at] < i);"),
    "runs joined across ranks": (
        "bool head = at == 0 || s.owners[at - 1] != owner || rows",
        "bool head = at == 0 || rows",
    ),
    "runs joined across rows": ("s.owners[at + 1] != owner || rows[at + 1] != row;",
                                "s.owners[at + 1] != owner;"),
    "staged before all have written": (
        "- tile * TILE;\n    __syncthreads();\n    for (u32 at = threadIdx.x; at < size; "
        "at += BLOCK)\n        out",
        "- tile * TILE;\n    for (u32 at = threadIdx.x; at < size; at += BLOCK)\n        out",
    ),
    "staged overwritten before all have read": (
        "= staged[at];\n    __syncthreads();", "= staged[at];"
    ),
    "feature of the first key for all": ("while (i >= next) next", "if (false) next"),
    "offsets forget earlier blocks": ("before += total;", ";"),
    "grid barrier lets early blocks through": ("< round * gridDim.x", "< round * gridDim.x - 1"),
    "barrier left dirty": ("b.barrier[0] = 0;", ";"),
    "positions from the tile": ("(u32)b.offsets[first_row + items[j].row])", "(tile * TILE))"),
    "permute ignores the base": (
        "(Index)(u32)(s.base[items[j].owner] + items[j].place)", "(Index)items[j].place"
    ),
}  # fmt: skip


def outcome(library: Path) -> int:
    """Exit status of replaying the fixed batches; a timeout counts as failing."""
    command = [sys.executable, "-m", "tests.cuda_routing.shim.replay", str(library)]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return -1
    return done.returncode


def test_the_shipped_source_passes() -> None:
    """The shipped kernels pass the batches that mutants must fail."""
    assert outcome(compile_kernels(64, 64)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_killed(name: str) -> None:
    """Breaking one line makes a batch come out wrong, abort or hang."""
    before, after = MUTANTS[name]
    assert SOURCE.count(before) == 1, (
        f"{name}: the line to break occurs {SOURCE.count(before)} times"
    )
    library = compile_kernels(64, 64, source=SOURCE.replace(before, after), flags=("-O0", "-w"))
    assert outcome(library) != 0, f"{name}: survived"
