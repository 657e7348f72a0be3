"""Seconds of the device's own work, as if the host always ran ahead of it."""

from __future__ import annotations

import time
from typing import Any

PAUSE = 12_000_000
"""Clock cycles that the device waits first, about 6 ms, while the host queues the work."""
ON_HOST = "host "
"""Before the name of a part: what the host took to queue it."""


class DeviceClock:
    """Laps that are marked in the device's queue; on a CPU, those of the host's clock."""

    def __init__(self, device: str) -> None:
        import torch

        self._cuda = torch.cuda if device == "cuda" else None
        self._laps: list[tuple[str, Any, float]] = []

    def start(self) -> None:
        """Begin once all queued work is done, with a pause, so that dispatch is not measured."""
        self._laps = []
        if self._cuda is not None:
            self._cuda.synchronize()
            self._cuda._sleep(PAUSE)
        self.lap("")

    def lap(self, part: str) -> None:
        """The end of a part; what has no name is not kept."""
        event = None
        if self._cuda is not None:
            event = self._cuda.Event(enable_timing=True)
            event.record()
        self._laps.append((part, event, time.perf_counter()))

    def stop(self) -> dict[str, float]:
        """Seconds of every part, and with the prefix :data:`ON_HOST` those of the host."""
        if self._cuda is not None:
            self._cuda.synchronize()
        found: dict[str, float] = {}
        for (_, first, began), (part, event, ended) in zip(
            self._laps, self._laps[1:], strict=False
        ):
            if part:
                found[ON_HOST + part] = ended - began
                found[part] = ended - began if first is None else first.elapsed_time(event) / 1e3
        return found
