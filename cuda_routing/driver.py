"""Load compiled kernels and launch them through the CUDA driver, with ctypes."""

from __future__ import annotations

import ctypes
from typing import Any

from cuda_routing.errors import BackendUnavailable
from cuda_routing.launch import Batch

MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
DEFAULT_SHARED = 48 * 1024


class Driver:
    """The CUDA driver library.

    Parameters
    ----------
    library : ctypes.CDLL, optional
        Stands in for ``libcuda.so.1``.

    Raises
    ------
    BackendUnavailable
        There is no driver on this machine.
    """

    def __init__(self, library: Any = None) -> None:
        if library is None:
            try:
                library = ctypes.CDLL("libcuda.so.1")
            except OSError:
                raise BackendUnavailable(
                    "no CUDA driver (libcuda.so.1) on this machine: the CPU path needs none"
                ) from None
        self.library = library

    def call(self, function: str, *arguments: Any) -> None:
        """Call a driver function, turning a failure into an error with the driver's name for it."""
        status = getattr(self.library, function)(*arguments)
        if status:
            name = ctypes.c_char_p()
            self.library.cuGetErrorName(status, ctypes.byref(name))
            said = name.value.decode() if name.value else str(status)
            raise RuntimeError(f"CUDA driver: {function} failed with {said}")


class Module:
    """Kernels of one cubin, loaded into the current CUDA context.

    Parameters
    ----------
    driver : Driver
    code : bytes
        The cubin.
    multiprocessors : int
        Their number on the device, for cooperative launches.
    """

    def __init__(self, driver: Driver, code: bytes, multiprocessors: int) -> None:
        self.driver, self.multiprocessors = driver, multiprocessors
        self._code = ctypes.create_string_buffer(code, len(code))
        self._module = ctypes.c_void_p()
        driver.call("cuModuleLoadData", ctypes.byref(self._module), self._code)
        self._functions: dict[str, ctypes.c_void_p] = {}
        self._shared: dict[str, int] = {}

    def function(self, kernel: str, shared: int) -> ctypes.c_void_p:
        """Handle of a kernel, allowed at least this much dynamic shared memory."""
        if kernel not in self._functions:
            handle = ctypes.c_void_p()
            self.driver.call(
                "cuModuleGetFunction", ctypes.byref(handle), self._module, kernel.encode()
            )
            self._functions[kernel], self._shared[kernel] = handle, DEFAULT_SHARED
        handle = self._functions[kernel]
        if shared > self._shared[kernel]:
            self.driver.call(
                "cuFuncSetAttribute", handle, ctypes.c_int(MAX_DYNAMIC_SHARED), ctypes.c_int(shared)
            )
            self._shared[kernel] = shared
        return handle

    def resident_blocks(self, kernel: str, threads: int, shared: int) -> int:
        """Blocks of a kernel that the whole device can hold at once."""
        blocks = ctypes.c_int()
        self.driver.call(
            "cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(blocks),
            self.function(kernel, shared), ctypes.c_int(threads), ctypes.c_size_t(shared),
        )  # fmt: skip
        return blocks.value * self.multiprocessors

    def launch(
        self,
        kernel: str,
        sizes: tuple[int, int, int],
        batch: Batch,
        stream: int,
        *,
        cooperative: bool,
    ) -> None:
        """Queue one launch on a stream; ``sizes`` are blocks, threads per block, shared bytes."""
        grid, threads, shared = sizes
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(batch))
        shape = [ctypes.c_uint(n) for n in (grid, 1, 1, threads, 1, 1, shared)]
        arguments: list[Any] = [self.function(kernel, shared), *shape, ctypes.c_void_p(stream)]
        if cooperative:
            self.driver.call("cuLaunchCooperativeKernel", *arguments, parameters)
        else:
            self.driver.call("cuLaunchKernel", *arguments, parameters, None)
