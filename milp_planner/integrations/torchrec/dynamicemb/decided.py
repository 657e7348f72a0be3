"""What a plan decides about dynamicemb tables, in the runtime's own terms."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from torchrec.distributed.planner.types import ShardingOption
from torchrec.distributed.types import ParameterSharding, ShardingPlan

from milp_planner.errors import BadInput
from milp_planner.integrations.torchrec.dynamicemb.enumerator import rows_of
from milp_planner.integrations.torchrec.dynamicemb.marks import (
    KERNEL,
    is_dynamic,
    mode_of,
    ratio_of,
)
from milp_planner.pricing.storage import hbm_for_values, runtime_value_bytes
from milp_planner.pricing.units import round_up


@dataclass(frozen=True)
class Decision:
    """One table's mode and ratio."""

    mode: str
    """HBM_ONLY, CACHING, HYBRID or HOST_ONLY."""
    ratio: Fraction
    """Share of the values in HBM."""
    caching: bool
    """``DynamicEmbTableOptions.caching``."""
    local_hbm_for_values: int
    """Bytes on one rank."""
    global_hbm_for_values: int
    """Bytes over all ranks."""


def decisions(plan: Sequence[ShardingOption]) -> dict[str, Decision]:
    """Mode and ratio of every dynamicemb table of a plan, by table name.

    The bytes are the ratio times the values of all slots of a rank (rows rounded up to buckets), so
    the runtime gives that share to tables that fuse, which have one ratio.

    Parameters
    ----------
    plan : sequence of ShardingOption
        ``MilpShardingPlanner.best_plan``.
    """
    return {option.name: _decision(option) for option in plan if is_dynamic(option)}


def write_options(constraints: Mapping[str, Any], chosen: Mapping[str, Decision]) -> None:
    """Set ``caching`` and both ``…_hbm_for_values`` in the constraints' table options, in place.

    For trainers that place the tables with dynamicemb's own ``DynamicEmbeddingShardingPlanner``,
    which reads ``global_hbm_for_values`` as the user's request.

    Raises
    ------
    BadInput
        For a table without a dynamicemb constraint.
    """
    for name, decision in chosen.items():
        options = getattr(constraints.get(name), "dynamicemb_options", None)
        if options is None:
            raise BadInput(f"table {name!r}: found no constraint with dynamicemb_options")
        _set(options, decision)


def with_dynamicemb(
    plan: ShardingPlan,
    chosen: Sequence[ShardingOption],
    sharding: Callable[..., ParameterSharding],
    **more: Any,
) -> ShardingPlan:
    """A copy of a plan with dynamicemb tables in dynamicemb's own class of ``ParameterSharding``.

    Parameters
    ----------
    plan : ShardingPlan
        The result of ``MilpShardingPlanner.plan``.
    chosen : sequence of ShardingOption
        Its ``best_plan``.
    sharding : callable
        dynamicemb's ``DynamicEmbParameterSharding``; gets ``sharding_type``, ``compute_kernel``,
        ``ranks``, ``sharding_spec`` and ``dynamicemb_options``.
    **more
        Further fields of that class in your version, such as ``dist_type`` and
        ``customized_compute_kernel``.

    Returns
    -------
    ShardingPlan
        Each table's options are a copy, with ``caching``, ``local_hbm_for_values``,
        ``global_hbm_for_values``, ``max_capacity`` (slots of one rank) and ``dim`` set.
    """
    decided = decisions(chosen)
    copied = ShardingPlan({path: copy.copy(module) for path, module in plan.plan.items()})
    for option in filter(is_dynamic, chosen):
        held = rows_of(option)
        options: Any = copy.deepcopy(option.dynamicemb_options)
        _set(options, decided[option.name])
        options.max_capacity = int(round_up(held.rows, options.bucket_capacity))
        options.dim = held.dim
        module: Any = copied.plan[option.path]
        module[option.name] = sharding(
            sharding_type=option.sharding_type,
            compute_kernel=KERNEL,
            ranks=module[option.name].ranks,
            sharding_spec=module[option.name].sharding_spec,
            dynamicemb_options=options,
            **more,
        )
    return copied


def _set(options: Any, decision: Decision) -> None:
    options.caching = decision.caching
    options.local_hbm_for_values = decision.local_hbm_for_values
    options.global_hbm_for_values = decision.global_hbm_for_values


def _decision(option: Any) -> Decision:
    ratio = ratio_of(option)
    held, bucket = rows_of(option), option.dynamicemb_options.bucket_capacity
    row = runtime_value_bytes(held.dim, held.element_bytes, held.optimizer)
    local = hbm_for_values(held.rows, bucket, row, ratio)
    return Decision(
        mode=mode_of(option),
        ratio=ratio,
        caching=bool(option.dynamicemb_options.caching),
        local_hbm_for_values=local,
        global_hbm_for_values=local * len(option.shards),
    )
