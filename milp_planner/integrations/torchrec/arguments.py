"""What ``MilpShardingPlanner`` does not take, and the words it knows."""

from __future__ import annotations

from typing import Any, get_args

from torchrec.distributed.planner.perf_models import NoopPerfModel

from milp_planner.errors import BadInput


def refuse_parts(proposer: object, partitioner: object, performance_model: object) -> None:
    """Refuse parts of TorchRec's planner that would be ignored.

    Raises
    ------
    BadInput
        Saying where they can be kept.
    """
    for name, part in (("proposer", proposer), ("partitioner", partitioner)):
        if part is not None:
            raise BadInput(
                f"MilpShardingPlanner chooses options and ranks itself and takes no {name} (found "
                f"{type(part).__name__}); to keep yours, give MilpProposer and MilpPartitioner to "
                "TorchRec's EmbeddingShardingPlanner"
            )
    if performance_model is not None and type(performance_model) is not NoopPerfModel:
        raise BadInput(
            "MilpShardingPlanner minimises its objective and takes no performance model but "
            f"NoopPerfModel, found {type(performance_model).__name__}"
        )


def known_word(value: str, allowed: Any, where: str) -> Any:
    """A word that must be among those of a ``Literal``.

    Raises
    ------
    BadInput
    """
    if value not in get_args(allowed):
        raise BadInput(f"{where}: found {value!r}; allowed: {', '.join(get_args(allowed))}")
    return value
