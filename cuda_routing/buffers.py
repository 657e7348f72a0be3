"""Large output arrays on memory that was used before, instead of pages the kernel must clear anew.

A batch's outputs die when the next batch's are made, and first touches of fresh pages cost as much
as routing itself, and more on virtual machines. So memory of dropped results is kept, up to a
limit, and handed out again. A buffer is reused only when nothing refers to it any more: arrays,
views and torch tensors made from them all hold its lease.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

SMALLEST = 1 << 20
DEFAULT_LIMIT = 512 << 20
WASTE = 1.25


class _Lease:
    """Memory in use; gives it back when the last array on it is gone."""

    def __init__(self, pool: Pool, memory: NDArray[np.uint8]) -> None:
        self.pool, self.memory = pool, memory
        self.__array_interface__ = memory.__array_interface__

    def __del__(self) -> None:
        """Hand the memory back."""
        self.pool.give_back(self.memory)


class Pool:
    """Idle memory, at most ``limit`` bytes of it.

    Attributes
    ----------
    limit : int
        Bytes kept idle; 0 keeps none.
    """

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self.limit = limit
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
        """Keep memory that nobody refers to any more, or forget it where the limit is reached.

        Takes no lock: it runs wherever a last reference dies, even inside this class.
        """
        waiting = sum(m.nbytes for m in tuple(self._returned))
        if self._idle_bytes + waiting + memory.nbytes <= self.limit:
            self._returned.append(memory)

    def idle_bytes(self) -> int:
        """Bytes kept for later."""
        with self._lock:
            self._collect()
            return self._idle_bytes

    def _take(self, need: int) -> NDArray[np.uint8] | None:
        """Smallest idle memory that fits without much waste."""
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
        """Move what was returned to the idle list; forget the oldest beyond the limit."""
        while self._returned:
            self._idle.append(self._returned.popleft())
        self._idle_bytes = sum(memory.nbytes for memory in self._idle)
        while self._idle_bytes > self.limit:
            self._idle_bytes -= self._idle.pop(0).nbytes


POOL = Pool()


def keep_idle(limit: int) -> None:
    """Set how many bytes of dropped results are kept for the next ones (default 512 MiB).

    Parameters
    ----------
    limit : int
        0 turns recycling off and frees what is idle.
    """
    POOL.limit = max(0, int(limit))
    POOL.idle_bytes()
