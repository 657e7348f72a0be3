"""Where a price comes from, as a profile declares it for each operator, and which priced a shard.

Nothing is guessed from an origin's words: an operator that a profile says nothing about is assumed.
A price made of several numbers has the weakest of their sources.
"""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import model_validator

from milp_planner.inputs.constraints import Mode, ShardingType
from milp_planner.inputs.spec import Many, Spec
from milp_planner.inputs.table import Dtype

How = Literal["measured", "interpolated", "data_sheet", "assumed"]
HOWS: tuple[How, ...] = ("measured", "interpolated", "data_sheet", "assumed")
"""From the strongest to the weakest."""
Operator = Literal[
    "lookup", "replicated", "caching", "host_memory", "ssd", "dynamicemb", "dynamicemb_caching",
    "dynamicemb_hybrid", "dynamicemb_host", "all_to_all", "reduce_scatter", "all_gather",
    "all_reduce", "network", "prefetch",
]  # fmt: skip
OPERATORS: tuple[Operator, ...] = get_args(Operator)
COLLECTIVES = ("all_to_all", "reduce_scatter", "all_gather", "all_reduce", "network")
_DYNAMICEMB: dict[Mode, Operator] = {
    "HBM_ONLY": "dynamicemb", "CACHING": "dynamicemb_caching", "HYBRID": "dynamicemb_hybrid",
    "HOST_ONLY": "dynamicemb_host",
}  # fmt: skip
_TORCHREC: dict[Mode, Operator] = {
    "HBM_ONLY": "lookup", "CACHING": "caching", "HOST_ONLY": "host_memory", "SSD": "ssd",
}  # fmt: skip


class Source(Spec):
    """How one operator's price was obtained."""

    how: How
    """``measured``, ``interpolated`` between measurements, from a ``data_sheet``, or ``assumed``,
    which includes what was carried over from other hardware."""
    hardware: str = ""
    """What was measured; empty if nothing was."""
    dtypes: Many[Dtype] = ()
    """Element types that were measured; others are interpolated by their bytes. Empty: it does not
    depend on them."""

    @model_validator(mode="after")
    def _named(self) -> Source:
        if (self.how in ("measured", "interpolated")) != bool(self.hardware):
            raise ValueError(
                f"found hardware {self.hardware!r} with how: {self.how}; allowed: hardware exactly "
                "where something was measured"
            )
        return self

    def for_dtype(self, dtype: str) -> Source:
        """The source for tables of an element type."""
        if self.how != "measured" or not self.dtypes or dtype in self.dtypes:
            return self
        return Source(how="interpolated", hardware=self.hardware)

    @property
    def words(self) -> str:
        """Such as ``measured on NVIDIA H100`` or ``data sheet``."""
        return self.how.replace("_", " ") + (f" on {self.hardware}" if self.hardware else "")


ASSUMED, DATA_SHEET = Source(how="assumed"), Source(how="data_sheet")


def weakest(sources: list[Source]) -> Source:
    """The source that a price made of several numbers has; of equals the first."""
    return max(sources, key=lambda each: HOWS.index(each.how))


def lookup_operator(kind: str, sharding: ShardingType, mode: Mode, cpu_only: bool) -> Operator:
    """What looks a table's rows up, and updates them."""
    if kind == "dynamicemb":
        return _DYNAMICEMB[mode]
    if sharding == "data_parallel":
        return "replicated"
    return "lookup" if cpu_only else _TORCHREC[mode]


def exchange_operators(
    sharding: ShardingType, pooled: bool, backward: bool, network: bool
) -> list[Operator]:
    """The collectives of a shard's exchange, and the update of a replicated table."""
    found: list[Operator]
    if sharding == "data_parallel":
        found = ["all_reduce", "replicated"]
    elif sharding in ("row_wise", "table_row_wise", "grid_shard") and pooled:
        found = ["all_gather" if backward else "reduce_scatter"]
    else:
        found = ["all_to_all"]
    if network:
        found.append("network")
    return found
