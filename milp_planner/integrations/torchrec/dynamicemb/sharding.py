"""A ShardingPlan whose dynamicemb tables carry their options, as the runtime's sharders want it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from torchrec.distributed.types import EmbeddingModuleShardingPlan, ShardingPlan

from milp_planner.integrations.torchrec.dynamicemb.chosen import decisions, set_options
from milp_planner.integrations.torchrec.dynamicemb.enumerator import rows_of
from milp_planner.integrations.torchrec.dynamicemb.marks import is_dynamic
from milp_planner.integrations.torchrec.dynamicemb.protocols import KERNEL
from milp_planner.pricing.units import round_up

if TYPE_CHECKING:
    from torchrec.distributed.planner.types import ShardingOption
    from torchrec.distributed.types import ParameterSharding


def with_dynamicemb(
    plan: ShardingPlan,
    chosen: Sequence[ShardingOption],
    sharding: Callable[..., ParameterSharding],
    **more: Any,
) -> ShardingPlan:
    """A copy of a plan, its dynamicemb tables as dynamicemb's own class of ``ParameterSharding``.

    Parameters
    ----------
    plan : ShardingPlan
        What ``MilpShardingPlanner.plan`` returned.
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
    copied = ShardingPlan({path: _copy(module) for path, module in plan.plan.items()})
    for option in filter(is_dynamic, chosen):
        held = rows_of(option)
        options: Any = copy.deepcopy(option.dynamicemb_options)
        set_options(options, decided[option.name])
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


def _copy(module: Any) -> EmbeddingModuleShardingPlan:
    kept = EmbeddingModuleShardingPlan()
    kept.update(module)
    return kept
