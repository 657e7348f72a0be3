"""Bucketize on the GPU: allocate with torch, launch on its current stream, never wait."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict
from typing import Any, Protocol

from cuda_routing.errors import BackendUnavailable
from cuda_routing.features import Features
from cuda_routing.launch import (
    MOST_KEYS,
    MOST_RANKS,
    Batch,
    Geometry,
    Launcher,
    check_sizes,
    chunk_of,
    run_once,
    run_tiled,
    set_ranks,
)
from cuda_routing.result import Bucketized

REMEMBERED_TABLES = 64


class Kernels(Launcher, Protocol):
    """Compiled kernels on a device."""

    geometry: Geometry

    def most_blocks_at_once(self, shared: int) -> int:
        """Blocks of the one-launch kernel that are resident together."""

    def barrier(self) -> Any:
        """Two zero 32-bit numbers that no concurrent launch uses."""

    def capturing(self) -> bool:
        """Whether the launches go into a graph, which keeps using their buffers."""


def bucketize_cuda(
    lengths: Any,
    keys: Any,
    features: Features,
    *,
    backend: str = "auto",
    weights: Any = None,
    positions: bool = False,
    permute: bool = True,
) -> Bucketized:
    """Group keys by owner on their GPU; arguments as in ``bucketize_torch``, as CUDA tensors.

    If the kernels cannot be compiled or the batch exceeds their limits, ``auto`` uses torch
    operations instead, with one warning.

    Raises
    ------
    BackendUnavailable
        With ``backend="cuda"``, when there is no driver or no NVRTC.
    """
    options = {"weights": weights, "positions": positions, "permute": permute}
    large = keys.numel() > MOST_KEYS or features.ranks > MOST_RANKS
    if backend == "torch" or (backend == "auto" and large):
        return _by_torch(lengths, keys, features, options)
    try:
        kernels = device_kernels(
            keys.device.index, 8 * keys.element_size(), 8 * lengths.element_size()
        )
    except BackendUnavailable as reason:
        if backend == "cuda":
            raise
        warnings.warn(f"{reason}; torch operations are used instead", stacklevel=4)
        return _by_torch(lengths, keys, features, options)
    return bucketize_with(kernels, lengths, keys, features, **options)


def bucketize_with(  # noqa: PLR0913 - the batch, the kernels and what to return
    kernels: Kernels,
    lengths: Any,
    keys: Any,
    features: Features,
    *,
    weights: Any = None,
    positions: bool = False,
    permute: bool = True,
    once: bool | None = None,
) -> Bucketized:
    """Run given kernels on tensors of their device.

    Parameters
    ----------
    kernels : Kernels
    once : bool, optional
        Whether to use one cooperative launch or three; by default one if the grid fills at most
        half of the device (beyond, its barriers cost more than the launches they save:
        docs/routing/which-rule.md).
    """
    import torch

    count, rows, ranks = keys.numel(), lengths.numel(), features.ranks
    check_sizes(count, ranks)
    by_kernel = weights is not None and weights.dtype == torch.float32
    by_index = weights is not None and not by_kernel
    lengths, keys = lengths.contiguous(), keys.contiguous()
    geometry = kernels.geometry
    tiles = geometry.tiles(count)
    if once is None:
        once = 0 < tiles <= kernels.most_blocks_at_once(geometry.shared_bytes(ranks)) // 2
    index = torch.int32 if keys.element_size() == 4 else torch.int64
    tensors: dict[str, Any] = {
        "keys": keys,
        "lengths": lengths,
        "weights": weights.contiguous() if by_kernel else None,
        "out_keys": torch.empty_like(keys),
        "out_weights": torch.empty(count, device=keys.device) if by_kernel else None,
        "positions": keys.new_empty(count, dtype=index) if positions else None,
        "permute": keys.new_empty(count, dtype=index) if permute or by_index else None,
    }
    tensors |= _workspace(kernels, lengths, ranks, tiles, once and count > 0)
    tensors |= _constants(features, keys.device, keep=kernels.capturing())
    if count:
        batch = _describe(tensors, features, count, rows, tiles)
        (run_once if once else run_tiled)(kernels, batch, geometry)
    moved = tensors["out_weights"]
    if by_index:
        moved = torch.empty_like(weights).index_copy_(0, tensors["permute"].long(), weights)
    where = tensors["permute"] if permute else None
    return Bucketized(
        tensors["out_lengths"], tensors["out_keys"], moved, tensors["positions"], where, ranks
    )


def _workspace(
    kernels: Kernels, lengths: Any, ranks: int, tiles: int, once: bool
) -> dict[str, Any]:
    """Output lengths, row offsets and scratch; the one-launch kernel fills the first two itself."""
    import torch

    rows, device = lengths.numel(), lengths.device
    found = {
        "tile_counts": torch.empty(tiles * ranks, dtype=torch.int32, device=device),
        "totals": torch.empty(ranks, dtype=torch.int32, device=device),
    }
    if once:
        found["out_lengths"] = lengths.new_empty(ranks * rows)
        found["offsets"] = torch.empty(rows + 1, dtype=torch.int64, device=device)
        found["block_sums"] = torch.empty(tiles, dtype=torch.int64, device=device)
        found["barrier"] = kernels.barrier()
        return found
    found["out_lengths"] = lengths.new_zeros(ranks * rows)
    chunks = -(-tiles // chunk_of(tiles))
    found["chunk_sums"] = torch.zeros(chunks * ranks, dtype=torch.int32, device=device)
    found["offsets"] = torch.zeros(rows + 1, dtype=torch.int64, device=device)
    torch.cumsum(lengths, 0, dtype=torch.int64, out=found["offsets"][1:])
    return found


def _describe(
    tensors: dict[str, Any], features: Features, count: int, rows: int, tiles: int
) -> Batch:
    batch = Batch(count=count, rows=rows, features=features.count, tiles=tiles)
    for name, tensor in tensors.items():
        setattr(batch, name, 0 if tensor is None else tensor.data_ptr())
    narrow = features.dynamicemb_int32 and tensors["keys"].element_size() == 4
    set_ranks(batch, features.ranks, narrow_hash=narrow)
    first = features.rules[0], features.block_sizes[0]
    batch.uniform = int(
        all(edges is None for edges in features.boundaries)
        and bool((features.rules == first[0]).all())
        and bool((features.block_sizes == first[1]).all())
    )
    return batch


_TABLES: OrderedDict[tuple[Any, ...], dict[str, Any]] = OrderedDict()
_CAPTURED: dict[tuple[Any, ...], dict[str, Any]] = {}


def _constants(features: Features, device: Any, *, keep: bool) -> dict[str, Any]:
    """Rule table, boundaries and first rows on the device, uploaded once per set of features.

    ``keep`` holds them for good, because a captured graph reads them at every replay.
    """
    import torch

    from cuda_routing.tables import rule_table

    key = (
        str(device), features.ranks, features.rules.tobytes(), features.block_sizes.tobytes(),
        features.batch_sizes.tobytes(),
        tuple(None if edges is None else edges.tobytes() for edges in features.boundaries),
    )  # fmt: skip
    if key in _TABLES:
        _TABLES.move_to_end(key)
        if keep:
            _CAPTURED[key] = _TABLES[key]
        return _TABLES[key]
    table, edges = rule_table(features)
    arrays = {"table": table.view("i8"), "edges": edges.view("i8")}
    arrays["feature_rows"] = features.row_starts
    found = {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}
    _TABLES[key] = found
    if keep:
        _CAPTURED[key] = found
    if len(_TABLES) > REMEMBERED_TABLES:
        _TABLES.popitem(last=False)
    return found


def _by_torch(lengths: Any, keys: Any, features: Features, options: dict[str, Any]) -> Bucketized:
    from cuda_routing.torch_path import bucketize_torch

    return bucketize_torch(lengths, keys, features, **options)


class DeviceKernels:
    """The kernels on one CUDA device, launched on torch's current stream."""

    def __init__(self, device: int, key_bits: int, length_bits: int) -> None:
        import torch

        from cuda_routing.driver import Driver, Module
        from cuda_routing.nvrtc import compile_kernels

        self.device, self.geometry = device, Geometry()
        facts = torch.cuda.get_device_properties(device)
        code = compile_kernels(f"sm_{facts.major}{facts.minor}", key_bits, length_bits)
        with torch.cuda.device(device):
            torch.cuda.current_stream().synchronize()  # makes torch's context current
            self.module = Module(Driver(), code, facts.multi_processor_count)
        self._barriers: dict[int, Any] = {}
        self._most: dict[int, int] = {}

    def launch(
        self, kernel: str, grid: int, threads: int, shared: int, batch: Batch, cooperative: bool
    ) -> None:
        """Queue one launch."""
        import torch

        with torch.cuda.device(self.device):
            stream = torch.cuda.current_stream().cuda_stream
            sizes = (grid, threads, shared)
            self.module.launch(kernel, sizes, batch, stream, cooperative=cooperative)

    def most_blocks_at_once(self, shared: int) -> int:
        """Blocks of the one-launch kernel that are resident together."""
        if shared not in self._most:
            self._most[shared] = self.module.resident_blocks(
                "bucketize_once", self.geometry.block, shared
            )
        return self._most[shared]

    def barrier(self) -> Any:
        """Return two zeros of this stream, or of this graph while one is being captured."""
        import torch

        with torch.cuda.device(self.device):
            stream = torch.cuda.current_stream().cuda_stream
            if self.capturing():
                return torch.zeros(2, dtype=torch.int32, device="cuda")
            if stream not in self._barriers:
                self._barriers[stream] = torch.zeros(2, dtype=torch.int32, device="cuda")
            return self._barriers[stream]

    def capturing(self) -> bool:
        """Whether the current stream is being captured into a graph."""
        import torch

        return bool(torch.cuda.is_current_stream_capturing())


@functools.cache
def device_kernels(device: int, key_bits: int, length_bits: int) -> DeviceKernels:
    """Compile, load and cache the kernels for one device and choice of types."""
    return DeviceKernels(device, key_bits, length_bits)
