"""Questions to the one linear model, and CP-SAT's answers.

A question names how ranks are pooled and what CP-SAT is to do with the model; :func:`ask` builds
the model over the options kept, below a target, and solves it. With ranks pooled the answer is a
bound and a choice of options; with every rank apart it is exact, and gives plans.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from formulations.clock import Limits
from formulations.cpsat import Answer, Asked, Found, solve_cpsat
from formulations.instance import Instance, IntArray, Scope
from formulations.model.build import build
from formulations.model.partition import Partition, by_class, by_machine, by_rank
from formulations.model.parts import Parts
from formulations.model.placements import chosen_machines, chosen_options, decode, encode
from formulations.model.symmetry import renamed
from formulations.result.outcome import BoundSource
from formulations.result.placement import Placement


@dataclass(frozen=True)
class Question:
    """What may be asked.

    Attributes
    ----------
    partition : callable
        Returns the partition of an instance's ranks.
    source : BoundSource
        What a bound from it is called.
    asked : Asked
        How CP-SAT is called.
    ordered : bool
        Whether like ranks are ordered; only with every rank apart.
    """

    partition: Callable[[Instance], Partition]
    source: BoundSource
    asked: Asked = field(default_factory=Asked)
    ordered: bool = False


#: Ranks of one kind pooled, with largest-shard rows. (HiGHS's bounds for this program were wrong by
#: up to 4%, docs/bounds.md.)
POOLED = Question(by_class, BoundSource("cpsat pooled", exact=True))
#: Ranks pooled within each machine only.
APART = Question(by_machine, BoundSource("cpsat machines", exact=True), Asked(follow_lp=True))
#: Everything.
WHOLE = Question(by_rank, BoundSource("cpsat", exact=True), ordered=True)


@dataclass(frozen=True, eq=False)
class Reply:
    """CP-SAT's answer, and the choice in it.

    Attributes
    ----------
    answer : Answer
        Its bound holds for plans with the options kept and, if there is a target, for those up to
        it.
    source : BoundSource
    options : int64 array [tables] or None
        Option per table of the best solution.
    machines : int64 array [tables] or None
        Machine of each table in that solution, −1: several; None: machines are not distinguished.
    """

    answer: Answer
    source: BoundSource
    options: IntArray | None = None
    machines: IntArray | None = None

    @property
    def bound(self) -> int | None:
        """No such plan costs less; None: no bound."""
        return self.answer.bound

    @property
    def value(self) -> int | None:
        """What the best solution costs in the model."""
        return self.answer.value

    @property
    def infeasible(self) -> bool:
        """Whether no such plan exists."""
        return self.answer.status == Found.INFEASIBLE

    @property
    def closed(self) -> bool:
        """Whether asking again can give no more."""
        return self.infeasible or (self.value is not None and self.value == self.bound)


def ask(
    question: Question,
    instance: Instance,
    limits: Limits,
    kept: Parts | None = None,
    start: Placement | None = None,
    take: Callable[[Placement], object] | None = None,
) -> Reply:
    """Ask a question about an instance.

    Parameters
    ----------
    question : Question
    instance : Instance
        Perhaps with room left for packing (:func:`with_room`).
    limits : Limits
    kept : Parts, optional
        The options kept, and the target as ``limit``.
    start : Placement, optional
        A plan to start from; only with every rank apart, as for ``take``.
    take : callable, optional
        Called with every better plan.

    Raises
    ------
    OutOfTime
        When ``kept.check`` raises it while the model is built.
    """
    kept = replace(kept or Parts(), ordered=question.ordered)
    model = build(instance, question.partition(instance), kept)
    asked, hint = question.asked, None
    if take is not None:
        asked = replace(asked, on_values=lambda values: take(decode(model, values)))
    if start is not None:
        candidates = model.columns.candidates
        hint = encode(model, renamed(candidates, start) if question.ordered else start)
    answer = solve_cpsat(model.linear, limits, hint, asked)
    if answer.values is None:
        return Reply(answer, question.source)
    options = chosen_options(model, answer.values)
    apart = question.partition is by_machine
    machines = chosen_machines(model, answer.values) if apart else None
    return Reply(answer, question.source, options, machines)


def with_room(instance: Instance, surcharge: float, slack: float) -> Instance:
    """The instance with room left for packing.

    Shards that choose their rank get a surcharge on their use of rank resources, and a share of
    these resources is taken away. Shards seldom fill ranks to the last byte, but those of a table
    that lies evenly on all ranks, or on those of a machine, leave no holes. With the surcharge, a
    program that does not distinguish ranks chooses as many of the latter as are needed.
    """
    free = np.repeat(instance.free, np.diff(instance.block_shards))
    use, resources = instance.shard_use.copy(), list(instance.resources)
    for index, resource in enumerate(instance.resources):
        if resource.scope == Scope.RANK:
            too_much = int(resource.capacity.max()) + 1
            use[free, index] = np.minimum(use[free, index] * (1 + surcharge), too_much)
            room = (resource.capacity * max(0.0, 1 - slack)).astype(np.int64)
            resources[index] = replace(resource, capacity=room)
    return replace(instance, shard_use=use, resources=tuple(resources))
