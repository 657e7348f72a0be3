"""Bytes and bandwidth of a dynamicemb table on one rank, at a mode and cache ratio."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Literal

import numpy as np

from milp_planner.integrations.torchrec.dynamicemb.marks import TableOptions
from milp_planner.pricing import lookup
from milp_planner.pricing.dynamicemb_storage import (
    planner_value_bytes,
    runtime_tiers,
    runtime_value_bytes,
    torcheasyrec_tiers,
)
from milp_planner.pricing.profile import Profile, load_profile
from milp_planner.pricing.storage import admission_counter
from milp_planner.pricing.units import round_up

StorageModel = Literal["runtime", "torcheasyrec"]


@dataclass(frozen=True)
class Rows:
    """What one rank holds of a table.

    Attributes
    ----------
    rows, dim, element_bytes : int
    optimizer : str
        As :func:`milp_planner.integrations.torchrec.dynamicemb.marks.optimizer_of`.
    """

    rows: int
    dim: int
    element_bytes: int
    optimizer: str


def table_bytes(
    held: Rows, options: TableOptions, ratio: Fraction, caching: bool, model: StorageModel
) -> tuple[int, int]:
    """HBM and DDR of one rank's rows, keys, scores and admission counter; no buffers.

    Parameters
    ----------
    held : Rows
    options : TableOptions
        ``bucket_capacity``, and ``admission_counter`` with its own, where there is one.
    ratio : Fraction
        Share of the values in HBM, 0 to 1.
    caching : bool
    model : {"runtime", "torcheasyrec"}
        What the runtime allocates, or what TorchEasyRec's planner counts.
    """
    value, tiers = {
        "runtime": (runtime_value_bytes, runtime_tiers),
        "torcheasyrec": (planner_value_bytes, torcheasyrec_tiers),
    }[model]
    found = tiers(
        _array(held.rows),
        _array(value(held.dim, held.element_bytes, held.optimizer)),
        _array(options.bucket_capacity),
        (_array(ratio.numerator), _array(ratio.denominator)),
        np.array(caching and (ratio < 1 or model == "torcheasyrec")),
    )
    return int(found.hbm) + counter_bytes(options), int(found.ddr)


def counter_bytes(options: TableOptions) -> int:
    """HBM of the admission counter on one rank, with its own bucket size; 0 without one."""
    counter = getattr(options, "admission_counter", None)
    if counter is None:
        return 0
    return admission_counter(counter.capacity, counter.bucket_capacity)


def hbm_for_values(held: Rows, options: TableOptions, ratio: Fraction) -> int:
    """``local_hbm_for_values``: the ratio of the values of all slots, rounded up to a byte."""
    slots = int(round_up(held.rows, options.bucket_capacity))
    values = slots * runtime_value_bytes(held.dim, held.element_bytes, held.optimizer)
    return math.ceil(values * ratio)


@cache
def _published() -> Profile:
    return load_profile("torchrec-default")


def efficiency(ratio: Fraction, caching: bool) -> float:
    """Share x_eff of HBM's bandwidth that a lookup reaches: 1 at ratio 1, else the profile's curve.

    References
    ----------
    alibaba/TorchEasyRec, PR 508: fitted on one A10; docs/pricing.md says how little it transfers.
    """
    if ratio >= 1:
        return 1.0
    curve = _published().caching if caching else _published().hybrid
    return float(lookup.efficiency(curve, np.array(float(ratio))))


def bandwidth(effective: float, hbm: float, host_link: float) -> float:
    """(x_eff · HBM + (1 − x_eff) · host link) over the kernel's divisor, in the unit of both."""
    mixed = effective * hbm + (1 - effective) * host_link
    return mixed / _published().kernel.dynamicemb_divisor


def _array(value: int) -> np.ndarray:
    return np.array(value, dtype=np.int64)
