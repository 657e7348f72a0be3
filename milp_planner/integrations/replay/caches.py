"""What FBGEMM's shared caches make of a plan: other load factors, and rows as wide as the widest.

:mod:`milp_planner.pricing.shared_caches` says which tables share one, with sources.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction

from milp_planner.drawing.units import listed
from milp_planner.inputs import Model
from milp_planner.inputs.constraints import PinSpec
from milp_planner.plans.placement import Plan
from milp_planner.pricing.shared_caches import Cached, factors, kernel_of

SHOWN = 3
"""Most tables that a sentence names."""


def shared(pins: Mapping[str, PinSpec], model: Model) -> tuple[dict[str, PinSpec], tuple[str, ...]]:
    """The pins at the factors of their kernels, and a sentence about tables with several."""
    cached = {
        name: Cached(
            str(pin.sharding_type), pin.column_width or model.table(name).dim,
            pin.cache_ratio or Fraction(0), pin.ranks or (0,),
        )
        for name, pin in pins.items()
        if pin.mode == "CACHING" and model.table(name).kind == "torchrec"
    }  # fmt: skip
    found, several = dict(pins), []
    for name, ratios in factors(model, cached).items():
        if len(ratios) > 1:
            several.append(f"{name} ({float(ratios[0]):g} to {float(ratios[-1]):g})")
        elif ratios[0] != pins[name].cache_ratio:
            found[name] = pins[name].model_copy(update={"cache_ratio": ratios[0]})
    if not several:
        return found, ()
    return found, (
        f"TorchRec's kernels give their tables one load factor, which differs from rank to rank "
        f"for {listed(several, SHOWN)}: priced at their own",
    )


def padding(plan: Plan) -> dict[int, int]:
    """Bytes by rank that caches take beyond their tables' own widths, where they take any."""
    rows: dict[tuple[int, str], list[tuple[int, int, int]]] = defaultdict(list)
    for placed in plan.tables:
        table = plan.model.table(placed.name)
        if placed.mode != "CACHING" or table.kind != "torchrec":
            continue
        for shard in plan.shards(placed.name):
            assert shard.rows is not None, "TorchRec tables have contiguous rows"
            width = shard.columns[1] - shard.columns[0]
            count = -(-(shard.rows[1] - shard.rows[0]) * placed.cache_ratio // 1)
            kernel = kernel_of(table, placed.sharding_type, width, plan.model.workload)
            rows[shard.rank, kernel].append((int(count), width, max(table.element_bytes, 2)))
    found: dict[int, int] = defaultdict(int)
    for (rank, _), members in rows.items():
        widest = max(width for _, width, _ in members)
        found[rank] += sum(n * (widest - width) * element for n, width, element in members)
    return {rank: more for rank, more in found.items() if more}
