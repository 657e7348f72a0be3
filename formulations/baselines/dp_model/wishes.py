"""The settings of ``dp``: published variants, bins, axes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from formulations.baselines.partition.partitioner import SortBy
from formulations.errors import InstanceError
from formulations.instance import Instance, Objective
from formulations.settings import FLAG, Options, list_of, one_of, whole


class Variant(StrEnum):
    """The published versions (TorchEasyRec, ``tzrec/utils/plan_util.py``, PR 508)."""

    FIRST = "first"
    MERGED = "merged"


class Select(StrEnum):
    """Which of the proposals that can be placed is returned."""

    BEST = "best"
    CHEAPEST = "cheapest"


@dataclass(frozen=True)
class VariantFacts:
    """What differs between the variants.

    Attributes
    ----------
    bins : tuple of int
        Bins per device on the two axes.
    cap : int
        Most bins on an axis; 0 for no cap.
    dtype : type
        Floating-point type of costs and of totals in bin units.
    per_cell : bool
        A proposal for every reachable cell in decreasing memory, or one for every bin of the
        first axis in decreasing order.
    """

    bins: tuple[int, int]
    cap: int
    dtype: type[np.floating]
    per_cell: bool


VARIANTS = {
    Variant.FIRST: VariantFacts((100, 50), 1024, np.float64, True),
    Variant.MERGED: VariantFacts((100, 25), 0, np.float32, False),
}

OPTIONS = {
    "variant": one_of(Variant), "hbm_bins_per_device": whole(), "ddr_bins_per_device": whole(),
    "mem_bins_per_device": whole(), "axes": list_of(), "axis_cap": whole(0), "fusion_aware": FLAG,
    "select": one_of(Select), "rank_by": one_of(Objective), "sort_by": one_of(SortBy),
    "refine": FLAG, "memory_limit_mb": whole(),
}  # fmt: skip


@dataclass(frozen=True)
class Wishes:
    """What the caller asks of ``dp``; see :func:`formulations.baselines.dp.solve` for each."""

    variant: Variant
    bins: tuple[int, int]
    cap: int
    axes: tuple[str, ...]
    fusion_aware: bool
    select: Select
    rank_by: Objective
    sort_by: SortBy
    refine: bool
    memory_limit: int

    @property
    def facts(self) -> VariantFacts:
        """What the variant fixes."""
        return VARIANTS[self.variant]


def read_wishes(instance: Instance, given: Options) -> Wishes:
    """Fill in what the caller leaves open.

    Raises
    ------
    InstanceError
        For a pair of values that contradict each other.
    """
    variant = Variant(given.choice("variant", Variant.MERGED))
    select, refine = Select(given.choice("select", Select.BEST)), given.flag("refine", False)
    if refine and select == Select.CHEAPEST:
        raise InstanceError("dp: option 'refine' goes with select 'best', found 'cheapest'")
    published = VARIANTS[variant]
    # The original's old name for the first axis wins over its new one.
    hbm = "mem_bins_per_device" if given.has("mem_bins_per_device") else "hbm_bins_per_device"
    return Wishes(
        variant=variant,
        bins=(
            given.integer(hbm, published.bins[0]),
            given.integer("ddr_bins_per_device", published.bins[1]),
        ),
        cap=given.integer("axis_cap", published.cap),
        axes=given.names("axes", ("hbm", "ddr")),
        fusion_aware=given.flag("fusion_aware", False),
        select=select,
        rank_by=Objective(given.choice("rank_by", instance.objective)),
        sort_by=SortBy(given.choice("sort_by", SortBy.STORAGE)),
        refine=refine,
        memory_limit=given.integer("memory_limit_mb", 1024) * 2**20,
    )
