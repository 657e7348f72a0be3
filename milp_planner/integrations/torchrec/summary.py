"""What is told of a plan: objective, bound, gap, and the rank that holds it up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torchrec.distributed.planner.types import ShardingOption

from formulations import Objective, Outcome, Status
from milp_planner.integrations.torchrec.rating import RatingName, milliseconds, phased


@dataclass(frozen=True)
class Guilty:
    """Whom the others wait for.

    Attributes
    ----------
    rank : int
        Under ``busiest_rank`` the busiest one; under ``critical_path`` the one whose peaks make up
        most of the path. The lowest of those that tie.
    milliseconds : float
        What it holds up: its sum, or the sum of the phases in which it is slowest.
    tables : tuple of (str, float)
        Tables with what they cost in those phases on this rank, ms, dearest first.
    """

    rank: int
    milliseconds: float
    tables: tuple[tuple[str, float], ...]

    def sentence(self, most: int = 3) -> str:
        """One line: rank, time, and the tables that weigh most."""
        named = ", ".join(f"{name} {cost:.6f}" for name, cost in self.tables[:most])
        more = len(self.tables) - most
        rest = f" and {more} more" if more > 0 else ""
        return f"rank {self.rank} holds it up: {self.milliseconds:.6f} ms ({named}{rest})"


def guilty(objective: RatingName, plan: Sequence[ShardingOption]) -> Guilty | None:
    """Find it.

    Parameters
    ----------
    objective : {"busiest_rank", "critical_path"}
    plan : sequence of ShardingOption
        Estimated, every shard with its rank.

    Returns
    -------
    Guilty or None
        None for an empty plan.
    """
    entries = [(option, shard) for option in plan for shard in option.shards]
    if not entries:
        return None
    rating = phased(objective, plan)
    cost = np.array([rating.cost(option, shard.perf) for option, shard in entries])
    if rating.objective == Objective.BUSIEST_RANK:
        cost = cost.sum(axis=1, keepdims=True)
    ranks = np.array([shard.rank for _, shard in entries])
    loads = np.zeros((ranks.max() + 1, cost.shape[1]), dtype=np.int64)
    np.add.at(loads, ranks, cost)
    slowest = loads.argmax(axis=0)
    peaks = np.bincount(slowest, weights=loads.max(axis=0))
    rank = int(peaks.argmax())
    held = cost[:, slowest == rank].sum(axis=1) * (ranks == rank)
    tables: dict[str, int] = {}
    for (option, _), amount in zip(entries, held, strict=True):
        if amount:
            tables[option.name] = tables.get(option.name, 0) + int(amount)
    ordered = sorted(tables.items(), key=lambda item: (-item[1], item[0]))
    return Guilty(
        rank, milliseconds(int(peaks[rank])), tuple((t, milliseconds(c)) for t, c in ordered)
    )


def summary(
    outcome: Outcome,
    rating: float | None = None,
    objective: RatingName = "busiest_rank",
    held_up_by: Guilty | None = None,
) -> str:
    """A few lines: how good the plan is, how good any plan could be, and who says so.

    Parameters
    ----------
    outcome : Outcome
        Of an Instance written from TorchRec (picoseconds).
    rating : float, optional
        TorchRec's own figure for the same plan in milliseconds.
    objective : {"busiest_rank", "critical_path"}
    held_up_by : Guilty, optional
        The rank that the others wait for.
    """
    lines = [f"--- milp-planner: {_verdict(outcome)} ---"]
    if outcome.objective is not None:
        text = f"{objective.replace('_', ' ')} {milliseconds(outcome.objective):.6f} ms"
        if rating is not None:
            text += f" (TorchRec's rating {rating:.6f} ms)"
        lines.append(text)
    lines.append(_bound(outcome))
    if held_up_by is not None:
        lines.append(held_up_by.sentence())
    return "\n".join(lines)


def _verdict(outcome: Outcome) -> str:
    if outcome.status == Status.OPTIMAL:
        word = "optimal, proved"
    elif outcome.status == Status.FEASIBLE:
        word = "feasible"
    else:
        word = outcome.status.value
    return f"{word} ({outcome.formulation}, {outcome.seconds:.2f} s)"


def _bound(outcome: Outcome) -> str:
    if outcome.bound is None:
        return "bound: not known"
    source = outcome.bound_source
    whose = f" by {source.method}" if source else ""
    gap = f", gap {outcome.gap:.4%}" if outcome.gap is not None else ""
    text = f"bound {milliseconds(outcome.bound):.6f} ms{whose}{gap}"
    if outcome.certified_bound is not None:
        text += f"; certified {milliseconds(outcome.certified_bound):.6f} ms"
    return text
