"""Reuse the memory of large output arrays, instead of fresh pages that the kernel must clear.

A batch's outputs are freed when the next batch's are made. Touching fresh pages costs as much as
the routing itself, and more on virtual machines. So the memory of freed results is kept, up to a
limit, and reused. A buffer is reused only when nothing refers to it any more: arrays, views and
torch tensors made from them all hold its lease.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

SMALLEST = 1 << 20
LARGEST_LIMIT = 4 << 30
WASTE = 1.25


def default_limit() -> int:
    """An eighth of this machine's memory, at most 4 GiB; 512 MiB if its memory is unknown."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 512 << 20
    return min(memory // 8, LARGEST_LIMIT)


class _Lease:
    """Memory in use, returned to the pool when the last array on it is freed."""

    def __init__(self, pool: Pool, memory: NDArray[np.uint8]) -> None:
        self.pool, self.memory = pool, memory
        self.__array_interface__ = memory.__array_interface__

    def __del__(self) -> None:
        """Return the memory."""
        self.pool.give_back(self.memory)


class Pool:
    """Idle memory, at most ``limit`` bytes of it.

    Attributes
    ----------
    limit : int
        Bytes kept idle; 0 keeps none.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = default_limit() if limit is None else limit
        self._returned: deque[NDArray[np.uint8]] = deque()
        self._idle: list[NDArray[np.uint8]] = []
        self._idle_bytes = 0
        self._lock = threading.Lock()

    def empty(self, size: int, dtype: Any) -> NDArray[Any]:
        """One-dimensional array with arbitrary content."""
        kind = np.dtype(dtype)
        need = size * kind.itemsize
        if need < SMALLEST:
            return np.empty(size, kind)
        memory = self._take(need)
        if memory is None:
            memory = np.empty(need, np.uint8)
        whole = np.asarray(_Lease(self, memory))
        return whole[:need].view(kind)

    def zeros(self, size: int, dtype: Any) -> NDArray[Any]:
        """One-dimensional array of zeros (fresh pages are zero already, used ones are cleared)."""
        kind = np.dtype(dtype)
        need = size * kind.itemsize
        memory = self._take(need) if need >= SMALLEST else None
        if memory is None:
            if need < SMALLEST:
                return np.zeros(size, kind)
            memory = np.zeros(need, np.uint8)
        else:
            memory[:need] = 0
        whole = np.asarray(_Lease(self, memory))
        return whole[:need].view(kind)

    def give_back(self, memory: NDArray[np.uint8]) -> None:
        """Keep memory that nothing refers to any more; beyond the limit the oldest is freed.

        This never waits for the lock, because it runs wherever a last reference disappears, even
        inside this class.
        """
        if memory.nbytes > self.limit:
            return
        self._returned.append(memory)
        if self._lock.acquire(blocking=False):
            try:
                self._collect()
            finally:
                self._lock.release()

    def idle_bytes(self) -> int:
        """Number of idle bytes."""
        with self._lock:
            self._collect()
            return self._idle_bytes

    def _take(self, need: int) -> NDArray[np.uint8] | None:
        """The smallest idle memory that is large enough, without much waste."""
        with self._lock:
            self._collect()
            fits = [m for m in self._idle if need <= m.nbytes <= need * WASTE]
            if not fits:
                return None
            best = min(fits, key=lambda memory: memory.nbytes)
            self._idle = [m for m in self._idle if m is not best]
            self._idle_bytes -= best.nbytes
            return best

    def _collect(self) -> None:
        """Move returned memory to the idle list; free the oldest beyond the limit."""
        while self._returned:
            self._idle.append(self._returned.popleft())
        self._idle_bytes = sum(memory.nbytes for memory in self._idle)
        while self._idle_bytes > self.limit:
            self._idle_bytes -= self._idle.pop(0).nbytes


POOL = Pool()


def keep_idle(limit: int) -> None:
    """Set how many bytes of freed results are kept for reuse.

    The default is an eighth of the machine's memory, at most 4 GiB.

    Parameters
    ----------
    limit : int
        0 disables reuse and frees idle memory.
    """
    POOL.limit = max(0, int(limit))
    POOL.idle_bytes()
