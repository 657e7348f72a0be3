"""Probes of a machine, and their timing.

Timings are repeated and interleaved: every round runs every probe once, in a shuffled order. The
machine's drift (frequency, neighbours, temperature) then affects all probes alike instead of
whichever was measured last. The median of the rounds and their spread are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

import numpy as np

from milp_planner.errors import PlannerError
from milp_planner.features.calibrate.device_clock import ON_HOST, DeviceClock

if TYPE_CHECKING:
    from milp_planner.features.calibrate.sweep import SweepPoint

MAX_SPREAD = 0.25
"""Largest allowed spread of repeats: half their interquartile range over the median."""
MORE = 4
"""Most rounds, as a multiple of the planned number, when repeats spread more."""
Lap = Callable[[str], None]
"""Ends a named part of a probe's run: called with the part's name, it reads the clock."""
_REST = "rest"
ON_DEVICE = "device "
"""Before the name of a part: the seconds of the device's own work on it."""


class TooNoisy(PlannerError):
    """Raised when times spread too much or contradict each other, so that nothing is fitted."""

    exit_code = 1


@dataclass(frozen=True)
class Probe:
    """One thing to time."""

    name: str
    """Unique among the probes."""
    prepare: Callable[[int], Any]
    """Called with the round's number, untimed, in every round; its result is passed to ``run``."""
    run: Callable[[Any, Lap], None]
    """The timed call; takes the prepared value and a :data:`Lap`."""
    times: int = 1
    """How often ``run`` repeats its work; the time is divided by this."""
    beside: Callable[[Any], dict[str, float]] | None = None
    """Seconds of further parts, timed otherwise before the run; takes the prepared value."""
    clock: DeviceClock | None = None
    """Times the run in place of the host's clock: the device's own seconds."""


@dataclass(frozen=True)
class Sample:
    """Seconds of one probe over the rounds."""

    name: str
    seconds: tuple[float, ...]
    """One value per round."""
    parts: dict[str, tuple[float, ...]]
    """Seconds per round of each part, for probes that mark parts."""

    @property
    def median(self) -> float:
        """Median seconds."""
        return median(self.seconds)

    @property
    def ms(self) -> float:
        """Median milliseconds."""
        return 1e3 * self.median

    @property
    def spread(self) -> float:
        """Half the interquartile range over the median; 0 for fewer than two rounds."""
        if len(self.seconds) < 2:
            return 0.0
        low, _, high = quantiles(self.seconds, n=4, method="inclusive")
        return (high - low) / 2 / self.median

    @property
    def uncertainty(self) -> float:
        """Relative standard error of the median, assuming normally distributed repeats.

        The median's error is 1.253 σ/√n, and ``spread`` is 0.6745 σ.
        """
        return 1.253 / 0.6745 * self.spread / len(self.seconds) ** 0.5

    def steady(self, limit: float) -> bool:
        """Whether the spread is within ``limit``, or the median's uncertainty within half of it."""
        return self.spread <= limit or self.uncertainty <= limit / 2

    def part(self, name: str) -> float:
        """Median seconds of one part."""
        return median(self.parts[name])


def measure(
    probes: Sequence[Probe],
    rounds: int,
    now: Callable[[], float],
    *,
    limit: float | None = None,
    warmups: int = 1,
    seed: int = 0,
    on_step: Callable[[str, int], None] | None = None,
) -> dict[str, Sample]:
    """Time every probe once per round; returns a :class:`Sample` by probe name.

    Parameters
    ----------
    rounds, warmups
        Number of timed rounds, and of untimed rounds before them.
    now
        The clock in seconds; on an accelerator it waits for queued work first.
    limit
        Spread beyond which a probe gets further rounds, up to :data:`MORE` times ``rounds`` in all.
    seed
        Seed of the order within each round.
    on_step
        Called after each run with the probe's name and the number of runs certain to follow.
    """
    order = np.random.default_rng(seed)
    taken: dict[str, list[tuple[float, dict[str, float]]]] = {p.name: [] for p in probes}
    chosen = list(probes)
    for number in range(-warmups, rounds if limit is None else MORE * rounds):
        if limit is not None and number >= rounds:
            chosen = [p for p in chosen if _sample(p.name, taken[p.name]).spread > limit]
        for done, index in enumerate(order.permutation(len(chosen)), start=1):
            probe = chosen[index]
            timed = _once(probe, number + warmups, now)
            if number >= 0:
                taken[probe.name].append(timed)
            if on_step is not None:
                left = max(rounds - 1 - number, 0) * len(chosen) + len(chosen) - done
                on_step(probe.name, left)
    return {name: _sample(name, runs) for name, runs in taken.items()}


def quiet(times: Sequence[Sample | SweepPoint], limit: float) -> None:
    """Raise TooNoisy if the repeats of any time differ too much, naming the worst first."""
    noisy = sorted((t for t in times if t.spread > limit), key=lambda t: -t.spread)
    if noisy:
        worst, *others = noisy
        more = f"; beyond it, too: {', '.join(t.name for t in others)}" if others else ""
        raise TooNoisy(
            f"{worst.name}: its repeats spread by ±{worst.spread:.0%} around {worst.ms:.3g} ms; "
            f"allowed: ±{limit:.0%} (is something else running? --max-spread moves the limit){more}"
        )


def _once(probe: Probe, number: int, now: Callable[[], float]) -> tuple[float, dict[str, float]]:
    parts: dict[str, float] = {}
    prepared = probe.prepare(number)
    if probe.clock is not None:
        probe.clock.start()
        probe.run(prepared, probe.clock.lap)
        probe.clock.lap(_REST)
        told = {part: seconds / probe.times for part, seconds in probe.clock.stop().items()}
        parts = {part: told[part] for part in told if not part.startswith(ON_HOST)}
        return sum(parts.values()), {part: s for part, s in parts.items() if part != _REST}
    if probe.beside is not None:
        parts |= probe.beside(prepared)
    start = last = now()

    def lap(part: str) -> None:
        nonlocal last
        moment = now()
        parts[part] = parts.get(part, 0.0) + (moment - last) / probe.times
        last = moment

    probe.run(prepared, lap)
    return (now() - start) / probe.times, parts


def _sample(name: str, runs: list[tuple[float, dict[str, float]]]) -> Sample:
    parts = runs[0][1] if runs else {}
    return Sample(
        name,
        tuple(seconds for seconds, _ in runs),
        {part: tuple(found[part] for _, found in runs) for part in parts},
    )


ELEMENT = 4
"""Bytes of a table element (fp32)."""


@dataclass(frozen=True)
class Load:
    """One lookup call: bags of equal size, each summed to one output row."""

    bags: int
    """Output rows."""
    pooling: int
    """Ids per bag."""

    @property
    def ids(self) -> int:
        """Number of ids in the call."""
        return self.bags * self.pooling

    def rows_bytes(self, dim: int) -> int:
        """Bytes of the rows that the call reads."""
        return self.ids * dim * ELEMENT

    def priced_bytes(self, dim: int) -> int:
        """Bytes that the planner charges: ids (8 each), rows read, rows written.

        They are counted as in :func:`milp_planner.pricing.lookup.forward_seconds`, so that pricing
        with the bandwidth bytes / time reproduces the time.
        """
        return self.ids * 8 + self.rows_bytes(dim) + self.bags * dim * ELEMENT


def last_level_cache() -> int | None:
    """Bytes of the largest processor cache; None if the system does not report it (Linux does)."""
    folder = Path("/sys/devices/system/cpu/cpu0/cache")
    sizes = [entry.read_text().strip() for entry in folder.glob("index*/size")]
    units = {"K": 1024, "M": 1024**2}
    found = [int(size[:-1]) * units[size[-1]] for size in sizes if size[-1:] in units]
    return max(found, default=None)


def available_memory() -> int | None:
    """Bytes of memory available to a new process; None if the system does not report it."""
    source = Path("/proc/meminfo")
    if not source.exists():
        return None
    lines = dict(line.split(":", 1) for line in source.read_text().splitlines())
    return int(lines["MemAvailable"].split()[0]) * 1024 if "MemAvailable" in lines else None


def processor() -> str:
    """Name of the processor as the system reports it."""
    import platform

    source = Path("/proc/cpuinfo")
    if source.exists():
        for line in source.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
