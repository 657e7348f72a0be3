"""What was chosen for every dynamicemb table, in the words of the runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from milp_planner.errors import BadInput
from milp_planner.integrations.torchrec.dynamicemb.arithmetic import hbm_for_values
from milp_planner.integrations.torchrec.dynamicemb.enumerator import rows_of
from milp_planner.integrations.torchrec.dynamicemb.marks import is_dynamic, mode_of, ratio_of

if TYPE_CHECKING:
    from torchrec.distributed.planner.types import ShardingOption


@dataclass(frozen=True)
class Decision:
    """One table's mode and ratio.

    Attributes
    ----------
    mode : str
        HBM_ONLY, CACHING, HYBRID or HOST_ONLY.
    ratio : Fraction
        Share of the values in HBM.
    caching : bool
        ``DynamicEmbTableOptions.caching``.
    local_hbm_for_values : int
        Bytes on one rank.
    global_hbm_for_values : int
        Bytes over all ranks.
    """

    mode: str
    ratio: Fraction
    caching: bool
    local_hbm_for_values: int
    global_hbm_for_values: int


def decisions(plan: Sequence[ShardingOption]) -> dict[str, Decision]:
    """Mode and ratio of every dynamicemb table of a plan, by table name.

    The bytes are the ratio of the values of all slots a rank has (rows rounded up to buckets), so
    that tables that fuse, which share one ratio, get that share from the runtime.

    Parameters
    ----------
    plan : sequence of ShardingOption
        ``MilpShardingPlanner.best_plan``.
    """
    return {option.name: _decision(option) for option in plan if is_dynamic(option)}


def write_options(constraints: Mapping[str, Any], chosen: Mapping[str, Decision]) -> None:
    """Set ``caching`` and both ``…_hbm_for_values`` in the constraints' table options, in place.

    For trainers that place the tables with dynamicemb's own ``DynamicEmbeddingShardingPlanner``,
    which reads ``global_hbm_for_values`` as the user's wish.

    Raises
    ------
    BadInput
        For a table without a constraint of dynamicemb's.
    """
    for name, decision in chosen.items():
        options = getattr(constraints.get(name), "dynamicemb_options", None)
        if options is None:
            raise BadInput(f"table {name!r}: found no constraint with dynamicemb_options")
        set_options(options, decision)


def set_options(options: Any, decision: Decision) -> None:
    """Set what a decision says in one ``DynamicEmbTableOptions``, in place."""
    options.caching = decision.caching
    options.local_hbm_for_values = decision.local_hbm_for_values
    options.global_hbm_for_values = decision.global_hbm_for_values


def _decision(option: Any) -> Decision:
    ratio = ratio_of(option)
    local = hbm_for_values(rows_of(option), option.dynamicemb_options, ratio)
    return Decision(
        mode=mode_of(option),
        ratio=ratio,
        caching=bool(option.dynamicemb_options.caching),
        local_hbm_for_values=local,
        global_hbm_for_values=local * len(option.shards),
    )
