"""TorchRec's floats as the integers of an Instance: milliseconds → picoseconds, bytes up."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchrec.distributed.planner.types import Perf, Storage

#: Cost columns of an Instance written from TorchRec: the parts of ``Perf.total``.
PHASES = ("fwd_compute", "fwd_comms", "bwd_compute", "bwd_comms", "prefetch")
_FIELDS = ("fwd_compute", "fwd_comms", "bwd_compute", "bwd_comms", "prefetch_compute")

PICOSECONDS = 1_000_000_000
"""Picoseconds in the millisecond that TorchRec's estimators count in."""


def picoseconds(perf: Perf) -> tuple[int, ...]:
    """A shard's estimate as one integer a phase.

    Each phase is rounded to the nearest picosecond (half to even), so a shard's sum is off by at
    most 2.5 ps. ``input_dist_comms`` is left out, as in TorchRec's own ``Perf.total``.

    Parameters
    ----------
    perf : Perf
        Milliseconds.

    Returns
    -------
    tuple of int [phases]
        Picoseconds, in the order of :data:`PHASES`.

    Raises
    ------
    ValueError
        When an estimate is not a finite number.
    """
    values = [float(getattr(perf, name)) for name in _FIELDS]
    if not all(math.isfinite(value) for value in values):
        raise ValueError(f"its estimate {values} ms is not finite; allowed: finite times")
    return tuple(round(value * PICOSECONDS) for value in values)


def milliseconds(picos: int) -> float:
    """Picoseconds as TorchRec's milliseconds."""
    return picos / PICOSECONDS


def whole_bytes(storage: Storage) -> dict[str, int]:
    """What a shard uses of each tier in whole bytes, rounded up.

    Returns
    -------
    dict
        ``hbm``, ``ddr``, ``ssd``.
    """
    return {
        "hbm": math.ceil(storage.hbm),
        "ddr": math.ceil(storage.ddr),
        "ssd": math.ceil(storage.ssd),
    }
